// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hub_test proves what the hub's manifests promise, against a real API server with real
// controllers and the real tokens of members: each act that is forbidden is tried and refused with a message that says
// what to do, and each that is allowed works.
package hub_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TestHub runs everything on one hub with the members a and b. Each part cleans up behind itself.
func TestHub(t *testing.T) {
	h := start(t)
	h.a = h.join(t, manifests.MemberOptions{
		ClusterID:    "a",
		PodCIDRs:     prefixes("10.1.0.0/16", "fd00:1::/32"),
		NodeCIDRs:    prefixes("192.0.2.0/28", "2001:db8:1::/64"),
		ServiceCIDRs: prefixes("10.96.0.0/16"),
	})
	// So wide that only the kind of an address can be wrong.
	h.b = h.join(t, manifests.MemberOptions{ClusterID: "b", PodCIDRs: prefixes("0.0.0.0/0", "::/0")})

	t.Run("Rights", h.testRights)
	t.Run("Members", h.testMembers)
	t.Run("Addresses", h.testAddresses)
	t.Run("Networks", h.testNetworks)
	t.Run("Gateways", h.testGateways)
	t.Run("Namespaces", h.testNamespaces)
	t.Run("Metadata", h.testMetadata)
	t.Run("Services", h.testServices)
	t.Run("Endpoints", h.testEndpoints)
	t.Run("Heartbeats", h.testHeartbeats)
	t.Run("Deletions", h.testDeletions)
	t.Run("Ages", h.testAges)
	t.Run("Limits", h.testLimits)
	t.Run("Quota", h.testQuota)
	t.Run("WithoutMember", h.testWithoutMember)
	t.Run("Leave", h.testLeave)
}

// hub is the API server under test, as its administrator sees it.
type hub struct {
	cluster *lab.Cluster
	admin   client.Client
	a, b    *member
}

// member is the hub as one member's agent sees it.
type member struct {
	client.Client
	id        clusterset.ClusterID
	namespace string
	config    *rest.Config
	objects   []*unstructured.Unstructured
}

// persistent creates again where it lost a race for the quota, which every creation and every count updates.
type persistent struct{ client.Client }

func (p persistent) Create(ctx context.Context, o client.Object, options ...client.CreateOption) error {
	backoff := wait.Backoff{Duration: 20 * time.Millisecond, Factor: 1.5, Steps: 12}
	return retry.OnError(backoff, apierrors.IsConflict, func() error { return p.Client.Create(ctx, o, options...) })
}

// start returns a hub with everything installed, and no members. Its API server has more arguments.
func start(t *testing.T, args ...string) *hub {
	t.Helper()
	options := membership.Hub()
	options.APIServerArgs = append(options.APIServerArgs, args...)
	h := &hub{cluster: lab.Start(t, options).Cluster("hub")}
	h.admin = persistent{membership.Client(t, h.cluster)}
	lab.Must(t, membership.InitHub(t.Context(), h.cluster))
	return h
}

// join admits a member until the test ends, and returns what its agent can do, once each policy knows the member in every cache of the
// API server.
func (h *hub) join(t *testing.T, o manifests.MemberOptions) *member {
	t.Helper()
	config, err := membership.Admit(t.Context(), h.cluster, o)
	lab.Must(t, err)
	config.QPS = -1
	agent, err := client.New(config, client.Options{Scheme: h.admin.Scheme()})
	lab.Must(t, err)
	m := &member{Client: persistent{agent}, id: o.ClusterID, namespace: o.ClusterID.HubNamespace(), config: config}
	m.objects, err = manifests.Member(o)
	lab.Must(t, err)
	t.Cleanup(func() { h.leave(t, m) })
	for _, bad := range []client.Object{
		m.service(func(s *hubv1alpha1.PublishedService) { s.Labels = map[string]string{"a": "b"} }),
		m.service(inNamespace("kube-system")),
	} {
		awaitRefusal(t, func(ctx context.Context) error { return h.admin.Create(ctx, bad, client.DryRunAll) })
	}
	return m
}

func awaitRefusal(t *testing.T, request func(context.Context) error) {
	t.Helper()
	world.Eventually(t, func(ctx context.Context) error {
		if request(ctx) == nil {
			return errors.New("it was accepted")
		}
		return nil
	})
}

// checkError fails the test unless err holds the text, or is nil if the text is empty.
func checkError(t *testing.T, err error, text string) {
	t.Helper()
	switch {
	case text == "" && err != nil:
		t.Errorf("refused: %v", err)
	case text != "" && err == nil:
		t.Errorf("accepted, want: %s", text)
	case text != "" && !strings.Contains(err.Error(), text):
		t.Errorf("refused with:\n%v\nwant:\n%s", err, text)
	}
}

// try writes a record that a change has made, once as a new one and once as an update of a good one, and checks that both
// are refused with a text, or accepted if it is empty. A change of the name cannot be an update.
func try[T client.Object](t *testing.T, c client.Client, good func() T, change func(T), text string) {
	t.Helper()
	t.Run("create", func(t *testing.T) {
		object := good()
		change(object)
		tryNew(t, c, object, text)
	})
	changed := good()
	change(changed)
	if changed.GetName() != good().GetName() {
		return
	}
	t.Run("update", func(t *testing.T) {
		object := good()
		lab.Must(t, c.Create(t.Context(), object))
		change(object)
		checkError(t, c.Update(t.Context(), object), text)
		remove(t, c, object)
	})
}

// tryNew creates an object, checks that it is refused with a text, or accepted if it is empty, and deletes it.
func tryNew(t *testing.T, c client.Client, object client.Object, text string) {
	t.Helper()
	checkError(t, c.Create(t.Context(), object), text)
	remove(t, c, object)
}

func remove(t *testing.T, c client.Client, object client.Object) {
	t.Helper()
	if err := client.IgnoreNotFound(c.Delete(t.Context(), object)); err != nil && object.GetName() != "" {
		t.Error(err)
	}
}

func prefixes[T ~string](cidrs ...T) []netip.Prefix {
	out := make([]netip.Prefix, 0, len(cidrs))
	for _, cidr := range cidrs {
		out = append(out, netip.MustParsePrefix(string(cidr)))
	}
	return out
}
