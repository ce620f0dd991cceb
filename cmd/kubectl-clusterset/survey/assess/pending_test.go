// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package assess

import (
	"testing"

	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/surveytest"
	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TestPendingDeletions: an import waits for the exporters without a record on the hub; if each has a record, for those without
// endpoints.
func TestPendingDeletions(t *testing.T) {
	t.Parallel()
	r := &surveytest.Records{}
	for _, id := range []clusterset.ClusterID{"a", "b", "c", "d"} {
		r.Member(id)
		if id != "d" {
			r.Export(id, "shop/web", 1, surveytest.Port("http", 80))
		}
	}
	r.Serve("b", "shop/web", 1, 0)
	for name, test := range map[string]struct {
		exporters []string
		want      clusterset.ClusterID
	}{
		"no record":             {[]string{"a", "b", "c", "d"}, "d"},
		"records, no endpoints": {[]string{"a", "b", "c"}, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := survey.MemberObjects{ID: "c", Imports: []mcsv1beta1.ServiceImport{surveytest.Import("shop/web", conditions.DeletionPending(nil), test.exporters...)}}
			want := map[clusterset.ClusterID][]clusterset.ServiceKey{test.want: {surveytest.Key("shop/web")}}
			check.Equal(t, "pending deletions", want, pendingDeletions(r.Hub(t), objects))
		})
	}
}
