// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"
	"testing"
	"time"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// A report is written at once if a cluster was never reported, or is reached for the first time; otherwise not before the interval has
// passed, and never directly after a write that has failed. spec: G8
func TestReportIsDue(t *testing.T) {
	t.Parallel()
	failed := errors.New("connection refused")
	type reachable = map[clusterset.ClusterID]error
	for name, test := range map[string]struct {
		before  []reachable // what was reported
		now     reachable
		written time.Duration // since the last write
		failed  time.Duration // since a write has failed; 0 for never
		want    bool
	}{
		"nothing to report":                            {nil, nil, time.Second, 0, false},
		"a new cluster":                                {nil, reachable{"b": failed}, time.Second, 0, true},
		"another new cluster":                          {[]reachable{{"b": nil}}, reachable{"b": nil, "c": failed}, time.Second, 0, true},
		"reached for the first time":                   {[]reachable{{"b": failed}}, reachable{"b": nil}, time.Second, 0, true},
		"not reached any more":                         {[]reachable{{"b": nil}}, reachable{"b": failed}, time.Second, 0, false},
		"reached again":                                {[]reachable{{"b": nil}, {"b": failed}}, reachable{"b": nil}, time.Second, 0, false},
		"not reached any more, later":                  {[]reachable{{"b": nil}}, reachable{"b": failed}, reportInterval, 0, true},
		"a new cluster after a failed write":           {nil, reachable{"b": nil}, time.Minute, time.Second, false},
		"a new cluster some time after a failed write": {nil, reachable{"b": nil}, time.Minute, reportInterval, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &reporter{wrote: start.Add(-test.written)}
			if test.failed > 0 {
				r.failed = start.Add(-test.failed)
			}
			for _, before := range test.before {
				r.remember(before)
			}
			check.Equal(t, "is due", test.want, r.isDue(test.now, start))
		})
	}
}
