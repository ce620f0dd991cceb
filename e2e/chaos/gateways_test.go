// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	framework "github.com/tombolo-mcs/tombolo/e2e/framework/world"
	"github.com/tombolo-mcs/tombolo/internal/gateway/identity"
	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// gatewayFault is something that goes wrong with gateways.
type gatewayFault struct {
	name string
	// begin returns when the fault has taken effect, end ends it.
	begin, end func(context.Context, *networks) error
	// serves says that each request made between begin and end is answered, except for some that are lost. Without it,
	// one must fail.
	serves bool
	lost   int
}

// lostWhenFrozen is the largest number of requests that are lost when a gateway of the exporter freezes: those whose bytes went to it by
// an idle connection, of which each gateway of the importer has a few, and which must not be sent again (G7).
const lostWhenFrozen = 16

// gatewayFaults returns all. a imports, b exports, and each has two gateways.
func gatewayFaults() []gatewayFault {
	return append(stormFaults(), []gatewayFault{
		{name: "a gateway of the exporter is killed", begin: exporterDown(syscall.SIGKILL), end: gatewayUp("b"), serves: true},
		{name: "a gateway of the exporter is frozen", begin: exporterDown(syscall.SIGSTOP), end: gatewayUp("b"), serves: true, lost: lostWhenFrozen},
		{name: "all gateways of the exporter are killed", begin: exporterGateways((*agent).kill), end: exporterGateways((*agent).start)},
		{name: "a gateway of the importer is killed", begin: importerDown(syscall.SIGKILL), end: gatewayUp("a"), serves: true},
		{name: "a gateway of the importer is frozen", begin: importerDown(syscall.SIGSTOP), end: gatewayUp("a"), serves: true},
		{name: "no packet passes between the networks", begin: cutNetworks, end: mendNetworks},
		{name: "the API servers of both clusters are down", begin: serversDown, end: serversUp, serves: true},
		{name: "the hub and the agents are down", begin: agentsDown, end: agentsUp, serves: true},
		{name: "the certificate has expired", begin: expire, end: startAgent("b")},
		{name: "another authority is published", begin: publishAnother, end: startAgent("b")},
		{name: "the slices are deleted", begin: deleteSlices, end: startAgent("a")},
		{name: "the exports are deleted", begin: deleteExports, end: createExports},
		{name: "the namespace of the imports is deleted", begin: deleteNamespace, end: createNamespace},
		{name: "all listening ports are in use", begin: usePorts, end: freePorts, serves: true},
		{name: "two services lead to each other", begin: leadInCircles, end: breakCircles, serves: true},
		{name: "a service is withdrawn while all listening ports are in use", begin: withdrawWhenFull, end: reuseAfterQuarantine},
	}...)
}

// Faults of gateways: no request arrives twice, or at a service that it did not ask for, also where a client uses an address that is no
// longer listed. Where another gateway can serve, each request is answered; after each fault, all are. With CHAOS_TIME, faults begin for a
// quarter of that time.
//
// spec: G3, G5, G7, G10, W5
func TestGatewayFaults(t *testing.T) {
	t.Parallel()
	faults := namedIn(os.Getenv("CHAOS_FAULTS"), gatewayFaults(), func(f gatewayFault) string { return f.name })
	if os.Getenv("CHAOS") == "" || len(faults) == 0 || os.Geteuid() != 0 {
		t.Skip("make chaos runs it, as root, if CHAOS_FAULTS names a fault of gateways or none")
	}
	seed := seed(t)
	t.Logf("CHAOS_SEED=%d", seed)
	n := newNetworks(t)
	stop := n.startClients(t, rand.New(rand.NewPCG(seed, 1)))
	defer stop()
	n.recover(t, "the start")
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
	limit, first := duration(t, "CHAOS_TIME")/4, time.Now()
	for _, f := range faults {
		begin := time.Now()
		if limit > 0 && begin.Sub(first) > limit {
			return
		}
		if err := f.begin(t.Context(), n); err != nil {
			t.Errorf("%s: %v", f.name, err)
		}
		struck := time.Now()
		pause(t.Context(), 6*time.Second)
		answered, failed := n.requests.since(t, struck, time.Now())
		switch {
		case f.serves && len(failed) > f.lost:
			t.Errorf("%s: %d requests are answered, %d are not: %v", f.name, answered, len(failed), failed[0])
		case f.serves && answered == 0, !f.serves && len(failed) == 0:
			t.Errorf("%s: %d requests are answered, %d are not: %v", f.name, answered, len(failed), errNoEffect)
		}
		if err := f.end(context.WithoutCancel(t.Context()), n); err != nil {
			t.Errorf("%s: %v", f.name, err)
		}
		took := n.recover(t, f.name)
		t.Logf("%-60s %4d answered, %4d failed, %5.1fs until well, %5.1fs in all",
			f.name, answered, len(failed), took.Seconds(), time.Since(begin).Seconds())
		if t.Failed() {
			return
		}
	}
}

func exporterDown(signal syscall.Signal) func(context.Context, *networks) error {
	return func(_ context.Context, n *networks) error { return n.gateways["b"][0].down(signal) }
}

// exporterGateways does something to both gateways of the exporter.
func exporterGateways(do func(*agent) error) func(context.Context, *networks) error {
	return func(_ context.Context, n *networks) error {
		return errors.Join(do(n.gateways["b"][0]), do(n.gateways["b"][1]))
	}
}

// importerDown returns when no slice lists the gateway, which no kubelet says is not ready: until then, clients get no answer from it.
func importerDown(signal syscall.Signal) func(context.Context, *networks) error {
	return func(ctx context.Context, n *networks) error {
		if err := n.gateways["a"][0].down(signal); err != nil {
			return err
		}
		return eventually(ctx, func(context.Context) error { return n.listed(1) })
	}
}

func gatewayUp(id string) func(context.Context, *networks) error {
	return func(_ context.Context, n *networks) error { return n.gateways[id][0].up() }
}

func (a *agent) down(signal syscall.Signal) error {
	if signal == syscall.SIGKILL {
		return a.kill()
	}
	return a.send(signal)
}

func (a *agent) up() error {
	if a.runs() {
		return a.send(syscall.SIGCONT)
	}
	return a.start()
}

func cutNetworks(ctx context.Context, n *networks) error {
	rules := "table inet tombolo_chaos {\nchain output {\ntype filter hook output priority 0;\n"
	for _, port := range []string{"dport", "sport"} {
		rules += fmt.Sprintf("ip daddr %s tcp %s %d drop\n", hosts, port, n.port)
	}
	return nft(ctx, rules+"}\n}\n")
}

func mendNetworks(ctx context.Context, _ *networks) error {
	return nft(ctx, "delete table inet tombolo_chaos\n")
}

func nft(ctx context.Context, rules string) error {
	command := exec.CommandContext(ctx, "nft", "-f", "-")
	command.Stdin = strings.NewReader(rules)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("nft: %w: %s", err, out)
	}
	return nil
}

// expire gives the exporter's gateways a certificate of a month ago, as a wrong clock would, and ends their connections.
func expire(ctx context.Context, n *networks) error {
	b := n.Members["b"]
	authority, leaf := &corev1.Secret{}, &corev1.Secret{}
	err := errors.Join(n.agents["b"].kill(),
		b.Get(ctx, client.ObjectKey{Namespace: manifests.AgentNamespace, Name: clusterset.GatewayAuthoritySecret}, authority),
		b.Get(ctx, client.ObjectKey{Namespace: manifests.AgentNamespace, Name: clusterset.GatewayCertificateSecret}, leaf))
	if err != nil {
		return err
	}
	rotation, err := identity.DecodeRotation(authority.Data[clusterset.GatewayAuthorityKey])
	if err != nil {
		return err
	}
	current, err := identity.DecodeLeaf(leaf.Data[corev1.TLSCertKey], leaf.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return err
	}
	old, key, err := rotation[0].Issue(identity.NameOf(current), time.Now().AddDate(0, -1, 0))
	if err != nil {
		return err
	}
	leaf.Data[corev1.TLSCertKey], leaf.Data[corev1.TLSPrivateKeyKey] = old, key
	if err := b.Update(ctx, leaf); err != nil {
		return err
	}
	return exporterGateways((*agent).crash)(ctx, n)
}

// publishAnother replaces the certificate of the exporter's authority on the hub.
func publishAnother(ctx context.Context, n *networks) error {
	if err := n.agents["b"].kill(); err != nil {
		return err
	}
	another, err := identity.NewAuthority("b", time.Now())
	if err != nil {
		return err
	}
	key := client.ObjectKey{Namespace: clusterset.ClusterID("b").HubNamespace(), Name: hubv1alpha1.GatewayName}
	return soon(ctx, func(ctx context.Context) error { // a hub that has just started may refuse it for half a minute
		published := &hubv1alpha1.PublishedGateway{}
		if err := n.HubClient.Get(ctx, key, published); err != nil {
			return err
		}
		published.Spec.Bundle = identity.EncodeBundle([]identity.Authority{another})
		return n.HubClient.Update(ctx, published)
	})
}

func startAgent(id string) func(context.Context, *networks) error {
	return func(_ context.Context, n *networks) error { return n.agents[id].start() }
}

func serversDown(_ context.Context, n *networks) error {
	n.Members["a"].Cluster.APIServer.Kill()
	n.Members["b"].Cluster.APIServer.Kill()
	return nil
}

func serversUp(ctx context.Context, n *networks) error {
	return errors.Join(n.Members["a"].Cluster.APIServer.Start(ctx), n.Members["b"].Cluster.APIServer.Start(ctx))
}

func agentsDown(_ context.Context, n *networks) error {
	n.Hub.APIServer.Kill()
	return errors.Join(n.agents["a"].kill(), n.agents["b"].kill())
}

func agentsUp(ctx context.Context, n *networks) error {
	return errors.Join(n.Hub.APIServer.Start(ctx), n.agents["a"].start(), n.agents["b"].start())
}

// deleteSlices deletes what the importer's agent has written, while it does not run.
func deleteSlices(ctx context.Context, n *networks) error {
	err := n.agents["a"].kill()
	return errors.Join(err, n.exports(func(k framework.Key) error {
		return n.Members["a"].DeleteAllOf(ctx, &discoveryv1.EndpointSlice{}, client.InNamespace(k.Namespace), client.HasLabels{clusterset.LabelGateway})
	}))
}

func deleteExports(ctx context.Context, n *networks) error {
	return n.exports(func(k framework.Key) error { return n.Members["b"].Delete(ctx, framework.Export(k)) })
}

func createExports(ctx context.Context, n *networks) error {
	return n.exports(func(k framework.Key) error { return n.Members["b"].Create(ctx, framework.Export(k)) })
}

// recover returns how long it takes until all requests are answered again, and fails the test if one of the next is not.
func (n *networks) recover(t *testing.T, name string) time.Duration {
	t.Helper()
	begin := time.Now()
	lab.Eventually(t, time.Minute, func(ctx context.Context) error {
		from := time.Now()
		pause(ctx, time.Second)
		answered, failed := n.requests.since(t, from, time.Now())
		if answered < 10 || len(failed) > 0 {
			return fmt.Errorf("%s: %d requests are answered, %d are not: %v", name, answered, len(failed), failed)
		}
		return n.listed(len(n.gateways["a"]))
	})
	took, from := time.Since(begin), time.Now()
	pause(t.Context(), 2*time.Second)
	if answered, failed := n.requests.since(t, from, time.Now()); len(failed) > 0 || answered == 0 {
		t.Errorf("%s: all is well, and then %d requests are answered, %d are not: %v", name, answered, len(failed), failed)
	}
	if wrong := n.requests.wrong(); len(wrong) > 0 {
		t.Errorf("%s: %v", name, wrong)
	}
	return took
}
