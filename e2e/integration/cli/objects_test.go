// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	aboutv1beta1 "github.com/tombolo-mcs/tombolo/pkg/api/about/v1beta1"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// traces returns what could be Tombolo's in clusters.
func (w *world) traces(t *testing.T, clusters ...string) map[string][]string {
	t.Helper()
	result := map[string][]string{}
	for _, name := range clusters {
		found, err := membership.Traces(t.Context(), w.Cluster(name))
		if err != nil {
			t.Fatal(err)
		}
		result[name] = found
	}
	return result
}

// client returns one with an administrator's rights, for all kinds. It is made once: a new one asks for all kinds again.
func (w *world) client(t *testing.T, cluster string) client.Client {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.clients[cluster]; c != nil {
		return c
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientscheme.AddToScheme, apiextensionsv1.AddToScheme, aboutv1beta1.AddToScheme, mcsv1beta1.Install, hubv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := w.Cluster(cluster).Client(scheme)
	if err != nil {
		t.Fatal(err)
	}
	w.clients[cluster] = c
	return c
}

func (w *world) create(t *testing.T, cluster string, object client.Object) {
	t.Helper()
	if err := w.client(t, cluster).Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

func (w *world) get(t *testing.T, cluster string, object client.Object) {
	t.Helper()
	if err := w.client(t, cluster).Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatal(err)
	}
}

func (w *world) update(t *testing.T, cluster string, object client.Object) {
	t.Helper()
	if err := w.client(t, cluster).Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

func (w *world) updateStatus(t *testing.T, cluster string, object client.Object) {
	t.Helper()
	if err := w.client(t, cluster).Status().Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

func (w *world) apply(t *testing.T, cluster string, manifests ...string) {
	t.Helper()
	for _, m := range manifests {
		if err := w.Cluster(cluster).Apply(t.Context(), []byte(m)); err != nil {
			t.Fatal(err)
		}
	}
}
