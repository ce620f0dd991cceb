// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Imported returns the import once it is Ready, with its derived Service.
func (m *Member) Imported(t testing.TB, k Key) (*mcsv1beta1.ServiceImport, *corev1.Service) {
	t.Helper()
	return m.ImportedWith(t, k, func(*mcsv1beta1.ServiceImport, *corev1.Service) error { return nil })
}

// ImportedWith returns the import and its derived Service once the import is Ready and check succeeds.
func (m *Member) ImportedWith(t testing.TB, k Key, check func(*mcsv1beta1.ServiceImport, *corev1.Service) error) (*mcsv1beta1.ServiceImport, *corev1.Service) {
	t.Helper()
	var serviceImport *mcsv1beta1.ServiceImport
	var derived *corev1.Service
	Eventually(t, func(ctx context.Context) error {
		serviceImport, derived = &mcsv1beta1.ServiceImport{}, &corev1.Service{}
		if err := m.Get(ctx, k, serviceImport); err != nil {
			return fmt.Errorf("%s: %w", m.ID, err)
		}
		if !meta.IsStatusConditionTrue(serviceImport.Status.Conditions, string(mcsv1beta1.ServiceImportConditionReady)) {
			return fmt.Errorf("%s: ServiceImport %s is not ready: %+v", m.ID, k, serviceImport.Status)
		}
		if err := m.Get(ctx, Key{Namespace: k.Namespace, Name: serviceImport.Annotations[clusterset.AnnotationDerivedService]}, derived); err != nil {
			return fmt.Errorf("%s: %w", m.ID, err)
		}
		if err := check(serviceImport, derived); err != nil {
			return fmt.Errorf("%s: import %s: %w", m.ID, k, err)
		}
		return nil
	})
	return serviceImport, derived
}

// ImportCondition waits until a condition of an import, Ready or not, is as wanted. An empty message matches any.
func (m *Member) ImportCondition(t testing.TB, k Key, kind string, status metav1.ConditionStatus, reason, message string) {
	t.Helper()
	Await(t, m, k, &mcsv1beta1.ServiceImport{}, func(i *mcsv1beta1.ServiceImport) error {
		c := meta.FindStatusCondition(i.Status.Conditions, kind)
		if c == nil || c.Status != status || c.Reason != reason || message != "" && c.Message != message {
			return fmt.Errorf("%s: conditions of import %s are %+v, want %s=%s/%s: %s", m.ID, k, i.Status.Conditions, kind, status, reason, message)
		}
		return nil
	})
}

// WithoutCondition waits until an import is Ready and does not have a condition.
func (m *Member) WithoutCondition(t testing.TB, k Key, kind string) {
	t.Helper()
	m.ImportedWith(t, k, func(i *mcsv1beta1.ServiceImport, _ *corev1.Service) error {
		if c := meta.FindStatusCondition(i.Status.Conditions, kind); c != nil {
			return fmt.Errorf("it has the condition %+v", *c)
		}
		return nil
	})
}

// Mirrored returns the slices mirrored for an import, sorted by name.
func (m *Member) Mirrored(ctx context.Context, k Key) ([]discoveryv1.EndpointSlice, error) {
	list := &discoveryv1.EndpointSliceList{}
	err := m.List(ctx, list, client.InNamespace(k.Namespace), client.MatchingLabels{mcsv1beta1.LabelServiceName: k.Name})
	slices.SortFunc(list.Items, func(a, b discoveryv1.EndpointSlice) int { return strings.Compare(a.Name, b.Name) })
	return list.Items, err
}

// Slices is Mirrored for a test that needs them as they are now.
func (m *Member) Slices(t testing.TB, k Key) []discoveryv1.EndpointSlice {
	t.Helper()
	mirrored, err := m.Mirrored(t.Context(), k)
	lab.Must(t, err)
	return mirrored
}

// Addresses returns the addresses of all endpoints of some slices, sorted.
func Addresses(of ...discoveryv1.EndpointSlice) []string {
	var result []string
	for _, slice := range of {
		for _, endpoint := range slice.Endpoints {
			result = append(result, endpoint.Addresses...)
		}
	}
	slices.Sort(result)
	return result
}

// Endpoints waits until the mirrored slices of an import have exactly these endpoints: "<cluster> <address>:<port>:<number>".
func (m *Member) Endpoints(t testing.TB, k Key, want ...string) {
	t.Helper()
	Eventually(t, func(ctx context.Context) error { return m.HasEndpoints(ctx, k, want...) })
}

// HasEndpoints returns nil if the mirrored slices of an import have exactly these endpoints, as in Endpoints.
func (m *Member) HasEndpoints(ctx context.Context, k Key, want ...string) error {
	mirrored, err := m.Mirrored(ctx, k)
	if err != nil {
		return err
	}
	got := sets.New[string]()
	for _, s := range mirrored {
		for _, e := range s.Endpoints {
			for _, p := range s.Ports {
				got.Insert(fmt.Sprintf("%s %s:%s:%d", s.Labels[mcsv1beta1.LabelSourceCluster], e.Addresses[0], *p.Name, *p.Port))
			}
		}
	}
	if !got.Equal(sets.New(want...)) {
		return fmt.Errorf("%s: endpoints of %s are %v, want %v", m.ID, k, sets.List(got), want)
	}
	return nil
}

// Gone waits until nothing of some imports is left.
func (m *Member) Gone(t testing.TB, keys ...Key) {
	t.Helper()
	for _, k := range keys {
		Eventually(t, func(ctx context.Context) error {
			return Each(ctx, m, OfImports(), func(o client.Object) error {
				_, isImport := o.(*mcsv1beta1.ServiceImport)
				if o.GetName() == k.Name && isImport || o.GetLabels()[mcsv1beta1.LabelServiceName] == k.Name {
					return fmt.Errorf("%s: %T %s still exists", m.ID, o, o.GetName())
				}
				return nil
			}, client.InNamespace(k.Namespace))
		})
	}
}

// Condition waits until a condition of an export of the current generation has this status and reason, and returns it.
func (m *Member) Condition(t testing.TB, k Key, kind mcsv1beta1.ServiceExportConditionType, status metav1.ConditionStatus, reason string) metav1.Condition {
	t.Helper()
	var found metav1.Condition
	Await(t, m, k, &mcsv1beta1.ServiceExport{}, func(e *mcsv1beta1.ServiceExport) error {
		c := meta.FindStatusCondition(e.Status.Conditions, string(kind))
		if c == nil || c.Status != status || c.Reason != reason || c.ObservedGeneration != e.Generation {
			return fmt.Errorf("%s: conditions of ServiceExport %s are %+v, want %s=%s/%s", m.ID, k, e.Status.Conditions, kind, status, reason)
		}
		found = *c
		return nil
	})
	return found
}

// Event waits until there is an Event about an object of this name for this reason whose note contains a text.
func (m *Member) Event(t testing.TB, k Key, reason, note string) {
	t.Helper()
	Eventually(t, func(ctx context.Context) error {
		list := &eventsv1.EventList{}
		if err := m.List(ctx, list, client.InNamespace(k.Namespace)); err != nil {
			return err
		}
		var others []string
		for _, event := range list.Items {
			if event.Regarding.Name == k.Name && event.Reason == reason && strings.Contains(event.Note, note) {
				return nil
			}
			others = append(others, fmt.Sprintf("%s %s: %q", event.Regarding.Name, event.Reason, event.Note))
		}
		return fmt.Errorf("%s: no Event %s about %s with %q, only:\n%s", m.ID, reason, k, note, strings.Join(others, "\n"))
	})
}

// EventCounts returns how often each Event of a namespace has occurred, by "<reason> <kind> <name>".
func (m *Member) EventCounts(t testing.TB, namespace string) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for _, event := range List(t, m, &eventsv1.EventList{}, client.InNamespace(namespace)).Items {
		n := 1
		if event.Series != nil {
			n = int(event.Series.Count)
		}
		counts[event.Reason+" "+event.Regarding.Kind+" "+event.Regarding.Name] += n
	}
	return counts
}
