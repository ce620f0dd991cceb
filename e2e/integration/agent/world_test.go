// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agent_test runs real agents between real API servers and checks what users see.
package agent_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
)

const (
	ready    = mcsv1beta1.ServiceExportConditionReady
	valid    = mcsv1beta1.ServiceExportConditionValid
	conflict = mcsv1beta1.ServiceExportConditionConflict
)

// pairs are shared by the tests, which need a hub and two members each.
var pairs world.Pairs

func TestMain(m *testing.M) {
	code := m.Run()
	if err := pairs.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

type key = world.Key

// env is a hub and its members, with the steps and checks of this package.
type env struct {
	*world.World
	members map[string]*member
}

type member struct{ *world.Member }

// newPair returns a hub and its members a and b, without agents, which other tests use later.
func newPair(t *testing.T) (w *env, a, b *member) {
	t.Helper()
	w = envOf(pairs.Take(t))
	return w, w.members["a"], w.members["b"]
}

// newEnv returns a hub and members of its own.
func newEnv(t *testing.T, hub lab.ClusterOptions, clusters ...lab.ClusterOptions) *env {
	t.Helper()
	return envOf(world.New(t, hub, clusters...))
}

func envOf(w *world.World) *env {
	e := &env{World: w, members: map[string]*member{}}
	for id, m := range w.Members {
		e.members[id] = &member{m}
	}
	return e
}

// services returns the keys of n services of a namespace, whose names begin with a prefix.
func services(namespace, prefix string, n int) []key {
	var keys []key
	for i := range n {
		keys = append(keys, key{Namespace: namespace, Name: fmt.Sprintf("%s-%03d", prefix, i)})
	}
	return keys
}

// atOnce calls do for all services, several at a time.
func atOnce(t *testing.T, keys []key, do func(context.Context, key) error) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(8)
	for _, k := range keys {
		group.Go(func() error { return do(ctx, k) })
	}
	lab.Must(t, group.Wait())
}

// deleteCRD deletes a CRD and waits until it is gone.
func (m *member) deleteCRD(t *testing.T, name string) {
	t.Helper()
	definition := &unstructured.Unstructured{}
	definition.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	definition.SetName(name)
	lab.TouchDeletedCRDs(t, m)
	lab.Must(t, m.Delete(t.Context(), definition))
	world.Eventually(t, func(ctx context.Context) error { return world.Absent(m.Get(ctx, key{Name: name}, definition)) })
}
