// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// members are the Members on a hub.
type members []hubv1alpha1.Member

func (m members) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	panic("no code reads a single object")
}

// List lists the Members, and no objects of other kinds.
func (m members) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	if list, ok := into.(*hubv1alpha1.MemberList); ok {
		list.Items = m
	}
	return nil
}

// TestLocalAge: the local export has the age that other members compute, not the one that its ServiceExport claims, so that all
// members merge to the same result. Before the hub has recorded the export and its limits, it is younger than any other.
//
// spec: R7, R8
func TestLocalAge(t *testing.T) {
	t.Parallel()
	recorded := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	record := &hubv1alpha1.PublishedService{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(recorded)}}
	member := func(id clusterset.ClusterID, ages hubv1alpha1.ClaimedAges) hubv1alpha1.Member {
		return hubv1alpha1.Member{
			ObjectMeta: metav1.ObjectMeta{Namespace: id.HubNamespace(), Name: hubv1alpha1.MemberName},
			Spec:       hubv1alpha1.MemberSpec{ClusterID: string(id), ClaimedAges: ages},
		}
	}
	const bounded, trusted = hubv1alpha1.ClaimedAgesBounded, hubv1alpha1.ClaimedAgesTrusted
	for name, tc := range map[string]struct {
		members members
		record  *hubv1alpha1.PublishedService
		claimed time.Duration // relative to the record
		want    time.Time
	}{
		"an hour older than its record, bounded": {members{member("own", bounded)}, record, -time.Hour, recorded.Add(-10 * time.Minute)},
		"an hour older, and nothing is said":     {members{member("own", "")}, record, -time.Hour, recorded.Add(-10 * time.Minute)},
		"an hour older, trusted":                 {members{member("own", trusted)}, record, -time.Hour, recorded.Add(-time.Hour)},
		"an hour older, another is trusted":      {members{member("own", bounded), member("b", trusted)}, record, -time.Hour, recorded.Add(-10 * time.Minute)},
		"a minute older":                         {members{member("own", bounded)}, record, -time.Minute, recorded.Add(-time.Minute)},
		"younger than its record":                {members{member("own", bounded)}, record, time.Minute, recorded.Add(time.Minute)},
		"no record":                              {members{member("own", bounded)}, nil, -time.Hour, unrecorded},
		"no record, trusted":                     {members{member("own", trusted)}, nil, -time.Hour, unrecorded},
		"no Member":                              {members{member("b", trusted)}, record, -time.Hour, unrecorded},
		"neither":                                {nil, nil, -time.Hour, unrecorded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen, err := hub.Read(t.Context(), tc.members)
			check.Must(t, err)
			known := seen.Store("own", clusterset.AddressRanges{}).Service(clusterset.ServiceKey{Namespace: "shop", Name: "web"})
			known.Local = tc.record
			if got := effectiveAge(recorded.Add(tc.claimed), known); !got.Equal(tc.want) {
				t.Errorf("age %s, want %s", got, tc.want)
			}
		})
	}
}
