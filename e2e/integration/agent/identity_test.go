// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/controllers/agent"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	"github.com/tombolo-mcs/tombolo/internal/liveness"
	aboutv1beta1 "github.com/tombolo-mcs/tombolo/pkg/api/about/v1beta1"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TestIdentity: an agent takes its ID from the cluster, stops rather than change it, and waits for one where there is none or none
// that can be one.
//
// spec: K1, K2, N7
func TestIdentity(t *testing.T) {
	t.Parallel()
	w, a, _ := newPair(t)
	ended := a.Run(t.Context(), t, func(o *agent.Options) { o.ClusterID = "from-the-flag" })
	world.Eventually(t, func(ctx context.Context) error { return a.says(ctx, w, hubv1alpha1.PublicationComplete) })

	property := world.Read(t, a, key{Name: aboutv1beta1.ClusterIDProperty}, &aboutv1beta1.ClusterProperty{})
	property.Spec.Value = "other"
	lab.Must(t, a.Update(t.Context(), property))
	err := <-ended
	want := `the ClusterProperty cluster.clusterset.k8s.io has changed from "a" to "other": a cluster keeps its ID while it is a member; ` +
		`set it back, or let the cluster leave the clusterset and join again under the new ID`
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the agent ended with %v, want: %s", err, want)
	}

	lab.Must(t, a.Delete(t.Context(), property))
	address := lab.FreeAddress(t)
	a.Start(t, func(o *agent.Options) { o.ClusterID, o.ProbeAddress = "", address })
	waits := func(why string) {
		t.Helper()
		world.Eventually(t, func(context.Context) error {
			return answers("http://"+address+"/readyz/started", http.StatusInternalServerError, why)
		})
		lab.Must(t, answers("http://"+address+"/healthz", http.StatusOK, "ok"))
	}
	waits("the cluster ID is empty: set the ClusterProperty cluster.clusterset.k8s.io, or pass --cluster-id")
	property = &aboutv1beta1.ClusterProperty{ObjectMeta: metav1.ObjectMeta{Name: aboutv1beta1.ClusterIDProperty}}
	property.Spec.Value = "Not.Legal"
	lab.Must(t, a.Create(t.Context(), property))
	waits(`ClusterProperty cluster.clusterset.k8s.io: cluster ID "Not.Legal" is no DNS label`)
	property.Spec.Value = "a"
	lab.Must(t, a.Update(t.Context(), property))
	world.Eventually(t, func(context.Context) error { return answers("http://"+address+"/readyz", http.StatusOK, "ok") })
}

// TestForeignID: a cluster that bears another's ID, or none that the hub knows, publishes nothing and says why. What it
// has imported as itself stays as it is.
//
// spec: K2, C2, I2
//
//nolint:tparallel // each test begins where the one before it ends
func TestForeignID(t *testing.T) {
	t.Parallel()
	w, a, b := newPair(t)
	kill := a.Start(t)
	space := world.Namespace(t, a, b)
	theirs := key{Namespace: space, Name: "theirs"}
	a.ExportWeb(t, theirs, "10.1.0.1")
	stop := b.Start(t)
	b.Endpoints(t, theirs, "a 10.1.0.1:http:8080")
	a.Condition(t, theirs, conflict, metav1.ConditionFalse, "NoConflicts")
	both := key{Namespace: space, Name: "both"} // its own endpoints do not become the other's
	for m, address := range map[*member]string{a: "10.1.0.2", b: "10.2.0.2"} {
		m.ExportWeb(t, both, address)
	}
	b.Endpoints(t, both, "a 10.1.0.2:http:8080", "b 10.2.0.2:http:8080")
	w.settled(t)
	stop()
	before := w.versions(t, theirs)
	shared := b.holdings(t, both)

	k := key{Namespace: space, Name: "web"}
	lab.Must(t, b.Delete(t.Context(), &aboutv1beta1.ClusterProperty{ObjectMeta: metav1.ObjectMeta{Name: aboutv1beta1.ClusterIDProperty}}))
	t.Run("with its own token", func(t *testing.T) {
		stop := b.Start(t, func(o *agent.Options) { o.ClusterID = "a" })
		world.Eventually(t, func(context.Context) error {
			if output := b.Output.Tail(80); !strings.Contains(output, `the token for the hub is that of member \"b\", but this cluster says that it is \"a\"`) {
				return fmt.Errorf("the agent says:\n%s", output)
			}
			return nil
		})
		stop()
	})
	for _, test := range []struct {
		id   string
		with *rest.Config
		want string
	}{
		{"a", a.Hub, `The hub refuses the export: another cluster (kube-system UID ` + a.UID(t) + `) is a member of the clusterset under the ID "a": ` +
			`give one of the two another ID and let it join again, or wait until the other has been silent for 2m0s`},
		{"nobody", w.Hub.Config(), `The hub refuses the export: it has no Member for cluster ID "nobody"; the hub's administrator lets the cluster join first`},
	} {
		t.Run(test.id, func(t *testing.T) {
			stop := b.Start(t, func(o *agent.Options) {
				o.ClusterID, o.Hub, o.HeartbeatInterval = test.id, test.with, 30*time.Second
			})
			b.ExportWeb(t, k)
			c := b.Condition(t, k, ready, metav1.ConditionFalse, "Failed")
			if c.Message != test.want {
				t.Errorf("message %q\nwant    %q", c.Message, test.want)
			}
			stop()
			if diff := cmp.Diff(shared, b.holdings(t, both)); diff != "" && test.id == "a" {
				t.Errorf("what both export has changed (-before +after):\n%s", diff)
			}
			world.Delete(t, b, world.Export(k), world.Service(k))
		})
	}
	lab.Equal(t, "what was imported has changed", before, w.versions(t, theirs))
	for _, r := range world.List(t, w.HubClient, &hubv1alpha1.PublishedServiceList{}).Items {
		if r.Spec.Service == hubv1alpha1.ServiceName(k.Name) {
			t.Errorf("published all the same: %+v", r)
		}
	}

	// A cluster that was created again gets its ID back if the old one is silent.
	b.Start(t, func(o *agent.Options) { o.ClusterID, o.Hub, o.HeartbeatInterval = "a", a.Hub, 3*time.Second })
	for range liveness.GracePeriods {
		a.beats(t, w)
	}
	owner := func(ctx context.Context, want *member) error {
		heartbeat := &hubv1alpha1.Heartbeat{}
		err := w.HubClient.Get(ctx, key{Namespace: "member-a", Name: hubv1alpha1.HeartbeatName}, heartbeat)
		if err == nil && heartbeat.Spec.ClusterUID != want.UID(t) {
			err = fmt.Errorf("the ID is not that of cluster %s", want.ID)
		}
		return err
	}
	lab.Must(t, owner(t.Context(), a))
	kill()
	world.Eventually(t, func(ctx context.Context) error { return owner(ctx, b) })
}

type properties = map[string]hubv1alpha1.PropertyValue

// TestProperties: an agent shows the properties of its Member, and leaves the user's own alone. The hub refuses what no ClusterProperty
// can show.
//
// spec: A5
func TestProperties(t *testing.T) {
	t.Parallel()
	w, a, _ := newPair(t)
	a.Start(t)
	testProperties(t, w)
	own := world.Read(t, w.HubClient, key{Namespace: "member-a", Name: hubv1alpha1.MemberName}, &hubv1alpha1.Member{})
	isRefused := func(given properties, want string) {
		t.Helper()
		changed := own.DeepCopy()
		changed.Spec.Properties = given
		if err := w.HubClient.Update(t.Context(), changed); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("properties %.100v: %v, want: %s", given, err, want)
		}
	}
	for _, name := range []string{"Region", "cluster.clusterset.k8s.io", "clusterset.k8s.io", "a/b", strings.Repeat("x", 254)} {
		isRefused(properties{name: "eu"}, "the name of a property is that of a ClusterProperty")
	}
	for _, given := range []properties{{"region": ""}, {"region": hubv1alpha1.PropertyValue(strings.Repeat("x", 254))}, manyProperties(33)} {
		isRefused(given, "spec.properties")
	}
}

func manyProperties(n int) properties {
	result := properties{}
	for i := range n {
		result[fmt.Sprintf("p%d", i)] = "x"
	}
	return result
}

// testProperties creates, changes, restores and deletes the properties of a, whose agent runs.
func testProperties(t *testing.T, w *env) {
	a := w.members["a"]
	own := &aboutv1beta1.ClusterProperty{ObjectMeta: metav1.ObjectMeta{Name: "tier"}, Spec: aboutv1beta1.ClusterPropertySpec{Value: "silver"}}
	lab.Must(t, a.Create(t.Context(), own))
	set := func(p properties) {
		t.Helper()
		w.ChangeMember(t, "a", func(s *hubv1alpha1.MemberSpec) { s.Properties = p })
	}
	shows := func(want map[string]string) {
		t.Helper()
		world.Eventually(t, func(ctx context.Context) error {
			list := &aboutv1beta1.ClusterPropertyList{}
			if err := a.List(ctx, list, client.MatchingLabels{clusterset.LabelManagedBy: clusterset.ManagedBy}); err != nil {
				return err
			}
			got := map[string]string{}
			for _, p := range list.Items {
				got[p.Name] = p.Spec.Value
			}
			if diff := cmp.Diff(want, got); diff != "" {
				return fmt.Errorf("ClusterProperties (-want +got):\n%s", diff)
			}
			return nil
		})
	}
	set(properties{"region": "eu", "tier": "gold"})
	shows(map[string]string{"region": "eu"})
	region := &aboutv1beta1.ClusterProperty{}
	world.Update(t, a, key{Name: "region"}, region, func() { region.Spec.Value = "mars" })
	shows(map[string]string{"region": "eu"})
	lab.Must(t, a.Delete(t.Context(), region))
	set(properties{"region": "us", "zone.example.com": "us-1", "tier": "gold"})
	shows(map[string]string{"region": "us", "zone.example.com": "us-1"})
	a.Event(t, key{Name: own.Name}, "PropertyObstructed", "another value")
	lab.Must(t, a.Delete(t.Context(), own))
	shows(map[string]string{"region": "us", "zone.example.com": "us-1", "tier": "gold"})
	set(nil)
	shows(map[string]string{})
}
