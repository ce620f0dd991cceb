// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hub_test proves what the hub's manifests promise (design decisions 2 to 4), against a real API server with real
// controllers and the real tokens of members: each act that is forbidden is tried and refused with a message that says
// what to do, and each that is allowed works.
package hub_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
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
	t.Run("Tokens", h.testTokens)
	t.Run("Members", h.testMembers)
	t.Run("Addresses", h.testAddresses)
	t.Run("Namespaces", h.testNamespaces)
	t.Run("Metadata", h.testMetadata)
	t.Run("Services", h.testServices)
	t.Run("Endpoints", h.testEndpoints)
	t.Run("Heartbeats", h.testHeartbeats)
	t.Run("Deletions", h.testDeletions)
	t.Run("Ages", h.testAges)
	t.Run("Limits", h.testLimits)
	t.Run("Quota", h.testQuota)
	t.Run("Columns", h.testColumns)
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

// start returns a hub with everything installed, and no members.
func start(t *testing.T) *hub {
	t.Helper()
	log.SetLogger(logr.Discard())
	h := &hub{cluster: lab.Start(t, lab.Hub()).Cluster("hub")}
	admin, err := client.New(h.cluster.Config(), client.Options{Scheme: scheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	h.admin = persistent{admin}
	objects, err := manifests.Hub()
	if err != nil {
		t.Fatal(err)
	}
	h.apply(t, objects)
	// kube-controller-manager looks for new kinds every 30 seconds, and when it starts.
	if err := h.cluster.RestartControllers(t.Context()); err != nil {
		t.Fatal(err)
	}
	return h
}

// join admits a member and returns what its agent can do, once that has reached every cache of the API server.
func (h *hub) join(t *testing.T, o manifests.MemberOptions) *member {
	t.Helper()
	objects, err := manifests.Member(o)
	if err != nil {
		t.Fatal(err)
	}
	h.apply(t, objects)
	m := &member{id: o.ClusterID, namespace: o.ClusterID.HubNamespace(), objects: objects}
	m.config = rest.AnonymousClientConfig(h.cluster.Config())
	m.config.BearerToken = h.token(t, m.namespace)
	m.config.QPS = -1
	agent, err := client.New(m.config, client.Options{Scheme: scheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	m.Client = persistent{agent}
	h.awaitQuota(t, m)
	eventually(t, "a good record is accepted", func(ctx context.Context) error {
		good := m.service()
		if len(o.Namespaces) > 0 {
			good = m.service(inNamespace(o.Namespaces[0]))
		}
		return m.Create(ctx, good, client.DryRunAll)
	})
	for _, bad := range []client.Object{
		m.service(func(s *hubv1alpha1.PublishedService) { s.Labels = map[string]string{"a": "b"} }),
		m.service(inNamespace("kube-system")),
		m.endpoints(addresses("127.0.0.1")),
	} {
		eventually(t, "a bad record is refused", func(ctx context.Context) error {
			if err := h.admin.Create(ctx, bad, client.DryRunAll); err == nil {
				return errAccepted
			}
			return nil
		})
	}
	return m
}

// awaitQuota returns when a member's quota counts. Until then it refuses everything ("status unknown for quota"). A quota
// that was made before kube-controller-manager knew the kinds would wait for its next full pass, 5 minutes later; a new one
// is counted at once.
func (h *hub) awaitQuota(t *testing.T, m *member) {
	t.Helper()
	i := slices.IndexFunc(m.objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "ResourceQuota" })
	pause := 2 * time.Second
	eventually(t, "the quota counts", func(ctx context.Context) error {
		quota := &corev1.ResourceQuota{}
		if err := h.admin.Get(ctx, client.ObjectKeyFromObject(m.objects[i]), quota); err != nil {
			return err
		}
		if len(quota.Status.Used) == len(quota.Spec.Hard) {
			return nil
		}
		if time.Since(quota.CreationTimestamp.Time) > pause {
			pause *= 2 // a controller that is merely slow must get its time in the end
			if err := h.admin.Delete(ctx, quota); err != nil {
				return err
			}
			h.apply(t, m.objects[i:i+1])
		}
		return fmt.Errorf("it counts %v", quota.Status.Used)
	})
}

// apply creates or updates objects as "kubectl apply" would.
func (h *hub) apply(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	for _, o := range objects {
		content, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		// A quota counts a kind once its controller knows the kind; a namespace may be new to the admission plugins.
		eventually(t, o.GetKind()+" "+o.GetName()+" is applied", func(ctx context.Context) error {
			return h.cluster.Apply(ctx, content)
		})
	}
}

// token returns one that is bound to the ServiceAccount of a member, as its agent would get it.
func (h *hub) token(t *testing.T, namespace string) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: manifests.MemberServiceAccount}}
	request := &authenticationv1.TokenRequest{}
	if err := h.admin.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientscheme.AddToScheme, hubv1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// patience is how long anything may take on a busy machine.
const patience = 3 * time.Minute

// eventually waits until the condition returns nil.
func eventually(t *testing.T, what string, condition func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var last error
	err := wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		err := condition(ctx)
		if ctx.Err() == nil || last == nil {
			last = err
		}
		return err == nil, nil
	})
	if err != nil {
		t.Fatalf("not within %s: %s: %v", patience, what, last)
	}
}

// checkError fails the test unless err holds the text, or is nil where the text is empty.
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

func prefixes(cidrs ...string) []netip.Prefix {
	out := make([]netip.Prefix, 0, len(cidrs))
	for _, cidr := range cidrs {
		out = append(out, netip.MustParsePrefix(cidr))
	}
	return out
}
