// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/chaos/oracle"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// revision returns the number of a cluster's last change.
func revision(ctx context.Context, c client.Client) (int, error) {
	list := &corev1.ConfigMapList{}
	if err := c.List(ctx, list, client.InNamespace(metav1.NamespaceDefault)); err != nil {
		return 0, err
	}
	return strconv.Atoi(list.ResourceVersion)
}

// expectLoss announces that the hub will lose records of all members. An export that the hub does not store counts as the youngest,
// so where services of members differ, as they do in the moving namespace, another may win for a moment.
func (w *world) expectLoss(ctx context.Context) error {
	seen, err := w.look(ctx)
	w.must(err)
	for _, c := range seen.Clusters {
		w.watch.will(oracle.Loss, c.ID, oracle.Key{})
		for _, e := range c.Exports {
			if e.Namespace == moving {
				w.watch.will(oracle.Source, c.ID, client.ObjectKeyFromObject(&e))
			}
		}
	}
	return nil
}

// hubRestored gives the hub the state of an older backup. What was withdrawn since is withdrawn again, what was exported
// since is recorded again, and what has not changed since does not notice.
func hubRestored(ctx context.Context, w *world) error {
	withdrawn, exported := oracle.Key{Namespace: scratch, Name: "web"}, oracle.Key{Namespace: scratch, Name: "later"}
	w.must(w.expectLoss(ctx), w.exportScratch(ctx))
	backup := w.backup()
	w.must(w.hub.Backup(ctx, backup))
	w.must(w.withdraw(ctx, w.members[0], withdrawn), w.offer(ctx, w.members[0], service(exported, 0), w.random))
	w.must(gone(ctx, w.members, withdrawn), w.awaitStable(ctx, w.members[0], exported))
	w.must(restored(ctx, w.hub, w.hubKube, backup))
	record := &hubv1alpha1.PublishedService{ObjectMeta: metav1.ObjectMeta{Namespace: "member-a", Name: exported.Namespace + "." + exported.Name}}
	err := eventually(ctx, func(ctx context.Context) error { return w.hubKube.Get(ctx, client.ObjectKeyFromObject(record), record) })
	w.must(err, w.goesSoon(ctx, w.members, w.members[0], withdrawn))
	return w.withdraw(ctx, w.members[0], exported)
}

func (w *world) backup() string {
	w.backups++
	return filepath.Join(programFolder, fmt.Sprintf("backup-%d", w.backups))
}

// restored gives a cluster the state of a backup, and proves that its revision has gone back, so far that it takes minutes to come
// again.
func restored(ctx context.Context, cluster *lab.Cluster, c client.Client, backup string) error {
	if err := fill(ctx, c, 2000); err != nil {
		return err
	}
	before, err := revision(ctx, c)
	if err != nil {
		return err
	}
	if err := cluster.Restore(ctx, backup); err != nil {
		return err
	}
	after, err := revision(ctx, c)
	if err == nil && after >= before {
		return fmt.Errorf("%s is at revision %d, and was at %d: %w", cluster.Name, after, before, errNoEffect)
	}
	return err
}

// fill changes a cluster so often that its revision before and after a restore cannot be mistaken.
func fill(ctx context.Context, c client.Client, changes int) error {
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "chaos"}}
	if err := client.IgnoreAlreadyExists(c.Create(ctx, o.DeepCopy())); err != nil {
		return err
	}
	return atOnce(changes, func(i int) error {
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"data":{"n":"%d"}}`, i))
		return c.Patch(ctx, o.DeepCopy(), patch)
	})
}

// olderThanMember gives the hub the state that it had before the last member joined, and the others have recorded nothing. What
// that member exports stays; its endpoints leave where others serve. Agents start anew with their new tokens, and one export is
// withdrawn meanwhile. Then the last member joins again.
func olderThanMember(ctx context.Context, w *world) error {
	late := w.members[len(w.members)-1]
	withdrawn, only := oracle.Key{Namespace: scratch, Name: "web"}, oracle.Key{Namespace: scratch, Name: "only"}
	w.must(w.expectLoss(ctx), w.exportScratch(ctx), w.offer(ctx, late, service(only, 0), w.random), w.awaitStable(ctx, late, only))
	for _, m := range w.members { // until they have joined again, none can renew its heartbeat
		w.watch.will(oracle.Silence, m.id, oracle.Key{})
	}
	w.must(w.hub.Restore(ctx, w.young))
	w.must(w.withdrawScratch(ctx))
	others := w.members[:len(w.members)-1]
	w.must(w.joinAgain(ctx, others), w.goesSoon(ctx, others, w.members[0], withdrawn))
	unknown := &hubv1alpha1.Member{}
	err := w.hubKube.Get(ctx, client.ObjectKey{Namespace: "member-" + late.id, Name: hubv1alpha1.MemberName}, unknown)
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("the hub knows %s (%w): %w", late.id, err, errNoEffect)
	}
	err = eventually(ctx, func(ctx context.Context) error {
		left, err := w.hasLeft(ctx, late)
		if err == nil && !left {
			return fmt.Errorf("all endpoints of %s serve though it is silent: %w", late.id, errNoEffect)
		}
		return err
	})
	w.must(err, w.beats(ctx, w.members[0]), w.joinAgain(ctx, []*member{late}))
	return w.withdraw(ctx, late, only)
}

// hubRebuilt deletes all objects of the hub and its CRDs, and starts an agent then. Then the hub is installed again, and the members join in
// random order, as docs/operations.md says. Only exports that were withdrawn meanwhile are deleted, after the exporter has confirmed it.
func hubRebuilt(ctx context.Context, w *world) error {
	w.must(w.expectLoss(ctx), w.exportScratch(ctx))
	for _, m := range w.members { // until they have joined again, none can renew its heartbeat
		w.watch.will(oracle.Silence, m.id, oracle.Key{})
	}
	w.must(w.hub.Wipe(ctx))
	if err := answers(ctx, w.hubKube); !apierrors.IsNotFound(err) && !apimeta.IsNoMatchError(err) {
		return fmt.Errorf("the hub knows Members (%w): %w", err, errNoEffect)
	}
	w.must(w.members[w.random.IntN(len(w.members))].agent.crash())
	w.must(w.withdrawScratch(ctx))
	pause(ctx, 5*time.Second)
	order := slices.Clone(w.members)
	w.random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	w.must(membership.InitHub(ctx, w.hub), w.joinAgain(ctx, order))
	return w.goesSoon(ctx, w.members, w.members[0], oracle.Key{Namespace: scratch, Name: "web"})
}

// joinAgain has members join, one after the other, and returns when each has recorded on the hub what it exports.
func (w *world) joinAgain(ctx context.Context, members []*member) error {
	for _, m := range members {
		o := m.options()
		o.ClaimedAges = hubv1alpha1.ClaimedAgesTrusted
		config, err := membership.Join(ctx, w.hub, m.cluster, o)
		w.must(err)
		// A new token is read within a minute, or by an agent that starts, as join has it.
		w.must(m.renew(config.BearerToken), m.agent.stop(), m.agent.start())
	}
	return w.complete(ctx, members)
}

// awaitStable returns when all members have imported a service, and has the checker take care of it from then on.
func (w *world) awaitStable(ctx context.Context, exporter *member, k oracle.Key) error {
	w.must(w.imported(ctx, k))
	w.watch.markStable(exporter.id, k)
	return nil
}

// goesSoon returns nil when none of the members has an import of a service, which must not take longer than two heartbeats once its
// exporter has said that its publication is complete: after a restart, a hub refuses records for half a minute.
func (w *world) goesSoon(ctx context.Context, members []*member, exporter *member, k oracle.Key) error {
	w.must(w.beats(ctx, exporter), w.complete(ctx, []*member{exporter}))
	ctx, cancel := context.WithTimeout(ctx, 2*heartbeat)
	defer cancel()
	return gone(ctx, members, k)
}

// gone returns when none of the members has an import of a service.
func gone(ctx context.Context, members []*member, k oracle.Key) error {
	for _, m := range members {
		err := eventually(ctx, func(ctx context.Context) error {
			err := m.Get(ctx, k, &mcsv1beta1.ServiceImport{})
			if err == nil {
				return fmt.Errorf("%s in %s is still there", k, m.id)
			}
			return client.IgnoreNotFound(err)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// complete returns when each of the members has recorded on the hub what it exports.
func (w *world) complete(ctx context.Context, members []*member) error {
	for _, m := range members {
		beat := &hubv1alpha1.Heartbeat{ObjectMeta: metav1.ObjectMeta{Namespace: "member-" + m.id, Name: hubv1alpha1.HeartbeatName}}
		err := shown(ctx, w.hubKube, client.ObjectKeyFromObject(beat), beat, func() error {
			if beat.Spec.Publication != hubv1alpha1.PublicationComplete {
				return fmt.Errorf("the publication of %s is %s", m.id, beat.Spec.Publication)
			}
			return nil
		})
		w.must(err)
	}
	return nil
}

// deletionMissed cuts a member off while the others withdraw and export, and restarts the hub meanwhile: when the member is
// back, its watches end with "too old resource version", and only a new list contains what they have missed.
func deletionMissed(ctx context.Context, w *world) error {
	w.must(w.exportScratch(ctx))
	return w.missesWithdrawal(ctx, w.members[1])
}

// missesWithdrawal withdraws the scratch service while a member is cut off, so that its watches cannot continue. It returns when the member
// has no import of the service any more.
func (w *world) missesWithdrawal(ctx context.Context, m *member) error {
	last, err := revision(ctx, w.hubKube)
	w.must(err)
	w.watch.will(oracle.Silence, m.id, oracle.Key{}) // it is down for about as long as the others wait
	m.line.kill()
	defer m.line.restore()
	k := oracle.Key{Namespace: scratch, Name: "web"}
	w.must(w.withdraw(ctx, w.members[0], k), gone(ctx, w.members[2:], k))
	w.must(w.hub.APIServer.Restart(ctx))
	w.must(w.tooOld(ctx, last))
	if err := m.Get(ctx, k, &mcsv1beta1.ServiceImport{}); err != nil {
		return fmt.Errorf("%s has seen the withdrawal (%w): %w", m.id, err, errNoEffect)
	}
	m.line.restore()
	return errors.Join(w.beats(ctx, m), w.goesSoon(ctx, w.members, w.members[0], k))
}

// tooOld returns nil if the hub refuses to continue a watch from a revision.
func (w *world) tooOld(ctx context.Context, revision int) error {
	hub, err := w.hub.Client(w.hubKube.Scheme())
	w.must(err)
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	watcher, err := hub.Watch(ctx, &hubv1alpha1.PublishedServiceList{}, &client.ListOptions{
		Raw: &metav1.ListOptions{ResourceVersion: strconv.Itoa(revision)},
	})
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return nil
	}
	w.must(err)
	defer watcher.Stop()
	event := <-watcher.ResultChan()
	if err := apierrors.FromObject(event.Object); event.Type != watch.Error || !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		return fmt.Errorf("a watch from revision %d continues with %s: %w", revision, event.Type, errNoEffect)
	}
	return nil
}
