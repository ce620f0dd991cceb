// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/chaos/oracle"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	framework "github.com/tombolo-mcs/tombolo/e2e/framework/world"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// copied is a cluster that was restored from a snapshot of a member: with its ID, its UID, and its token for the hub.
type copied struct {
	*member
	lab *lab.Lab
	// offers is what only the copy exports.
	offers *discoveryv1.EndpointSlice
}

// copyOf restores a snapshot of a member beside it. In the copy, a service has other endpoints, and another one is not exported.
func (w *world) copyOf(ctx context.Context, m *member, changed, withdrawn oracle.Key) *copied {
	backup := w.backup()
	w.must(m.cluster.Backup(ctx, backup))
	options := lab.Member(m.id)
	options.ServiceCIDRs = m.cluster.ServiceCIDRs
	l, err := lab.New(ctx, lab.Options{Clusters: []lab.ClusterOptions{options}, Log: w.t.Logf})
	w.must(err)
	cluster := l.Cluster(m.id)
	w.must(cluster.Restore(ctx, backup))
	c := &copied{lab: l, member: &member{id: m.id, index: m.index, cluster: cluster, Client: membership.Client(w.t, cluster)}}
	local, err := membership.InstallAgent(ctx, cluster)
	w.must(err)
	c.localKubeconfig, c.hubKubeconfig = filepath.Join(c.folder(), "agent.kubeconfig"), m.hubKubeconfig
	w.must(lab.WriteKubeconfig(c.localKubeconfig, local))
	c.agent = agentOf(w.t, c.member, m.agent.path)
	slice := &discoveryv1.EndpointSlice{ObjectMeta: meta(changed)}
	slice.Name += "-v4"
	c.offers = slice
	w.must(c.edit(ctx, slice, func() { slice.Endpoints = c.slice(service(changed, 0), "IPv4", 3, w.random).Endpoints }))
	w.must(c.Delete(ctx, framework.Export(withdrawn)))
	return c
}

func (c *copied) end() error { return errors.Join(c.agent.kill(), c.lab.Close()) }

// memberCopied restores a snapshot of a member beside it. The copy has a restart of its agent now and then, as the member has.
func memberCopied(ctx context.Context, w *world) error {
	m := w.members[0]
	changed, withdrawn := oracle.Key{Namespace: scratch, Name: "changed"}, oracle.Key{Namespace: scratch, Name: "withdrawn"}
	w.must(w.offer(ctx, m, service(changed, 0), w.random), w.offer(ctx, m, service(withdrawn, 0), w.random), w.imported(ctx, withdrawn))
	c := w.copyOf(ctx, m, changed, withdrawn)
	for range 3 {
		w.must(c.agent.start(), yields(ctx, c.agent), w.beats(ctx, m), m.agent.crash(), w.beats(ctx, m), c.agent.kill())
	}
	return errors.Join(c.end(), w.withdraw(ctx, m, changed), w.withdraw(ctx, m, withdrawn))
}

// copiedWhileDown restores a snapshot of a member while its agent does not run. Then who renews is the copy, and the member yields when its
// agent returns, until that of the copy has ended.
func copiedWhileDown(ctx context.Context, w *world) error {
	m := w.members[0]
	changed, withdrawn := oracle.Key{Namespace: scratch, Name: "changed"}, oracle.Key{Namespace: scratch, Name: "withdrawn"}
	w.must(w.offer(ctx, m, service(changed, 0), w.random), w.offer(ctx, m, service(withdrawn, 0), w.random), w.imported(ctx, withdrawn))
	w.must(w.willChangeAll(ctx, m))
	w.watch.will(oracle.Silence, m.id, oracle.Key{})
	w.must(m.agent.kill())
	c := w.copyOf(ctx, m, changed, withdrawn)
	w.watch.offers(m.id, c.offers)
	w.must(c.agent.start(), w.beats(ctx, m), gone(ctx, w.members[1:], withdrawn))
	w.must(m.agent.start(), yields(ctx, m.agent), w.beats(ctx, m))
	nonce, err := w.nonce(ctx, m)
	w.must(err, w.willChangeAll(ctx, m), c.end())
	err = eventually(ctx, func(ctx context.Context) error {
		if now, err := w.nonce(ctx, m); err != nil || now == nonce {
			return errors.Join(err, fmt.Errorf("%s does not continue", m.id))
		}
		return nil
	})
	return errors.Join(err, w.imported(ctx, withdrawn), w.withdraw(ctx, m, changed), w.withdraw(ctx, m, withdrawn))
}

// yields returns when an agent says that it yields to another one with its identity, and has neither said otherwise nor started since.
func yields(ctx context.Context, a *agent) error {
	return eventually(ctx, func(context.Context) error {
		text, err := os.ReadFile(a.log())
		if err != nil {
			return err
		}
		lines := slices.DeleteFunc(strings.Split(string(text), "\n"), func(line string) bool {
			return !strings.Contains(line, "the permission to use the cluster ID has changed") && !strings.Contains(line, "msg=started")
		})
		if len(lines) == 0 || !strings.Contains(lines[len(lines)-1], "another agent with the identity of this cluster") {
			return fmt.Errorf("the agent in %s does not yield: %w", a.folder, errNoEffect)
		}
		return nil
	})
}

func (w *world) nonce(ctx context.Context, m *member) (string, error) {
	beat := &hubv1alpha1.Heartbeat{}
	err := w.hubKube.Get(ctx, client.ObjectKey{Namespace: "member-" + m.id, Name: hubv1alpha1.HeartbeatName}, beat)
	return beat.Spec.Nonce, err
}
