// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TestUnread: what is named as unread. Of all contexts of a kubeconfig, those that do not answer count only if members are missing.
func TestUnread(t *testing.T) {
	t.Parallel()
	down := errors.New("connection refused")
	at := func(name string) KubeContext {
		return KubeContext{Name: name, Config: &rest.Config{Host: "https://" + name}}
	}
	unreached := []Unreached{{"hub", "", down}, {"west", "", down}, {"stranger", "", fmt.Errorf("%w: another clusterset's", ErrNotMember)}}
	for name, test := range map[string]struct {
		hub       *Hub
		selection Selection
		want      string
	}{
		"no hub":              {UnreadHub(at("hub"), down), Named, "the hub (context hub), context west"},
		"no hub, all":         {UnreadHub(at("hub"), down), All, "the hub (context hub), context west"},
		"an unknown hub":      {UnreadHub(KubeContext{}, ErrNoHub), All, "the hub, context hub, context west"},
		"a named context":     {hubWith(t, "west"), Named, "context west"},
		"a member is missing": {hubWith(t, "west"), All, "context west"},
		"no member is":        {hubWith(t), All, ""},
	} {
		if test.hub.Err == nil {
			test.hub.KubeContext = at("hub")
		}
		var got []string
		for _, u := range (FindOptions{Selection: test.selection}).unread(&Clusterset{Hub: test.hub, Unreached: unreached}) {
			subject, _, _ := strings.Cut(u.String(), " could not be read: ")
			got = append(got, subject)
		}
		check.Equal(t, name, test.want, strings.Join(got, ", "))
	}
}

// onlyMembers is a hub with Members and nothing else.
type onlyMembers struct {
	client.Reader
	items []hubv1alpha1.Member
}

// List returns the Members.
func (o onlyMembers) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if members, ok := list.(*hubv1alpha1.MemberList); ok {
		members.Items = o.items
	}
	return nil
}

// hubWith returns a hub with members.
func hubWith(t *testing.T, ids ...clusterset.ClusterID) *Hub {
	t.Helper()
	var members onlyMembers
	for _, id := range ids {
		m := hubv1alpha1.Member{ObjectMeta: metav1.ObjectMeta{Namespace: id.HubNamespace(), Name: hubv1alpha1.MemberName}}
		m.Spec.ClusterID = string(id)
		members.items = append(members.items, m)
	}
	snapshot, err := hub.Read(t.Context(), members)
	check.Must(t, err)
	return NewHub(KubeContext{}, snapshot, time.Now())
}
