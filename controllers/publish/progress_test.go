// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"testing"

	"github.com/tombolo-mcs/tombolo/controllers/publish"
	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TestProgress: a publication is complete when each service has been reconciled since the last list of the hub, and stays complete
// until the next list.
func TestProgress(t *testing.T) {
	t.Parallel()
	p := publish.NewProgress()
	one, two := clusterset.ServiceKey{Namespace: "shop", Name: "one"}, clusterset.ServiceKey{Namespace: "shop", Name: "two"}
	for _, step := range []struct {
		name     string
		do       func()
		complete bool
		notified bool
	}{
		{"at first", func() {}, false, false},
		{"with a service that was not requested", func() { p.Done(one, 0, hub.Versions{Services: "7", Endpoints: "12"}) }, false, false},
		{"with a list", func() { p.Begin(1, []clusterset.ServiceKey{one, two}) }, false, false},
		{"with one of two done", func() { p.Done(one, 1, hub.Versions{Services: "7", Endpoints: "12"}) }, false, false},
		{"with both", func() { p.Done(two, 1, hub.Versions{Services: "10", Endpoints: "9"}) }, true, true},
		{"with the same list again", func() { p.Begin(1, []clusterset.ServiceKey{one, two}) }, true, false},
		{"with one done again", func() { p.Done(one, 1, hub.Versions{Services: "7", Endpoints: "12"}) }, true, false},
		{"with a new list", func() { p.Begin(2, []clusterset.ServiceKey{one}) }, false, false},
		{"with that done before", func() { p.Done(one, 1, hub.Versions{}) }, false, false},
		{"with that done", func() { p.Done(one, 2, hub.Versions{Services: "7", Endpoints: "12"}) }, true, true},
		{"with a record that has gone from the hub", func() { p.RecordDeleted(one) }, false, false},
		{"with that published again", func() { p.Done(one, 2, hub.Versions{Services: "8"}) }, true, true},
		{"with an empty one", func() { p.Begin(3, nil) }, true, true},
	} {
		step.do()
		notified := false
		select {
		case <-p.Completed():
			notified = true
		default:
		}
		if complete := p.Publication().State == hubv1alpha1.PublicationComplete; complete != step.complete || notified != step.notified {
			t.Errorf("%s: complete is %v and was notified: %v; want %v and %v", step.name, complete, notified, step.complete, step.notified)
		}
	}
}

// TestProgressVersions: a complete publication has the highest versions that its records have had since the hub was last listed.
func TestProgressVersions(t *testing.T) {
	t.Parallel()
	p := publish.NewProgress()
	one, two := clusterset.ServiceKey{Namespace: "shop", Name: "one"}, clusterset.ServiceKey{Namespace: "shop", Name: "two"}
	want := func(step string, want hub.Versions) {
		check.Equal(t, step, want, p.Publication().Versions)
	}
	p.Begin(1, []clusterset.ServiceKey{one, two})
	p.Done(one, 1, hub.Versions{Services: "9", Endpoints: "12"})
	want("with one of two done", hub.Versions{})
	p.Done(two, 1, hub.Versions{Services: "10"})
	want("with both", hub.Versions{Services: "10", Endpoints: "12"})
	p.Done(one, 1, hub.Versions{Services: "100", Endpoints: "101"})
	want("with a change since", hub.Versions{Services: "100", Endpoints: "101"})
	p.Begin(2, []clusterset.ServiceKey{one})
	p.Done(one, 1, hub.Versions{Services: "100"})
	p.Done(one, 2, hub.Versions{Services: "5"})
	want("on a hub that was restored", hub.Versions{Services: "5"})
}
