// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile_test

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// layer is what refuses an act.
type layer string

const (
	identity layer = "authentication"
	rights   layer = "rights"     // RBAC on the hub
	server   layer = "API server" // Kubernetes' own rules for names and metadata
	schemas  layer = "schema"     // the hub's CRDs
	policies layer = "policy"     // the hub's admission policies
	quota    layer = "quota"      // the member's
	importer layer = "importer"   // by itself
	pacer    layer = "pacer"      // the importer's, which lets part of it through
	noLayer  layer = "no one"     // it does no harm
)

// setup is a hub from which fences are missing.
type setup struct {
	name    string
	missing []layer
}

var (
	asReleased      = setup{"as released", nil}
	withoutPolicies = setup{"without policies", []layer{policies}}
	withoutSchemas  = setup{"without policies and schemas", []layer{policies, schemas}}
)

// refusal is a layer that an act meets, and what it says.
type refusal struct {
	by     layer
	says   string
	policy string
	// reason is that of the importer's Event; empty for RecordRefused.
	reason string
}

func byRights(says string) refusal   { return refusal{by: rights, says: says} }
func byServer(says string) refusal   { return refusal{by: server, says: says} }
func bySchema(says string) refusal   { return refusal{by: schemas, says: says} }
func byImporter(says string) refusal { return refusal{by: importer, says: says} }

func byPolicy(name, says string) refusal {
	return refusal{by: policies, says: says, policy: name + ".hub.tombolo-mcs.io"}
}

// act is something that a hostile member tries with its own credentials.
type act struct {
	name string
	try  func(context.Context, *attempt) error
	// refused has the fences that it meets, in the order in which it does. After the last one nothing refuses it.
	refused []refusal
	// service is the one that it is about; empty for one of its own.
	service key
	// rest says that an importer takes the service without what it refuses of it.
	rest bool
	// harmless says what comes of an act that nothing refuses. check sees to it, or to what else comes of one that an importer does.
	harmless string
	check    check
}

// refused returns an act that these refusals meet.
func refused(name string, try try, by ...refusal) act { return act{name: name, try: try, refused: by} }

// refusedPart returns an act of which an importer refuses only a part.
func refusedPart(name string, try try, by ...refusal) act {
	return act{name: name, try: try, refused: by, rest: true}
}

// publishing returns an act that writes good records of a service.
func publishing(name string, k key, by ...refusal) act {
	return act{name: name, try: writeService(func(*published) {}), refused: by, service: k}
}

// otherwise returns the act with what comes of it if nothing refuses it.
func (a act) otherwise(harmless string, check check) act {
	a.harmless, a.check = harmless, check
	return a
}

// harmless returns an act that nothing refuses.
func harmless(name string, try try, why string, check check) act {
	return act{name: name, try: try}.otherwise(why, check)
}

// refuser returns the layer that an act meets first.
func (a act) refuser(s setup) refusal {
	for _, r := range a.refused {
		if !slices.Contains(s.missing, r.by) {
			return r
		}
	}
	return refusal{by: noLayer, says: a.harmless}
}

// outcome says for people what comes of an act.
func (a act) outcome(s setup) string {
	r := a.refuser(s)
	switch r.by {
	case noLayer:
		if a.refuser(asReleased).by == noLayer && len(s.missing) > 0 { // that is said already
			return "not refused"
		}
		return "not refused: " + a.harmless
	case policies:
		return "policy " + strings.TrimSuffix(r.policy, ".hub.tombolo-mcs.io")
	case identity, server, rights, schemas, quota, importer, pacer:
	}
	return string(r.by)
}

// shown says where it can be seen that an act was refused.
func (a act) shown(s setup) string {
	switch a.refuser(s).by {
	case rights, server, schemas, quota:
		return "audit log"
	case policies:
		return "audit log, metric"
	case importer:
		return "Event, metric"
	case identity, pacer, noLayer:
	}
	return "-"
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// slug is the act's name as a part of names.
func (a act) slug() string { return notInNames.ReplaceAllString(strings.ToLower(a.name), "-") }

func (a act) key() key {
	if a.service.Name != "" {
		return a.service
	}
	return key{Namespace: "hostile", Name: a.slug()}
}

// attempt is one act on one hub: the client has the hostile member's credentials, and names the act in the audit log.
type attempt struct {
	client.Client
	*env
	key key
}

// Create creates again where it lost a race for the quota, which every creation and every count updates.
func (a *attempt) Create(ctx context.Context, o client.Object, options ...client.CreateOption) error {
	backoff := wait.Backoff{Duration: 20 * time.Millisecond, Factor: 1.5, Steps: 12}
	return retry.OnError(backoff, apierrors.IsConflict, func() error { return a.Client.Create(ctx, o, options...) })
}

// records returns good ones of the attempt's service.
func (a *attempt) records() (*hubv1alpha1.PublishedService, *hubv1alpha1.PublishedEndpoints) {
	return world.Records("mallory", a.key, "10.66.0.1")
}

// write creates objects in their order, and returns the first refusal.
func (a *attempt) write(ctx context.Context, objects ...client.Object) error {
	for _, o := range objects {
		if err := a.Create(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

type (
	try   = func(context.Context, *attempt) error
	check = func(*testing.T, *env, key)
)

// writeService writes a service whose record is changed, and a good record of endpoints.
func writeService(change func(*published)) try {
	return func(ctx context.Context, a *attempt) error {
		service, endpoints := a.records()
		change(service)
		return a.write(ctx, service, endpoints)
	}
}

// writeEndpoints writes a service whose record of endpoints is changed.
func writeEndpoints(change func(*endpoints)) try {
	return func(ctx context.Context, a *attempt) error {
		service, endpoints := a.records()
		change(endpoints)
		return a.write(ctx, endpoints, service)
	}
}

// writeAddress writes a service with a good address and another one.
func writeAddress(address string) try {
	return writeEndpoints(func(e *endpoints) {
		e.Spec.Groups[0].Addresses = append(e.Spec.Groups[0].Addresses, hubv1alpha1.IPAddress(address))
	})
}

// writeField writes a service whose record of a kind has something in its spec that no agent would write.
func writeField(kind, field string, value any) try {
	return func(ctx context.Context, a *attempt) error {
		service, endpoints := a.records()
		first, second := client.Object(service), client.Object(endpoints)
		if kind == "PublishedEndpoints" {
			first, second = second, first
		}
		odd, err := withField(first, kind, field, value)
		if err != nil {
			return err
		}
		return a.write(ctx, odd, second)
	}
}

// withField returns an object of a kind with another value in a field of its spec.
func withField(o client.Object, kind, field string, value any) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, err
	}
	odd := &unstructured.Unstructured{Object: content}
	odd.SetGroupVersionKind(hubv1alpha1.GroupVersion.WithKind(kind))
	return odd, unstructured.SetNestedField(odd.Object, value, "spec", field)
}

// run tries an act and checks that it comes out as it has to, and nothing worse.
func (w *env) run(t *testing.T, a act, s setup) {
	t.Helper()
	want, k := a.refuser(s), a.key()
	err := a.try(t.Context(), w.attempt(t, a.slug(), k))
	switch want.by {
	case importer:
		lab.Must(t, err)
		w.c.Event(t, k, cmp.Or(want.reason, "RecordRefused"), want.says)
		if a.rest {
			w.c.Imported(t, k)
		} else if k.Namespace == "hostile" {
			w.c.absent(t, k)
		}
		if a.check != nil {
			a.check(t, w, k)
		}
	case noLayer:
		lab.Must(t, err)
		if a.check == nil {
			t.Fatalf("%s: no layer refuses it", a.name)
		}
		a.check(t, w, k)
	case identity, rights, server, schemas, policies, quota, pacer:
		if problem := want.differs(err); problem != nil {
			t.Fatal(problem)
		}
	}
}

// differs returns nil where an error is this refusal.
func (r refusal) differs(err error) error {
	switch {
	case err == nil:
		return fmt.Errorf("the hub takes it; want: %s", r.says)
	case !strings.Contains(err.Error(), r.says):
		return fmt.Errorf("the hub says:\n%w\nwant:\n%s", err, r.says)
	case r.by == policies && !strings.Contains(err.Error(), fmt.Sprintf("ValidatingAdmissionPolicy '%s'", r.policy)):
		return fmt.Errorf("not refused by policy %s: %w", r.policy, err)
	case r.by == rights && !apierrors.IsForbidden(err):
		return fmt.Errorf("not refused for want of rights: %w", err)
	case (r.by == schemas || r.by == server) && !apierrors.IsInvalid(err):
		return fmt.Errorf("not refused as invalid: %w", err)
	}
	return nil
}
