// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	framework "github.com/tombolo-mcs/tombolo/e2e/framework/world"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// beforeNetworks is the last commit whose agents do not know networks, availability and gateways.
const beforeNetworks = "3d38b75de35f5e71ef2aa2e12b16cd5292a4179d"

// An agent that does not know networks uses no address of another network, and its other imports work. Members in networks of their own
// publish addresses in fields that it does not read, or none.
//
// spec: W3
func TestAgentWithoutNetworks(t *testing.T) {
	t.Parallel()
	w, a, k := worldOfCommit(t, beforeNetworks)
	for _, id := range []string{"near", "far", "hidden"} {
		w.Enroll(t, id)
	}
	w.ChangeMember(t, "far", func(s *hubv1alpha1.MemberSpec) { s.Network = "cloud" })
	w.ChangeMember(t, "hidden", func(s *hubv1alpha1.MemberSpec) { s.Network, s.Publish = "attic", hubv1alpha1.PublishAvailability })
	w.Publish(t, "near", k, nil, "10.99.0.1")
	available := func(s *hubv1alpha1.PublishedService) { s.Spec.Ports[0].Available = new(int32(2)) }
	w.Publish(t, "hidden", k, available)
	service, endpoints := framework.Records("far", k)
	available(service)
	endpoints.Spec.InNetwork = &hubv1alpha1.NetworkEndpoints{
		Network: "cloud", Groups: []hubv1alpha1.EndpointGroup{{Addresses: []hubv1alpha1.IPAddress{"10.99.0.2"}, Ready: new(true)}},
	}
	endpoints.Spec.Groups = nil
	lab.Must(t, w.HubClient.Create(t.Context(), endpoints))
	lab.Must(t, w.HubClient.Create(t.Context(), service))

	framework.Eventually(t, func(ctx context.Context) error {
		mirrored, err := a.Mirrored(ctx, k)
		if err != nil {
			return err
		}
		used, from := framework.Addresses(mirrored...), exporters(t, a, k)
		if !slices.Equal(used, []string{"10.99.0.1"}) || !slices.Equal(from, []string{"far", "hidden", "near"}) {
			return fmt.Errorf("clusters %v, endpoints %v", from, used)
		}
		return nil
	})
}

// beforeGrants is the last commit whose agents do not know that exports are granted to some clusters only.
const beforeGrants = "0c7888cc9a7a404acbf8287824063caf4fd5a27b"

// An agent that does not know grants imports nothing that is granted to some clusters only, not even if it is granted to its own. An import
// goes away when its export is granted to some.
//
// spec: A1
func TestAgentWithoutGrants(t *testing.T) {
	t.Parallel()
	w, a, k := worldOfCommit(t, beforeGrants)
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
		if from := exporters(t, a, k); !slices.Equal(from, []string{"all"}) {
			return fmt.Errorf("imported from %v", from)
		}
		return nil
	})
	record := &hubv1alpha1.PublishedService{}
	framework.Update(t, w.HubClient, framework.Key{Namespace: "member-all", Name: k.Namespace + "." + k.Name}, record, func() { grantedTo("a")(record) })
	a.Gone(t, k)
}

// exporters returns the clusters of an import.
func exporters(t *testing.T, m *framework.Member, k framework.Key) (from []string) {
	t.Helper()
	imported, _ := m.Imported(t, k)
	for _, c := range imported.Status.Clusters {
		from = append(from, c.Cluster)
	}
	return from
}

// worldOfCommit returns a hub and its member a, whose agent is that of a commit, and a service in a namespace of a.
func worldOfCommit(t *testing.T, commit string) (*framework.World, *framework.Member, framework.Key) {
	t.Helper()
	if os.Getenv("CHAOS") == "" {
		t.Skip("make chaos runs it")
	}
	folder := filepath.Join(programFolder, commit)
	lab.Must(t, checkOut(commit, folder))
	program := folder + "-agent"
	lab.Must(t, build(folder, "tombolo-agent", program))
	w := framework.New(t, membership.Hub(), lab.Member("a"))
	a := w.Members["a"]
	local, err := a.Cluster.ServiceAccountKubeconfig(t.Context(), "tombolo-system", "tombolo-agent")
	lab.Must(t, err)
	remote, err := w.Hub.ServiceAccountKubeconfig(t.Context(), "member-a", "tombolo-agent")
	lab.Must(t, err)
	always := func(context.Context) error { return nil }
	lab.Must(t, a.Cluster.Program(program, always, "--kubeconfig="+local, "--hub-kubeconfig="+remote, "--service-cidrs="+lab.Joined(a.Cluster.ServiceCIDRs),
		"--leader-elect=false", "--metrics-bind-address=0", "--health-probe-bind-address=0").Start(t.Context()))
	return w, a, framework.Key{Namespace: framework.Namespace(t, a), Name: "web"}
}
