// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	framework "github.com/tombolo-mcs/tombolo/e2e/framework/world"
	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// hosts are the addresses of the gateways and backends, which this machine has for the time of a test: EndpointSlices may not contain
// those of loopback.
const hosts = "198.19.128.0/24"

func host(i int) string { return fmt.Sprintf("198.19.128.%d", i) }

// networks are two clusters in different networks, with agents and two gateways each. a imports what b exports.
type networks struct {
	*framework.World
	namespace string
	port      int // of the exporter's gateways
	agents    map[string]*agent
	gateways  map[string][]*agent
	requests  *requests
	undo      []func(context.Context) error // what ends the current fault
}

var servicesAcross = []string{"web", "other"}

func newNetworks(t *testing.T) *networks {
	t.Helper()
	for i := range 6 {
		ip := func(verb string) error {
			out, err := exec.CommandContext(context.WithoutCancel(t.Context()), "ip", "address", verb, host(i+1)+"/32", "dev", "lo").CombinedOutput()
			if err != nil {
				err = fmt.Errorf("ip address %s: %w: %s", verb, err, out)
			}
			return err
		}
		lab.Must(t, ip("replace")) // a test that was killed has left them
		t.Cleanup(func() { lab.Must(t, ip("del")) })
	}
	t.Cleanup(func() { _ = mendNetworks(context.WithoutCancel(t.Context()), nil) }) // if the test ends while they are cut
	importing := lab.Member("a")
	importing.Controllers = []string{"namespace-controller", "serviceaccount-controller"}
	n := &networks{
		World: framework.New(t, membership.Hub(), importing, lab.Member("b")), agents: map[string]*agent{}, gateways: map[string][]*agent{},
		requests: &requests{
			open: map[string]time.Time{}, arrived: map[string]int{}, addresses: map[string][]string{}, listed: map[string]map[string]time.Time{},
		},
	}
	a, b := n.Members["a"], n.Members["b"]
	n.namespace = framework.Namespace(t, a, b)
	var err error
	n.port, err = lab.FreePort()
	lab.Must(t, err)
	agent, gateway := fewPortsPrograms(t)
	n.startMember(t, "a", agent, gateway, []string{host(1), host(2)},
		"--gateway-address="+n.between(host(1))+","+n.between(host(2)))
	n.startMember(t, "b", agent, gateway, []string{host(3), host(4)},
		"--gateway-address="+n.between(host(3))+","+n.between(host(4)))
	for m, gateways := range map[*framework.Member][]string{a: {host(1), host(2)}, b: {host(3), host(4)}} {
		service := &corev1.Service{}
		lab.Must(t, m.Get(t.Context(), client.ObjectKey{Namespace: manifests.AgentNamespace, Name: clusterset.GatewayService}, service))
		lab.Must(t, m.Create(t.Context(), framework.Slice(service, "v4", gateways...))) // as Kubernetes would
	}
	for _, name := range servicesAcross {
		port := n.requests.serve(t, name)
		exported := framework.Service(framework.Key{Namespace: n.namespace, Name: name},
			corev1.ServicePort{Name: "lines", Protocol: corev1.ProtocolTCP, Port: 80, TargetPort: intstr.FromInt32(port)})
		b.ExportService(t, exported, framework.Slice(exported, "v4", host(5), host(6))) // two, or clients use one gateway
	}
	n.offerFillers(t)
	return n
}

// between returns where a gateway of the exporter listens.
func (n *networks) between(host string) string { return net.JoinHostPort(host, strconv.Itoa(n.port)) }

// startMember starts the agent and the gateways of a member, as processes with the rights of the released ones.
func (n *networks) startMember(t *testing.T, id, program, gateway string, at []string, more ...string) {
	t.Helper()
	m := n.Members[id]
	n.ChangeMember(t, id, func(s *hubv1alpha1.MemberSpec) {
		s.Network, s.Publish, s.GatewayCIDRs = "network-"+id, hubv1alpha1.PublishAvailability, []hubv1alpha1.CIDR{hosts}
		if id == "b" { // its backends
			s.PodCIDRs = []hubv1alpha1.CIDR{hubv1alpha1.CIDR(host(5) + "/32"), hubv1alpha1.CIDR(host(6) + "/32")}
		}
	})
	lab.Must(t, membership.InstallGateway(t.Context(), m.Cluster))
	folder := filepath.Dir(m.Cluster.Kubeconfig())
	run := func(name, path string, args ...string) *agent {
		a := &agent{path: path, folder: folder, name: name, args: args}
		lab.Must(t, a.start())
		t.Cleanup(func() {
			lab.Must(t, a.kill())
			if t.Failed() {
				t.Logf("%s of %s ends:\n%s", name, id, a.tail(40))
			}
		})
		return a
	}
	args, err := membership.AgentArgs(t.Context(), n.Hub, m.Cluster, "0")
	lab.Must(t, err)
	n.agents[id] = run("agent", program, append(args, more...)...)
	own, err := m.Cluster.ServiceAccountKubeconfig(t.Context(), manifests.AgentNamespace, manifests.GatewayDeployment)
	lab.Must(t, err)
	for i, address := range at {
		name := fmt.Sprintf("gateway-%d", i)
		n.gateways[id] = append(n.gateways[id], run(name, "/usr/bin/env", "POD_NAMESPACE="+manifests.AgentNamespace, "POD_NAME="+name,
			fmt.Sprintf("POD_UID=00000000-0000-0000-0000-%012d", i+1), "POD_IPS="+address, gateway, "--kubeconfig="+own,
			"--bind-address="+n.between(address), "--metrics-bind-address=0", "--health-probe-bind-address="+address+":8081", "--v=1"))
	}
}

// startClients starts clients in a, which know the addresses of the services as kube-proxy would. The result ends them.
func (n *networks) startClients(t *testing.T, random *rand.Rand) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			for _, service := range servicesAcross {
				if addresses, err := n.addresses(ctx, service); err == nil {
					n.requests.find(service, addresses)
				}
			}
			pause(ctx, 100*time.Millisecond)
		}
	})
	running.Go(func() { n.requests.ask(ctx, random, servicesAcross) })
	return func() {
		cancel()
		running.Wait()
	}
}

// addresses returns where clients of a find a service.
func (n *networks) addresses(ctx context.Context, service string) (all []string, err error) {
	mirrored, err := n.Members["a"].Mirrored(ctx, framework.Key{Namespace: n.namespace, Name: service})
	for _, slice := range mirrored {
		for _, endpoint := range slice.Endpoints {
			if *endpoint.Conditions.Ready && len(slice.Ports) > 0 {
				all = append(all, net.JoinHostPort(endpoint.Addresses[0], strconv.Itoa(int(*slice.Ports[0].Port))))
			}
		}
	}
	return all, err
}

// listed returns an error unless clients of a use this number of gateways for each service.
func (n *networks) listed(want int) error {
	n.requests.mu.Lock()
	defer n.requests.mu.Unlock()
	for _, service := range servicesAcross {
		if got := n.requests.addresses[service]; len(got) != want {
			return fmt.Errorf("clients use %v for %s, want %d", got, service, want)
		}
	}
	return nil
}

// exports does something for each service of b, with the key of its objects.
func (n *networks) exports(do func(framework.Key) error) (err error) {
	for _, service := range servicesAcross {
		err = errors.Join(err, do(framework.Key{Namespace: n.namespace, Name: service}))
	}
	return err
}
