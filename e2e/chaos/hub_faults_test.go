// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/chaos/oracle"
	"github.com/tombolo-mcs/tombolo/e2e/membership"
	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// recordsByHand deletes a member's records on the hub one by one, which is watched: they come back.
func recordsByHand(ctx context.Context, w *world) error {
	k := stillKey(w.random.IntN(stillServices))
	w.watch.will(oracle.Source, "a", k)
	record := &hubv1alpha1.PublishedService{ObjectMeta: metav1.ObjectMeta{Namespace: "member-a", Name: k.Namespace + "." + k.Name}}
	if err := w.hubKube.Get(ctx, client.ObjectKeyFromObject(record), record); err != nil {
		return err
	}
	before := record.UID
	if err := w.hubKube.Delete(ctx, record); err != nil {
		return err
	}
	return eventually(ctx, func(ctx context.Context) error {
		if err := w.hubKube.Get(ctx, client.ObjectKeyFromObject(record), record); err != nil {
			return err
		}
		if record.UID == before {
			return errNoEffect
		}
		return nil
	})
}

// quotaUsedUp has the hub refuse another export of a member.
func quotaUsedUp(ctx context.Context, w *world) error {
	m := w.members[0]
	hub := &member{Client: w.hubKube}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "member-a", Name: manifests.MemberResourceQuota}}
	var before corev1.ResourceList
	err := hub.edit(ctx, quota, func() {
		before = quota.Spec.Hard.DeepCopy()
		for name := range quota.Spec.Hard {
			quota.Spec.Hard[name] = resource.MustParse("1")
		}
	})
	if err != nil {
		return err
	}
	k := oracle.Key{Namespace: aside, Name: "web"}
	if err := errors.Join(membership.AwaitFullQuota(ctx, w.hubKube, "a"), w.offer(ctx, m, service(k, 0), w.random)); err != nil {
		return err
	}
	err = eventually(ctx, func(ctx context.Context) error {
		export := &mcsv1beta1.ServiceExport{}
		if err := m.Get(ctx, k, export); err != nil {
			return err
		}
		if c := apimeta.FindStatusCondition(export.Status.Conditions, "Ready"); c == nil || c.Reason != "Failed" {
			return fmt.Errorf("the export is not refused (%v): %w", export.Status.Conditions, errNoEffect)
		}
		return nil
	})
	return errors.Join(err, hub.edit(ctx, quota, func() { quota.Spec.Hard = before }), w.clearAside(ctx))
}

// lossHeld has the hub lose all records of a member while nobody looks. Those who come back do not believe it. The member
// itself takes its exports for the youngest until the hub has recorded them again, so where its services differ from those
// of others, as they do in the moving namespace, something else may win for a moment.
func lossHeld(ctx context.Context, w *world) error {
	seen, err := w.look(ctx)
	if err != nil {
		return err
	}
	for _, e := range seen.Clusters[0].Exports {
		if e.Namespace == moving {
			w.watch.will(oracle.Source, "a", client.ObjectKeyFromObject(&e))
		}
	}
	for _, m := range w.members {
		if err := m.agent.stop(); err != nil {
			return err
		}
	}
	lost := client.InNamespace("member-a")
	err = errors.Join(w.hubKube.DeleteAllOf(ctx, &hubv1alpha1.PublishedService{}, lost), w.hubKube.DeleteAllOf(ctx, &hubv1alpha1.PublishedEndpoints{}, lost))
	if err != nil {
		return err
	}
	for _, m := range w.members[1:] {
		if err := m.agent.start(); err != nil {
			return err
		}
		err := eventually(ctx, func(ctx context.Context) error {
			found := &mcsv1beta1.ServiceImport{}
			if err := m.Get(ctx, stillKey(0), found); err != nil {
				return err
			}
			if !apimeta.IsStatusConditionTrue(found.Status.Conditions, "DeletionPending") {
				return fmt.Errorf("the loss is believed by %s: %w", m.id, errNoEffect)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return w.members[0].agent.start()
}

// withdrawnOneByOne withdraws many services by single deletions, which need nobody's consent.
func withdrawnOneByOne(ctx context.Context, w *world) error {
	const many = 500
	m, seed := w.members[0], w.random.Uint64()
	key := func(i int) oracle.Key { return oracle.Key{Namespace: aside, Name: fmt.Sprintf("many-%03d", i)} }
	err := atOnce(many, func(i int) error {
		return w.offer(ctx, m, service(key(i), 0), rand.New(rand.NewPCG(seed, uint64(i))))
	})
	if err != nil {
		return err
	}
	count := func(want int) error {
		return eventually(ctx, func(ctx context.Context) error {
			list := &mcsv1beta1.ServiceImportList{}
			if err := w.members[1].List(ctx, list, client.InNamespace(aside)); err != nil {
				return err
			}
			if len(list.Items) != want {
				return fmt.Errorf("%d imports, want %d: %w", len(list.Items), want, errNoEffect)
			}
			return nil
		})
	}
	if err := count(many); err != nil {
		return err
	}
	if err := atOnce(many, func(i int) error { return w.withdraw(ctx, m, key(i)) }); err != nil {
		return err
	}
	return count(0)
}

// exportedOverAndOver exports a service and withdraws it again, 200 times in a row.
func exportedOverAndOver(ctx context.Context, w *world) error {
	m, k := w.members[0], oracle.Key{Namespace: aside, Name: "web"}
	if err := w.offer(ctx, m, service(k, 0), w.random); err != nil {
		return err
	}
	for range 200 {
		if err := m.Delete(ctx, exportOf(k)); err != nil {
			return err
		}
		if err := m.Create(ctx, exportOf(k)); err != nil {
			return err
		}
	}
	export := &mcsv1beta1.ServiceExport{}
	err := eventually(ctx, func(ctx context.Context) error {
		if err := m.Get(ctx, k, export); err != nil {
			return err
		}
		if !apimeta.IsStatusConditionTrue(export.Status.Conditions, "Ready") {
			return fmt.Errorf("the last of 200 exports is not out: %w", errNoEffect)
		}
		return nil
	})
	return errors.Join(err, w.clearAside(ctx))
}

// twoAgents runs a second agent for a cluster beside the first, without an election.
func twoAgents(ctx context.Context, w *world) error {
	m := w.members[w.random.IntN(len(w.members))]
	second := m.agent.beside("second")
	if err := second.start(); err != nil {
		return err
	}
	pause(ctx, 20*time.Second)
	err := error(nil)
	if !second.runs() || !m.agent.runs() {
		err = fmt.Errorf("not both agents of %s run: %w", m.id, errNoEffect)
	}
	return errors.Join(err, second.kill())
}
