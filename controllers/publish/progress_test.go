// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"testing"

	"github.com/tombolo-mcs/tombolo/controllers/publish"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TestProgress: a publication is complete when each service has been looked at since the hub was last listed, and stays
// so for as long as the hub is not listed anew.
func TestProgress(t *testing.T) {
	t.Parallel()
	p := publish.NewProgress()
	one, two := clusterset.ServiceKey{Namespace: "shop", Name: "one"}, clusterset.ServiceKey{Namespace: "shop", Name: "two"}
	for _, step := range []struct {
		name     string
		do       func()
		complete bool
		told     bool
	}{
		{"at first", func() {}, false, false},
		{"with a service that nobody asked for", func() { p.Done(one) }, false, false},
		{"with a list", func() { p.Begin(1, []clusterset.ServiceKey{one, two}) }, false, false},
		{"with one of two done", func() { p.Done(one) }, false, false},
		{"with both", func() { p.Done(two) }, true, true},
		{"with the same list again", func() { p.Begin(1, []clusterset.ServiceKey{one, two}) }, true, false},
		{"with one done again", func() { p.Done(one) }, true, false},
		{"with a new list", func() { p.Begin(2, []clusterset.ServiceKey{one}) }, false, false},
		{"with that done", func() { p.Done(one) }, true, true},
		{"with an empty one", func() { p.Begin(3, nil) }, true, true},
	} {
		step.do()
		told := false
		select {
		case <-p.Completed():
			told = true
		default:
		}
		if p.Complete() != step.complete || told != step.told {
			t.Errorf("%s: complete is %v and was told: %v; want %v and %v", step.name, p.Complete(), told, step.complete, step.told)
		}
	}
}
