// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/cli"
	"github.com/tombolo-mcs/tombolo/e2e/chaos/oracle"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// allButOneDown has all agents end but one, and come back.
func allButOneDown(ctx context.Context, w *world) error {
	survivor := w.random.IntN(2) // the last member exports least
	var down []*member
	for i, m := range w.members {
		if i != survivor {
			down = append(down, m)
		}
	}
	err := w.silence(ctx, nil, down...)
	for _, m := range down {
		err = errors.Join(err, m.agent.start())
	}
	return err
}

// silence has members' agents end and returns when all others hold what they must without them. Then it does something, if that is
// not nil, of which nothing may come. Nothing may move.
func (w *world) silence(ctx context.Context, then func() error, down ...*member) error {
	if _, never, wrong, err := w.settled(ctx); err != nil || len(never)+len(wrong) > 0 {
		return fmt.Errorf("before it: %v %v: %w", never, wrong, err)
	}
	defer clear(w.silent)
	for _, m := range down {
		w.watch.will(oracle.Silence, m.id, oracle.Key{})
		w.must(m.agent.kill())
		w.silent[m.id] = true
	}
	_, never, wrong, err := w.settled(ctx)
	if then != nil && err == nil && len(never)+len(wrong) == 0 {
		w.must(then())
		_, never, wrong, err = w.settled(ctx)
	}
	for _, m := range down {
		w.watch.will(oracle.Silence, m.id, oracle.Key{})
	}
	if err != nil || len(never)+len(wrong) > 0 {
		return fmt.Errorf("while agents are down: %v %v: %w", never, wrong, err)
	}
	for _, m := range down {
		if left, err := w.hasLeft(ctx, m); err != nil || !left {
			return errors.Join(err, fmt.Errorf("no endpoint of %s has left: %w", m.id, errNoEffect))
		}
	}
	return nil
}

// restartedWithOneDown restarts all agents but that of a member that is down: ports that were left out do not return.
func restartedWithOneDown(ctx context.Context, w *world) error {
	m := w.members[w.random.IntN(2)]
	err := w.silence(ctx, func() error {
		for _, other := range w.members {
			if other == m {
				continue
			}
			if err := errors.Join(other.agent.crash(), w.beats(ctx, other)); err != nil {
				return err
			}
		}
		return nil
	}, m)
	return errors.Join(err, m.agent.start())
}

// suspended has the hub's administrator suspend a member, while the agent of another does not run: it reads it in a list. What
// the member exports goes everywhere, and comes back when the suspension ends.
func suspended(ctx context.Context, w *world) error {
	m, stopped := w.members[2], w.members[1]
	k := oracle.Key{Namespace: scratch, Name: "suspended"}
	w.must(w.offer(ctx, m, service(k, 0), w.random), w.imported(ctx, k), w.willChangeAll(ctx, m))
	w.watch.will(oracle.Silence, stopped.id, oracle.Key{})
	w.must(stopped.agent.stop())
	hub, found := &member{Client: w.hubKube}, &hubv1alpha1.Member{}
	found.Namespace, found.Name = "member-"+m.id, hubv1alpha1.MemberName
	err := hub.edit(ctx, found, func() { found.Spec.Suspended = true })
	w.must(err, w.hasNothingOf(ctx, w.members[0], m), stopped.agent.start(), w.hasNothingOf(ctx, stopped, m))
	err = hub.edit(ctx, found, func() { found.Spec.Suspended = false })
	return errors.Join(err, w.imported(ctx, k), w.withdraw(ctx, m, k))
}

// hasNothingOf returns when a member has no endpoint of another.
func (w *world) hasNothingOf(ctx context.Context, in, of *member) error {
	return eventually(ctx, func(ctx context.Context) error {
		list := &discoveryv1.EndpointSliceList{}
		if err := in.List(ctx, list, client.MatchingLabels{mcsv1beta1.LabelSourceCluster: of.id}); err != nil {
			return err
		}
		if len(list.Items) > 0 {
			return fmt.Errorf("%s has %d slices of %s", in.id, len(list.Items), of.id)
		}
		return nil
	})
}

// willChangeAll notes that all that a member exports is about to change.
func (w *world) willChangeAll(ctx context.Context, m *member) error {
	exports := &mcsv1beta1.ServiceExportList{}
	w.must(m.List(ctx, exports))
	for _, e := range exports.Items {
		w.watch.will(oracle.Source, m.id, client.ObjectKeyFromObject(&e))
	}
	w.watch.will(oracle.Loss, m.id, oracle.Key{})
	return nil
}

// hasLeft reports whether the endpoints of a member have left a service of a live one, in a family at least: of each family, others must
// have a ready endpoint.
func (w *world) hasLeft(ctx context.Context, m *member) (bool, error) {
	for _, other := range w.members {
		if other == m || w.silent[other.id] {
			continue
		}
		for i := range stillServices { // headless ones keep them
			mirrored, err := other.mirrored(ctx, stillKey(i), m.id)
			if err != nil {
				return false, err
			}
			families := sets.New[discoveryv1.AddressType]()
			for _, s := range mirrored {
				if len(s.Ports) > 0 { // or it only has the identity of its missing record
					families.Insert(s.AddressType)
				}
			}
			if exports := m.index < 3 || i%3 == 0; exports && families.Len() < 2 {
				return true, nil
			}
		}
	}
	return false, nil
}

// memberFlaps stops and starts an agent repeatedly: first for less than the time after which a member is silent, then for longer, so that its
// endpoints are removed.
func memberFlaps(ctx context.Context, w *world) error {
	m := w.members[w.random.IntN(2)]
	for range 2 {
		w.must(m.agent.kill())
		w.must(w.keepsQuiet(ctx, m))
		w.must(m.agent.start(), w.beats(ctx, m))
	}
	for range 2 {
		w.must(w.silence(ctx, nil, m))
		w.must(m.agent.start())
	}
	return nil
}

// silentLeaves has the hub's administrator let a member leave whose agent is down. Its share of all imports goes. Then it
// comes back and joins again.
func silentLeaves(ctx context.Context, w *world) error {
	m := w.members[2]
	w.must(w.willChangeAll(ctx, m))
	w.watch.will(oracle.Silence, m.id, oracle.Key{})
	w.must(m.agent.kill())
	w.silent[m.id] = true
	defer delete(w.silent, m.id)
	w.must(w.administer(ctx, "leave --from hub --yes --cluster-id "+m.id))
	member := &hubv1alpha1.Member{ObjectMeta: metav1.ObjectMeta{Namespace: "member-" + m.id, Name: hubv1alpha1.MemberName}}
	if err := w.hubKube.Get(ctx, client.ObjectKeyFromObject(member), member); !apierrors.IsNotFound(err) {
		return fmt.Errorf("%s is still a member (%w): %w", m.id, err, errNoEffect)
	}
	w.must(w.hasNothingOf(ctx, w.members[0], m))
	config := &rest.Config{}
	err := eventually(ctx, func(ctx context.Context) (err error) { // its namespace may still be ending
		config, err = membership.Join(ctx, w.hub, m.cluster, m.options())
		return err
	})
	w.must(err)
	return errors.Join(m.renew(config.BearerToken), m.agent.start())
}

// administer runs "kubectl clusterset" with the credentials of the hub's administrator.
func (w *world) administer(ctx context.Context, command string) error {
	path := filepath.Join(filepath.Dir(w.hub.Kubeconfig()), "chaos.kubeconfig")
	if err := lab.WriteKubeconfig(path, w.hub.Config()); err != nil { // its certificate may be another by now
		return err
	}
	var out bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out}
	args := append(strings.Fields(command), "--hub-context", "lab", "--kubeconfig", path)
	if code := cli.Run(ctx, cli.Build{Version: "v0.0.0-test"}, args, streams); code != cli.ExitOK {
		return fmt.Errorf("$ kubectl clusterset %s\n%sexit code %d", command, out.String(), code)
	}
	return nil
}
