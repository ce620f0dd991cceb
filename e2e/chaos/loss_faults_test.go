// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/chaos/oracle"
	framework "github.com/tombolo-mcs/tombolo/e2e/framework/world"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// recordsLost has the hub lose records of a member while no agent runs: few and many, and one service is really withdrawn
// meanwhile. Until the member is back nothing goes anywhere; then the withdrawn service does, and nothing else.
func recordsLost(ctx context.Context, w *world) error {
	for _, lost := range []int{1, 3, 19, 21} {
		if err := w.loses(ctx, lost); err != nil {
			return fmt.Errorf("%d records lost: %w", lost, err)
		}
	}
	return nil
}

// loses has the hub lose a number of records, beside those of the service that is withdrawn.
func (w *world) loses(ctx context.Context, records int) error {
	exporter := w.members[w.random.IntN(len(w.members))]
	withdrawn := oracle.Key{Namespace: scratch, Name: fmt.Sprintf("withdrawn-%d", records)}
	keys := w.offerRecords(ctx, exporter, records)
	w.must(w.offer(ctx, exporter, service(withdrawn, 0), w.random), w.awaitStable(ctx, exporter, withdrawn))
	err := w.loseWhileDown(ctx, exporter, records+3, keys[0], func() error { return w.withdraw(ctx, exporter, withdrawn) })
	w.must(err, w.goesSoon(ctx, w.members, exporter, withdrawn))
	for _, k := range keys {
		w.must(w.withdraw(ctx, exporter, k))
	}
	return nil
}

// offerRecords has a member export services that make so many records, three each, or one for a service without slices, and
// returns when all have imported them.
func (w *world) offerRecords(ctx context.Context, m *member, records int) (keys []oracle.Key) {
	for i := 0; records > 0; i++ {
		k := oracle.Key{Namespace: scratch, Name: fmt.Sprintf("lost-%d", i)}
		keys = append(keys, k)
		if records >= 3 {
			w.must(w.offer(ctx, m, service(k, 0), w.random))
			records -= 3
			continue
		}
		w.watch.will(oracle.Source, m.id, k)
		w.watch.offers(m.id, framework.Export(k))
		w.must(m.Create(ctx, service(k, 0)), m.Create(ctx, framework.Export(k)))
		records--
	}
	for _, k := range keys {
		w.must(w.awaitStable(ctx, m, k))
	}
	return keys
}

// loseWhileDown ends all agents, has the hub lose a member's records of the namespace for that, which must be so many, does
// something, and starts the agents: the member's own last, when the others say that they wait for it.
func (w *world) loseWhileDown(ctx context.Context, exporter *member, records int, k oracle.Key, meanwhile func() error) error {
	w.watch.will(oracle.Loss, exporter.id, oracle.Key{})
	w.watch.will(oracle.Silence, exporter.id, oracle.Key{})
	for _, m := range w.members {
		if err := m.agent.stop(); err != nil {
			return err
		}
	}
	lost, err := w.deleteRecords(ctx, exporter)
	if err := errors.Join(err, meanwhile()); err != nil {
		return err
	}
	if lost != records {
		return fmt.Errorf("the hub has lost %d records of %s, must lose %d: %w", lost, exporter.id, records, errNoEffect)
	}
	for _, m := range w.members {
		if m == exporter {
			continue
		}
		if err := errors.Join(m.agent.start(), m.awaits(ctx, k)); err != nil {
			return err
		}
	}
	return errors.Join(exporter.agent.start(), w.complete(ctx, []*member{exporter}))
}

// deleteRecords deletes all records of a member of services of the namespace for that, and returns how many there were.
func (w *world) deleteRecords(ctx context.Context, m *member) (int, error) {
	var lost []client.Object
	kinds := []client.ObjectList{&hubv1alpha1.PublishedServiceList{}, &hubv1alpha1.PublishedEndpointsList{}}
	if err := framework.Each(ctx, w.hubKube, kinds, func(record client.Object) error {
		if strings.HasPrefix(record.GetName(), scratch+".") {
			lost = append(lost, record)
		}
		return nil
	}, client.InNamespace("member-"+m.id)); err != nil {
		return 0, err
	}
	return len(lost), atOnce(len(lost), func(i int) error { return client.IgnoreNotFound(w.hubKube.Delete(ctx, lost[i])) })
}

// awaits returns when a member says of an import that it waits for what its exporter will say.
func (m *member) awaits(ctx context.Context, k oracle.Key) error {
	found := &mcsv1beta1.ServiceImport{}
	return shown(ctx, m, k, found, func() error {
		c := apimeta.FindStatusCondition(found.Status.Conditions, "DeletionPending")
		if c == nil || c.Status != "True" || c.Reason != "AwaitingConfirmation" {
			return fmt.Errorf("%s does not wait for the confirmation of %s (%v): %w", m.id, k, found.Status.Conditions, errNoEffect)
		}
		return nil
	})
}

// manyLost has a member export very many services, the hub lose all their records while no agent runs, and the member withdraw
// them one by one when they are back: single deletions that are watched.
func manyLost(ctx context.Context, w *world) error {
	const many = 667 // with two slices each, 2,001 records
	m, seed := w.members[0], w.random.Uint64()
	key := func(i int) oracle.Key { return oracle.Key{Namespace: scratch, Name: fmt.Sprintf("many-%03d", i)} }
	err := atOnce(many, func(i int) error {
		return w.offer(ctx, m, service(key(i), 0), rand.New(rand.NewPCG(seed, uint64(i))))
	})
	w.must(err)
	for i := range many {
		w.must(w.awaitStable(ctx, m, key(i)))
	}
	w.must(w.loseWhileDown(ctx, m, 3*many, key(0), func() error { return nil }))
	w.must(atOnce(many, func(i int) error { return w.withdraw(ctx, m, key(i)) }))
	return eventually(ctx, func(ctx context.Context) error {
		list := &mcsv1beta1.ServiceImportList{}
		if err := w.members[1].List(ctx, list, client.InNamespace(scratch)); err != nil {
			return err
		}
		if len(list.Items) > 0 {
			return fmt.Errorf("%d imports are still there: %w", len(list.Items), errNoEffect)
		}
		return nil
	})
}

// invalidExport has a member export what the hub refuses with many errors at once. That is said once, not again and again.
func invalidExport(ctx context.Context, w *world) error {
	m := w.members[w.random.IntN(len(w.members))]
	annotated, labelled := oracle.Key{Namespace: scratch, Name: "annotated"}, oracle.Key{Namespace: scratch, Name: "labelled"}
	annotations, labels := map[string]string{}, map[string]string{}
	for i := range 10 {
		name := fmt.Sprintf("note-%d", i)
		annotations[name], labels[name] = longText, "not a label's value"
	}
	for k, change := range map[oracle.Key]func(*mcsv1beta1.ServiceExport){
		annotated: func(e *mcsv1beta1.ServiceExport) { e.Spec.ExportedAnnotations = annotations },
		labelled:  func(e *mcsv1beta1.ServiceExport) { e.Spec.ExportedLabels = labels },
	} {
		export := framework.Export(k)
		w.must(w.offer(ctx, m, service(k, 0), w.random))
		w.must(m.edit(ctx, export, func() { change(export) }))
		err := shown(ctx, m, k, export, func() error {
			if c := apimeta.FindStatusCondition(export.Status.Conditions, "Ready"); c == nil || c.Status != "False" || c.ObservedGeneration != export.Generation {
				return fmt.Errorf("%s is exported (%v): %w", k, export.Status.Conditions, errNoEffect)
			}
			return nil
		})
		w.must(err)
	}
	pause(ctx, 15*time.Second)
	return errors.Join(w.withdraw(ctx, m, annotated), w.withdraw(ctx, m, labelled))
}

// longText is longer than an annotation on the hub may be.
var longText = strings.Repeat("x", 4097)
