// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package presence

import (
	"testing"
	"testing/synctest"

	"github.com/tombolo-mcs/tombolo/controllers/publish"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// TestPublicationOfLastList: a hub that was listed again may lack records. Until the controller publish has processed that list, the
// heartbeat does not say Complete.
//
// spec: E3
func TestPublicationOfLastList(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := present(t, memberOf("own"), heartbeatOf("own", hubv1alpha1.PublicationComplete))
		p.Progress = publish.NewProgress()
		listing := p.Store.Listing()
		want := func(want hubv1alpha1.Publication) {
			t.Helper()
			if got, _ := p.publication(); got.State != want {
				t.Errorf("lists %d and %d: publication %s, want %s", p.Progress.Publication().Listing, listing, got.State, want)
			}
		}
		p.Progress.Begin(listing-1, nil)
		want(hubv1alpha1.PublicationPartial)
		p.Progress.Begin(listing, nil)
		want(hubv1alpha1.PublicationComplete)
	})
}
