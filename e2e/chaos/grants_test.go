// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	framework "github.com/tombolo-mcs/tombolo/e2e/framework/world"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// beforeGrants is the last commit whose agents do not know that exports are granted to some clusters only.
const beforeGrants = "0c7888cc9a7a404acbf8287824063caf4fd5a27b"

// An agent that does not know grants imports nothing that is granted to some clusters only, not even if it is granted to its own. An import
// goes away when its export is granted to some.
//
// spec: A1
func TestAgentWithoutGrants(t *testing.T) {
	t.Parallel()
	if os.Getenv("CHAOS") == "" {
		t.Skip("make chaos runs it")
	}
	w, a := worldOfCommit(t, beforeGrants)
	k := framework.Key{Namespace: framework.Namespace(t, a), Name: "web"}
	grantedTo := func(clusters ...hubv1alpha1.GrantedCluster) func(*hubv1alpha1.PublishedService) {
		return func(s *hubv1alpha1.PublishedService) {
			s.Spec.Inactive, s.Spec.GrantedTo = true, &hubv1alpha1.GrantedTo{Clusters: clusters}
		}
	}
	for _, id := range []string{"all", "some", "others"} {
		w.Enroll(t, id)
	}
	w.Publish(t, "some", k, grantedTo("a"), "10.99.0.2")
	w.Publish(t, "others", k, grantedTo("b"), "10.99.0.3")
	w.Publish(t, "all", k, nil, "10.99.0.1")
	a.Endpoints(t, k, "all 10.99.0.1:http:8080")
	framework.Eventually(t, func(context.Context) error {
		imported, _ := a.Imported(t, k)
		if from := imported.Status.Clusters; len(from) != 1 || from[0].Cluster != "all" {
			return fmt.Errorf("imported from %v", from)
		}
		return nil
	})
	record := &hubv1alpha1.PublishedService{}
	framework.Update(t, w.HubClient, framework.Key{Namespace: "member-all", Name: k.Namespace + "." + k.Name}, record, func() { grantedTo("a")(record) })
	a.Gone(t, k)
}
