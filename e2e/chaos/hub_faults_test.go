// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/chaos/oracle"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// recordsByHand deletes a member's records on the hub one by one, which is watched: they come back.
func recordsByHand(ctx context.Context, w *world) error {
	k := stillKey(w.random.IntN(stillServices))
	w.watch.will(oracle.Source, "a", k)
	w.watch.will(oracle.Loss, "a", oracle.Key{})
	record := &hubv1alpha1.PublishedService{ObjectMeta: metav1.ObjectMeta{Namespace: "member-a", Name: k.Namespace + "." + k.Name}}
	w.must(w.hubKube.Get(ctx, client.ObjectKeyFromObject(record), record))
	before := record.UID
	w.must(w.hubKube.Delete(ctx, record))
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
	w.must(err)
	k := oracle.Key{Namespace: aside, Name: "web"}
	w.must(membership.AwaitFullQuota(ctx, w.hubKube, "a"), w.offer(ctx, m, service(k, 0), w.random))
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

// exportedOverAndOver exports a service and withdraws it again, 200 times in a row.
func exportedOverAndOver(ctx context.Context, w *world) error {
	m, k := w.members[0], oracle.Key{Namespace: aside, Name: "web"}
	w.must(w.offer(ctx, m, service(k, 0), w.random))
	for range 200 {
		w.must(m.Delete(ctx, exportOf(k)))
		w.must(m.Create(ctx, exportOf(k)))
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
	w.must(second.start())
	pause(ctx, 20*time.Second)
	err := error(nil)
	if !second.runs() || !m.agent.runs() {
		err = fmt.Errorf("not both agents of %s run: %w", m.id, errNoEffect)
	}
	return errors.Join(err, second.kill())
}
