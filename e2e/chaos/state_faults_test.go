// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/chaos/oracle"
)

// importDeleted has a user delete imports by hand in a member that does not reach the hub, and whose agent has just started:
// nothing but the imports says what there was. They come back, with the same derived Services.
func importDeleted(ctx context.Context, w *world) error {
	m := w.members[2] // it exports few of them itself
	w.must(w.exportScratch(ctx))
	err := w.whileCutOff(ctx, m, func() error { return w.deleteImports(ctx, m) })
	return errors.Join(err, w.beats(ctx, m), w.withdrawScratch(ctx))
}

// whileCutOff does something while a member does not reach the hub, when its agent has started and works.
func (w *world) whileCutOff(ctx context.Context, m *member, do func() error) error {
	w.watch.will(oracle.Silence, m.id, oracle.Key{})
	m.line.kill()
	defer m.line.restore()
	w.must(m.agent.crash(), w.servesItself(ctx, m))
	return do()
}

// deleteImports deletes the ServiceImports of several services, of one the slices as well, and of another the derived Service. All
// but the last come back as they were, whose slices stay.
func (w *world) deleteImports(ctx context.Context, m *member) error {
	alone, bare := []oracle.Key{stillKey(0), stillKey(1), stillKey(4), aloneKey("a")}, stillKey(2)
	ends := oracle.Key{Namespace: scratch, Name: "web"}
	before, err := m.imports(ctx, append([]oracle.Key{bare}, alone...))
	w.must(err)
	for _, k := range append([]oracle.Key{ends}, alone...) {
		w.watch.will(oracle.HandImport, m.id, k)
	}
	w.watch.will(oracle.Hand, m.id, bare)
	w.watch.will(oracle.Hand, m.id, ends)
	err = errors.Join(m.deleteSlices(ctx, bare), m.deleteDerived(ctx, ends))
	for _, k := range append([]oracle.Key{bare, ends}, alone...) {
		err = errors.Join(err, m.Delete(ctx, &mcsv1beta1.ServiceImport{ObjectMeta: meta(k)}))
	}
	err = errors.Join(err, m.restores(ctx, before))
	mirrored, listed := m.mirrored(ctx, ends, "a")
	if listed == nil && len(mirrored) == 0 {
		listed = fmt.Errorf("the slices of %s are gone with its import", ends)
	}
	return errors.Join(err, listed)
}

// servesItself returns when a member has imported an export of its own: its agent works.
func (w *world) servesItself(ctx context.Context, m *member) error {
	k := oracle.Key{Namespace: scratch, Name: "itself"}
	w.must(w.offer(ctx, m, service(k, 0), w.random))
	err := eventually(ctx, func(ctx context.Context) error { return m.Get(ctx, k, &mcsv1beta1.ServiceImport{}) })
	return errors.Join(err, w.withdraw(ctx, m, k))
}

// importState is what an import must keep.
type importState struct {
	addresses string
	derived   types.UID
}

func (m *member) imports(ctx context.Context, keys []oracle.Key) (map[oracle.Key]importState, error) {
	result := map[oracle.Key]importState{}
	for _, k := range keys {
		found, derived := &mcsv1beta1.ServiceImport{}, &corev1.Service{}
		if err := m.Get(ctx, k, found); err != nil {
			return nil, err
		}
		name := client.ObjectKey{Namespace: k.Namespace, Name: found.Annotations["multicluster.kubernetes.io/derived-service"]}
		if err := m.Get(ctx, name, derived); err != nil {
			return nil, err
		}
		result[k] = importState{fmt.Sprint(found.Spec.IPs), derived.UID}
	}
	return result, nil
}

func (m *member) restores(ctx context.Context, before map[oracle.Key]importState) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return eventually(ctx, func(ctx context.Context) error {
		now, err := m.imports(ctx, slices.Collect(maps.Keys(before)))
		if err == nil && !maps.Equal(before, now) {
			return fmt.Errorf("imports of %s are %v, were %v", m.id, now, before)
		}
		return err
	})
}

func (m *member) deleteSlices(ctx context.Context, k oracle.Key) error {
	return m.DeleteAllOf(ctx, &discoveryv1.EndpointSlice{}, client.InNamespace(k.Namespace), client.MatchingLabels{mcsv1beta1.LabelServiceName: k.Name})
}

func (m *member) deleteDerived(ctx context.Context, k oracle.Key) error {
	list := &corev1.ServiceList{}
	if err := m.List(ctx, list, client.InNamespace(k.Namespace), client.MatchingLabels{mcsv1beta1.LabelServiceName: k.Name}); err != nil {
		return err
	}
	if len(list.Items) != 1 {
		return fmt.Errorf("%d derived Services of %s in %s: %w", len(list.Items), k, m.id, errNoEffect)
	}
	return m.Delete(ctx, &list.Items[0])
}

// memberRestored gives a member's own API server the state of an older backup, under a running agent and DNS. What the member
// exports is what that holds, and what others have done since is done again.
func memberRestored(ctx context.Context, w *world) error {
	m, other := w.members[1], w.members[0]
	key := func(name string) oracle.Key { return oracle.Key{Namespace: scratch, Name: name} }
	w.watch.will(oracle.Loss, m.id, oracle.Key{}) // an export that was withdrawn comes back as it was, and its record is another
	own, others := key("own-old"), key("others-old")
	err := errors.Join(w.offer(ctx, m, service(own, 0), w.random), w.offer(ctx, other, service(others, 0), w.random))
	w.must(err, w.imported(ctx, own), w.imported(ctx, others))
	backup := w.backup()
	w.must(m.cluster.Backup(ctx, backup))
	ownNew, othersNew := key("own-new"), key("others-new")
	err = errors.Join(w.withdraw(ctx, m, own), w.withdraw(ctx, other, others),
		w.offer(ctx, m, service(ownNew, 0), w.random), w.offer(ctx, other, service(othersNew, 0), w.random))
	w.must(err, gone(ctx, w.members, own), gone(ctx, w.members, others), w.imported(ctx, ownNew), w.imported(ctx, othersNew))
	w.must(restored(ctx, m.cluster, m, backup))
	w.must(w.imported(ctx, own), gone(ctx, w.members, others), gone(ctx, w.members, ownNew), w.imported(ctx, othersNew))
	w.must(w.crosses(ctx, m, other))
	return errors.Join(w.withdraw(ctx, m, own), w.withdraw(ctx, other, othersNew))
}
