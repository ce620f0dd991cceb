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
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/chaos/oracle"
	"github.com/tombolo-mcs/tombolo/e2e/membership"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// revision returns the number of the hub's last change.
func (w *world) revision(ctx context.Context) (int, error) {
	list := &corev1.ConfigMapList{}
	if err := w.hubKube.List(ctx, list, client.InNamespace(metav1.NamespaceDefault)); err != nil {
		return 0, err
	}
	return strconv.Atoi(list.ResourceVersion)
}

// forgets notes that the hub is about to lose records. An exporter takes what the hub has not recorded for the youngest of
// all, so where services of members differ, as they do in the moving namespace, another may win for a moment.
func (w *world) forgets(ctx context.Context) error {
	seen, err := w.look(ctx)
	if err != nil {
		return err
	}
	for _, c := range seen.Clusters {
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
	w.backups++
	backup := filepath.Join(programFolder, fmt.Sprintf("backup-%d", w.backups))
	withdrawn, exported := oracle.Key{Namespace: aside, Name: "web"}, oracle.Key{Namespace: aside, Name: "later"}
	if err := errors.Join(w.forgets(ctx), w.furnishAside(ctx)); err != nil {
		return err
	}
	if err := w.hub.Backup(ctx, backup); err != nil {
		return err
	}
	if err := errors.Join(w.withdraw(ctx, w.members[0], withdrawn), w.offer(ctx, w.members[0], service(exported, 0), w.random)); err != nil {
		return err
	}
	for _, m := range w.members[1:] {
		err := eventually(ctx, func(ctx context.Context) error {
			if err := m.Get(ctx, withdrawn, &mcsv1beta1.ServiceImport{}); !apierrors.IsNotFound(err) {
				return fmt.Errorf("%s in %s: %w", withdrawn, m.id, err)
			}
			return m.Get(ctx, exported, &mcsv1beta1.ServiceImport{})
		})
		if err != nil {
			return err
		}
	}
	if err := w.fill(ctx, 100); err != nil {
		return err
	}
	before, err := w.revision(ctx)
	if err != nil {
		return err
	}
	if err := w.hub.Restore(ctx, backup); err != nil {
		return err
	}
	switch after, err := w.revision(ctx); {
	case err != nil:
		return err
	case after >= before:
		return fmt.Errorf("the hub is at revision %d, and was at %d: %w", after, before, errNoEffect)
	}
	record := &hubv1alpha1.PublishedService{ObjectMeta: metav1.ObjectMeta{Namespace: "member-a", Name: exported.Namespace + "." + exported.Name}}
	err = eventually(ctx, func(ctx context.Context) error { return w.hubKube.Get(ctx, client.ObjectKeyFromObject(record), record) })
	return errors.Join(err, w.withdraw(ctx, w.members[0], exported))
}

// fill changes the hub so often that its revision before and after a restore cannot be mistaken.
func (w *world) fill(ctx context.Context, changes int) error {
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "chaos"}}
	if err := client.IgnoreAlreadyExists(w.hubKube.Create(ctx, o.DeepCopy())); err != nil {
		return err
	}
	for i := range changes {
		o.Data = map[string]string{"n": strconv.Itoa(i)}
		if err := w.hubKube.Update(ctx, o.DeepCopy()); err != nil {
			return err
		}
	}
	return nil
}

// hubRebuilt loses all that the hub knows. For a time it does not even know our kinds, and an agent is started then. Then
// its administrator makes it a hub again, with all Members as they were, and has the members join, one after the other, as
// docs/operations.md says. What the first of them has withdrawn meanwhile cannot be told from what is lost: those that join
// before it keep it until they are told otherwise. Those that join after it find all else that it exports, so they may believe it.
func hubRebuilt(ctx context.Context, w *world) error {
	known := &hubv1alpha1.MemberList{}
	if err := errors.Join(w.forgets(ctx), w.furnishAside(ctx), w.hubKube.List(ctx, known)); err != nil {
		return err
	}
	if err := w.hub.Wipe(ctx); err != nil {
		return err
	}
	if err := answers(ctx, w.hubKube); !apierrors.IsNotFound(err) && !apimeta.IsNoMatchError(err) {
		return fmt.Errorf("the hub knows Members (%w): %w", err, errNoEffect)
	}
	started := w.members[w.random.IntN(len(w.members))].agent
	if err := errors.Join(started.kill(), started.start()); err != nil {
		return err
	}
	if err := w.clearAside(ctx); err != nil {
		return err
	}
	pause(ctx, 5*time.Second)
	if err := membership.InitHub(ctx, w.hub); err != nil {
		return err
	}
	if err := w.admit(ctx, known.Items); err != nil {
		return err
	}
	k := oracle.Key{Namespace: aside, Name: "web"}
	holding, err := w.joinAgain(ctx, k)
	if err != nil {
		return err
	}
	for _, m := range w.members[1:] {
		if holding[m.id] {
			if err := m.holds(ctx, k); err != nil {
				return err
			}
		}
		if err := w.letGo(ctx, m, k, "a"); err != nil {
			return err
		}
	}
	return nil
}

// admit gives the hub Members as another has had them.
func (w *world) admit(ctx context.Context, known []hubv1alpha1.Member) error {
	for _, m := range known {
		m.ObjectMeta = metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name}
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: m.Namespace}}
		if err := errors.Join(w.hubKube.Create(ctx, namespace), w.hubKube.Create(ctx, &m)); err != nil {
			return err
		}
	}
	return nil
}

// joinAgain has all members join, in any order but the first one first, and returns when each has recorded on the hub what it
// exports. Those that join before the first member hold what it has withdrawn, and are returned.
func (w *world) joinAgain(ctx context.Context, withdrawn oracle.Key) (holding map[string]bool, err error) {
	order := w.random.Perm(len(w.members))
	if order[0] == 0 {
		order[0], order[1] = order[1], order[0]
	}
	holding = map[string]bool{}
	for n, i := range order {
		m := w.members[i]
		o := m.options()
		o.ClaimedAges = hubv1alpha1.ClaimedAgesTrusted
		config, err := membership.Join(ctx, w.hub, m.cluster, o)
		if err != nil {
			return nil, err
		}
		// Without a token that the new hub knows it sends no heartbeat: it may count as silent once it has.
		w.watch.will(oracle.Silence, m.id, oracle.Key{})
		if err := m.renew(config.BearerToken); err != nil {
			return nil, err
		}
		// A new token is read within a minute, or by an agent that starts, as join has it.
		if err := errors.Join(m.agent.stop(), m.agent.start()); err != nil {
			return nil, err
		}
		if n < slices.Index(order, 0) {
			holding[m.id] = true
			if err := eventually(ctx, func(ctx context.Context) error { return m.holds(ctx, withdrawn) }); err != nil {
				return nil, err
			}
		}
	}
	return holding, w.complete(ctx)
}

// complete returns when each member has recorded on the hub what it exports.
func (w *world) complete(ctx context.Context) error {
	for _, m := range w.members {
		err := eventually(ctx, func(ctx context.Context) error {
			beat := &hubv1alpha1.Heartbeat{ObjectMeta: metav1.ObjectMeta{Namespace: "member-" + m.id, Name: hubv1alpha1.HeartbeatName}}
			if err := w.hubKube.Get(ctx, client.ObjectKeyFromObject(beat), beat); err != nil {
				return err
			}
			if beat.Spec.Publication != hubv1alpha1.PublicationComplete {
				return fmt.Errorf("the publication of %s is %s", m.id, beat.Spec.Publication)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// holds returns nil where a member has an import for the sake of another whose records are lost.
func (m *member) holds(ctx context.Context, k oracle.Key) error {
	found := &mcsv1beta1.ServiceImport{}
	if err := m.Get(ctx, k, found); err != nil {
		return err
	}
	if !apimeta.IsStatusConditionTrue(found.Status.Conditions, "DeletionPending") {
		return fmt.Errorf("the loss is believed by %s: %w", m.id, errNoEffect)
	}
	return nil
}

// lacks returns nil where a member has no import of a service.
func (m *member) lacks(ctx context.Context, k oracle.Key) error {
	if err := m.Get(ctx, k, &mcsv1beta1.ServiceImport{}); !apierrors.IsNotFound(err) {
		return fmt.Errorf("%s in %s: %w", k, m.id, err)
	}
	return nil
}

// letGo has the hub's administrator suspend a member for as long as another has an import for its sake.
func (w *world) letGo(ctx context.Context, m *member, k oracle.Key, of string) error {
	hub, gone := &member{Client: w.hubKube}, &hubv1alpha1.Member{ObjectMeta: metav1.ObjectMeta{Namespace: "member-" + of, Name: hubv1alpha1.MemberName}}
	if err := hub.edit(ctx, gone, func() { gone.Spec.Suspended = true }); err != nil {
		return err
	}
	err := eventually(ctx, func(ctx context.Context) error { return m.lacks(ctx, k) })
	return errors.Join(err, hub.edit(ctx, gone, func() { gone.Spec.Suspended = false }))
}

// deletionMissed cuts a member off while the others withdraw and export, and restarts the hub meanwhile: when the member is
// back, its watches are told that what they ask for is too old, and only a new list tells what they have missed.
func deletionMissed(ctx context.Context, w *world) error {
	m := w.members[1]
	if err := w.furnishAside(ctx); err != nil {
		return err
	}
	last, err := w.revision(ctx)
	if err != nil {
		return err
	}
	w.watch.will(oracle.Silence, m.id, oracle.Key{}) // it is away for about as long as the others wait
	m.line.kill()
	defer m.line.heal()
	k := oracle.Key{Namespace: aside, Name: "web"}
	if err := w.withdraw(ctx, w.members[0], k); err != nil {
		return err
	}
	err = eventually(ctx, func(ctx context.Context) error {
		if err := w.members[2].Get(ctx, k, &mcsv1beta1.ServiceImport{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%s in %s: %w", k, w.members[2].id, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := w.hub.APIServer.Restart(ctx); err != nil {
		return err
	}
	if err := w.tooOld(ctx, last); err != nil {
		return err
	}
	if err := m.Get(ctx, k, &mcsv1beta1.ServiceImport{}); err != nil {
		return fmt.Errorf("%s has seen the withdrawal (%w): %w", m.id, err, errNoEffect)
	}
	m.line.heal()
	return eventually(ctx, func(ctx context.Context) error {
		if err := m.Get(ctx, k, &mcsv1beta1.ServiceImport{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%s in %s: %w", k, m.id, err)
		}
		return nil
	})
}

// tooOld returns nil where the hub refuses to go on with a watch from a revision.
func (w *world) tooOld(ctx context.Context, revision int) error {
	hub, err := w.hub.Client(w.hubKube.Scheme())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	watcher, err := hub.Watch(ctx, &hubv1alpha1.PublishedServiceList{}, &client.ListOptions{
		Raw: &metav1.ListOptions{ResourceVersion: strconv.Itoa(revision)},
	})
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer watcher.Stop()
	event := <-watcher.ResultChan()
	if err := apierrors.FromObject(event.Object); event.Type != watch.Error || !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		return fmt.Errorf("a watch from revision %d goes on with %s: %w", revision, event.Type, errNoEffect)
	}
	return nil
}
