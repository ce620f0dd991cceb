// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/chaos/oracle"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	framework "github.com/tombolo-mcs/tombolo/e2e/framework/world"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// first is the oldest version that a member may have beside members and a hub of this one. The first release takes its place:
// until there is one, it is the last commit whose agents keep a record only as long as the Service exists. (Earlier ones read
// the hub's records and the state of its list in two steps, and may delete slices for a moment when they start.)
const (
	first        = "c379e276c60417c18a7b66c18f5dcef5cf90f9a8"
	firstVersion = "v0.0.0-first"
)

// firstProgram is the executable of that version's agent, built once for all tests.
var firstProgram = sync.OnceValues(func() (string, error) {
	folder := filepath.Join(programFolder, "first")
	if err := checkOut(first, folder); err != nil {
		return "", err
	}
	path := filepath.Join(programFolder, "tombolo-agent-first")
	return path, lab.Build(context.Background(), folder, "tombolo-agent", path, "-ldflags=-X main.version="+firstVersion)
})

// checkOut writes the module as it was at a commit into a folder.
func checkOut(commit, folder string) error {
	archive := folder + ".tar"
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if output, err := exec.Command("git", "-C", "../..", "archive", "--output="+archive, commit).CombinedOutput(); err != nil {
		return fmt.Errorf("read commit %s: %w: %s; a clone without history gets it by: git fetch --unshallow", commit, err, output)
	}
	if output, err := exec.Command("tar", "-x", "-f", archive, "-C", folder).CombinedOutput(); err != nil {
		return fmt.Errorf("unpack commit %s: %w\n%s", commit, err, output)
	}
	return nil
}

// rolledBack rolls the members back to the first version, one after the other, and brings them to this one again. Whatever
// versions there are beside each other, services cross in both directions.
func rolledBack(ctx context.Context, w *world) error {
	old, err := firstProgram()
	w.must(err)
	for _, m := range w.members { // the first version deletes a record with its Service
		w.watch.will(oracle.Loss, m.id, oracle.Key{})
	}
	for _, path := range []string{old, w.members[0].agent.path} {
		for i, m := range w.members {
			other := w.members[(i+1)%len(w.members)]
			if err := errors.Join(m.agent.become(path), w.awaitVersion(ctx, m, path == old), w.crosses(ctx, m, other)); err != nil {
				return fmt.Errorf("%s with %s: %w", m.id, filepath.Base(path), err)
			}
		}
	}
	return nil
}

// awaitVersion returns when a member's heartbeat reports that its agent is of the first version, or of another one.
func (w *world) awaitVersion(ctx context.Context, m *member, asFirst bool) error {
	beat := &hubv1alpha1.Heartbeat{ObjectMeta: metav1.ObjectMeta{Namespace: "member-" + m.id, Name: hubv1alpha1.HeartbeatName}}
	return shown(ctx, w.hubKube, client.ObjectKeyFromObject(beat), beat, func() error {
		if (beat.Spec.AgentVersion == firstVersion) != asFirst {
			return fmt.Errorf("the agent of %s is %s: %w", m.id, beat.Spec.AgentVersion, errNoEffect)
		}
		return nil
	})
}

// crosses has two members export a service and returns when each has imported the other's.
func (w *world) crosses(ctx context.Context, one, other *member) error {
	k := oracle.Key{Namespace: scratch, Name: "crossing"}
	for _, m := range []*member{one, other} {
		w.must(w.offer(ctx, m, service(k, 0), w.random))
	}
	arrived := func(ctx context.Context, in, from *member) error {
		found := &mcsv1beta1.ServiceImport{}
		mirrored, err := in.mirrored(ctx, k, from.id)
		switch {
		case err != nil:
			return err
		case len(mirrored) == 0:
			return fmt.Errorf("%s has no endpoint of %s", in.id, from.id)
		}
		if err := in.Get(ctx, k, found); err != nil {
			return err
		}
		if len(found.Status.Clusters) != 2 {
			return fmt.Errorf("%s knows %v as exporters of %s", in.id, found.Status.Clusters, k)
		}
		return nil
	}
	err := eventually(ctx, func(ctx context.Context) error {
		return errors.Join(arrived(ctx, one, other), arrived(ctx, other, one))
	})
	return errors.Join(err, w.withdraw(ctx, one, k), w.withdraw(ctx, other, k))
}

// TestFirstVersionInHistory: what rolledBack rolls back to can be had from the history.
func TestFirstVersionInHistory(t *testing.T) {
	t.Parallel()
	if err := exec.Command("git", "cat-file", "-e", first).Run(); err != nil {
		lab.Skip(t, "the clone has no history")
	}
	lab.Must(t, exec.Command("git", "merge-base", "--is-ancestor", first, "HEAD").Run())
}

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
	lab.Must(t, lab.Build(context.Background(), folder, "tombolo-agent", program))
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
