// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gateway_test runs agents and gateways of two clusters in different networks, with real API servers and connections.
package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/trace"
	"github.com/tombolo-mcs/tombolo/cmd/tombolo-gateway/gateway"
	"github.com/tombolo-mcs/tombolo/controllers/agent"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	"github.com/tombolo-mcs/tombolo/manifests"
	gatewayv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/gateway/v1alpha1"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// env is a hub with members whose agents and gateways run.
type env struct {
	*world.World
	host string
	// metrics are those of the gateways, by their clusters.
	metrics map[string]prometheus.Gatherer
	// readiness and log are the URL and the log of the last gateway.
	readiness string
	log       *world.Output
}

func (e *env) freeAddress(t *testing.T) *net.TCPAddr {
	t.Helper()
	free, err := net.Listen("tcp", net.JoinHostPort(e.host, "0"))
	lab.Must(t, err)
	lab.Must(t, free.Close())
	return free.Addr().(*net.TCPAddr)
}

// isReady fails the test unless the last gateway is ready.
func (e *env) isReady(t *testing.T) {
	t.Helper()
	_, err := lab.Get(t.Context(), http.DefaultClient, e.readiness)
	lab.Must(t, err)
}

// member makes a cluster a member of a network, and starts its agent.
func (e *env) member(t *testing.T, id, network string) {
	t.Helper()
	m := e.Members[id]
	e.ChangeMember(t, id, func(s *hubv1alpha1.MemberSpec) {
		s.Network, s.Publish, s.GatewayCIDRs = network, hubv1alpha1.PublishAvailability, []hubv1alpha1.CIDR{hubv1alpha1.CIDR(e.host + "/32")}
	})
	m.Start(t, func(o *agent.Options) { o.Namespace = manifests.AgentNamespace })
	lab.Must(t, membership.InstallGateway(t.Context(), m.Cluster))
}

// gateway starts a gateway of a cluster, with the rights of its manifests, and publishes its address. The result stops it.
func (e *env) gateway(t *testing.T, id string) (stop func()) {
	t.Helper()
	m := e.Members[id]
	address, probes := e.freeAddress(t), e.freeAddress(t)
	e.readiness = "http://" + probes.String() + "/readyz"
	service := &corev1.Service{}
	key := client.ObjectKey{Namespace: manifests.AgentNamespace, Name: clusterset.GatewayService}
	lab.Must(t, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := m.Get(t.Context(), key, service); err != nil {
			return err
		}
		service.Spec.Ports[0].Port = int32(address.Port)
		if err := m.Update(t.Context(), service); err != nil {
			return err
		}
		service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: e.host}}
		return m.Status().Update(t.Context(), service)
	}))
	config, err := m.Cluster.ServiceAccountConfig(t.Context(), manifests.AgentNamespace, "tombolo-gateway")
	lab.Must(t, err)
	log := &world.Output{}
	e.log = log
	registry := prometheus.NewRegistry()
	e.metrics[id] = registry
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- gateway.Run(ctx, gateway.Options{
			Cluster: config, Namespace: manifests.AgentNamespace, PodName: "gateway-" + id, PodUID: "00000000-0000-0000-0000-000000000001",
			PodIPs: []string{e.host}, Listen: address.String(), MetricsAddress: "0", ProbeAddress: probes.String(), DrainTimeout: 10 * time.Second,
			MaxStreams: 2 * idleStreams, MaxStreamsEach: 2 * idleStreams, LargeBuffers: 16, Registry: registry,
			Log: log.Logger(),
		})
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("gateway of %s: %v", id, err)
		}
	})
	t.Cleanup(func() {
		stop()
		if t.Failed() {
			t.Logf("gateway of %s:\n%s", id, log.Tail(math.MaxInt))
		}
	})
	return stop
}

// backend answers each line with a name, as a pod of a member in the host network, and returns its port on this machine.
func (e *env) backend(t *testing.T, id, namespace, name string) (port int) {
	t.Helper()
	defer func() { e.backendPod(t, id, namespace, port) }()
	return lab.ServeTCP(t, net.JoinHostPort(e.host, "0"), func(conn net.Conn) {
		defer conn.Close()
		lines := bufio.NewScanner(conn)
		for lines.Scan() {
			fmt.Fprintf(conn, "%s: %s\n", name, lines.Text())
		}
	}).Port
}

// export exports a Service with one backend.
func (e *env) export(t *testing.T, id string, k world.Key) {
	t.Helper()
	service := world.Service(k, corev1.ServicePort{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80, TargetPort: intstr.FromInt(e.backend(t, id, k.Namespace, id))})
	e.Members[id].ExportService(t, service, world.Slice(service, "v4", e.host))
}

// listening returns where the gateways of a member listen for Service port 80 of an import.
func (e *env) listening(ctx context.Context, id string, k world.Key) (address string, err error) {
	slices, err := e.Members[id].Mirrored(ctx, k)
	for _, slice := range slices {
		if slice.Labels[clusterset.LabelGateway] != "" && len(slice.Endpoints) > 0 && len(slice.Ports) > 0 {
			return net.JoinHostPort(slice.Endpoints[0].Addresses[0], strconv.Itoa(int(*slice.Ports[0].Port))), nil
		}
	}
	return "", errors.Join(err, fmt.Errorf("import %s has no endpoint of a gateway: %+v", k, slices))
}

// ask sends a line, and returns the answer.
func ask(address string) (string, error) {
	conn, err := connect(address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return "", err
	}
	return say(conn)
}

func say(conn net.Conn) (string, error) {
	if _, err := io.WriteString(conn, "hello\n"); err != nil {
		return "", err
	}
	answer, err := bufio.NewReader(conn).ReadString('\n')
	return strings.TrimSpace(answer), err
}

// scrape fails the test unless the metrics of a cluster's gateway contain some texts, and keeps them.
func (e *env) scrape(t *testing.T, id string, texts ...string) {
	t.Helper()
	families, err := e.metrics[id].Gather()
	lab.Must(t, err)
	var text bytes.Buffer
	encoder := expfmt.NewEncoder(&text, expfmt.NewFormat(expfmt.TypeTextPlain))
	for _, family := range families {
		lab.Must(t, encoder.Encode(family))
	}
	for _, want := range texts {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the metrics lack %s:\n%s", want, &text)
		}
	}
	world.KeepScrape(t, "gateway.prom", text.Bytes())
}

// survey reads the clusterset as the command does.
func (e *env) survey(ctx context.Context) (*survey.Clusterset, error) {
	var contexts []survey.KubeContext
	for _, c := range []*lab.Cluster{e.Hub, e.Members["a"].Cluster, e.Members["b"].Cluster} {
		contexts = append(contexts, survey.KubeContext{Name: c.Name, Config: c.Config()})
	}
	return survey.Find(ctx, survey.FindOptions{Contexts: contexts, Timeout: world.Within})
}

// traced waits until a trace of a service that a member imports has a step of gateways with this result.
func (e *env) traced(t *testing.T, k world.Key, from clusterset.ClusterID, state trace.Health, text string) {
	t.Helper()
	world.Eventually(t, func(ctx context.Context) error {
		found, err := e.survey(ctx)
		if err != nil {
			return err
		}
		result, err := trace.Run(ctx, trace.Options{Clusterset: found, Key: k, From: from, Settle: time.Second})
		for _, step := range result.Steps {
			if step.Hop == trace.HopGateway && step.Cluster == from && step.State == state && strings.Contains(step.Found, text) {
				return err
			}
		}
		return errors.Join(err, fmt.Errorf("the trace is %+v", result.Steps))
	})
}

// answers waits until a source answers to the clients of an importer, and returns the address that they connect to.
func (e *env) answers(t *testing.T, importer, source string, k world.Key) (address string) {
	t.Helper()
	world.Eventually(t, func(ctx context.Context) (err error) {
		if address, err = e.listening(ctx, importer, k); err != nil {
			return err
		}
		got, err := ask(address)
		if err == nil && got != source+": hello" {
			err = fmt.Errorf("the answer is %q", got)
		}
		return err
	})
	return address
}

// continues fails the test unless b still answers over an open connection.
func continues(t *testing.T, conn net.Conn) {
	t.Helper()
	if got, err := say(conn); got != "b: hello" || err != nil {
		t.Errorf("the open connection answers %q, %v", got, err)
	}
}

// reports waits until the gateway of a reports that it reaches a cluster, or not.
func (e *env) reports(t *testing.T, want gatewayv1alpha1.ClusterReachability) {
	t.Helper()
	k := world.Key{Namespace: manifests.AgentNamespace, Name: "gateway-a"}
	world.Await(t, e.Members["a"], k, &gatewayv1alpha1.GatewayStatus{}, func(status *gatewayv1alpha1.GatewayStatus) error {
		if got := status.Report.Clusters; len(got) != 1 || got[0].Cluster != want.Cluster || got[0].Reachable != want.Reachable {
			return fmt.Errorf("it reports %+v", status.Report)
		}
		return nil
	})
}

// Two clusters in different networks share a service through their gateways: the agents give them identity, addresses and ports.
//
// spec: G1, G2, G3, G4, G5, G8, G12, W1, W5
//
//nolint:tparallel // each test begins where the one before it ends
func TestGateways(t *testing.T) {
	t.Parallel()
	host := lab.HostAddress()
	if host == "" {
		t.Fatal("this machine has no IPv4 address besides loopback: add one to an interface, because EndpointSlices may not contain loopback addresses")
	}
	e := &env{World: world.New(t, membership.Hub(), lab.Member("a").Audited(), lab.Member("b").Audited()), host: host, metrics: map[string]prometheus.Gatherer{}}
	a, b := e.Members["a"], e.Members["b"]
	e.member(t, "a", "")
	e.member(t, "b", "cloud")
	k := world.Key{Namespace: world.Namespace(t, a, b), Name: "web"}
	e.export(t, "b", k)
	stopA, stop := e.gateway(t, "a"), e.gateway(t, "b")
	service := world.Read(t, a, world.Key{Namespace: manifests.AgentNamespace, Name: clusterset.GatewayService}, &corev1.Service{})
	lab.Must(t, a.Create(t.Context(), world.Slice(service, "v4", e.host)))
	address := e.answers(t, "a", "b", k)
	conn, err := connect(address)
	lab.Must(t, err)
	defer func() { conn.Close() }()
	continues(t, conn)
	private := world.Key{Namespace: k.Namespace, Name: "private"}
	t.Run("a client is denied", func(t *testing.T) { testDenied(t, e, private) })
	t.Run("what is not exported is refused", func(t *testing.T) {
		export := world.Export(k)
		lab.Must(t, b.Delete(t.Context(), export))
		continues(t, conn) // for some seconds
		denied(t, address)
		isClosed(t, conn)
		a.Gone(t, k) // or its old listening port answers for a while
		lab.Must(t, b.Create(t.Context(), world.Export(k)))
		address = e.answers(t, "a", "b", k)
		conn.Close()
		var err error
		conn, err = connect(address)
		lab.Must(t, err)
	})
	t.Run("a wrong object is left out", func(t *testing.T) {
		wrong := &gatewayv1alpha1.RemoteGateway{
			ObjectMeta: metav1.ObjectMeta{Namespace: manifests.AgentNamespace, Name: "north"},
			Spec:       gatewayv1alpha1.RemoteGatewaySpec{Cluster: "north", Bundle: "garbage", Versions: []int32{1}},
		}
		lab.Must(t, b.Create(t.Context(), wrong))
		world.Eventually(t, func(context.Context) error {
			if !strings.Contains(e.log.Tail(math.MaxInt), "a part of the configuration is left out") {
				return errors.New("the gateway does not log it")
			}
			return nil
		})
		other := world.Key{Namespace: k.Namespace, Name: "other"}
		e.export(t, "b", other)
		e.answers(t, "a", "b", other)
		e.isReady(t)
	})
	t.Run("what is no pod is left out", func(t *testing.T) { testLeftOut(t, e, k.Namespace) })
	t.Run("the hub is down", func(t *testing.T) {
		lab.Must(t, e.Hub.APIServer.Stop(t.Context()))
		e.answers(t, "a", "b", k)
		lab.Must(t, e.Hub.APIServer.Start(t.Context()))
		continues(t, conn)
	})
	t.Run("idle streams stay open", func(t *testing.T) { holdStreams(t, address) })
	t.Run("a gateway reports what it reaches", func(t *testing.T) {
		e.reports(t, gatewayv1alpha1.ClusterReachability{Cluster: "b", Reachable: true})
		e.scrape(t, "a", `tombolo_gateway_cluster_reachable{cluster="b"} 1`, "tombolo_gateway_certificate_expiry_timestamp_seconds ",
			`tombolo_gateway_streams_refused_total{cluster="b",direction="import",reason="Denied"}`,
			`tombolo_gateway_streams{cluster="b",direction="import"}`, `tombolo_gateway_bytes_total{cluster="b",direction="import",flow="sent"}`)
		e.traced(t, k, "a", trace.OK, "through gateways: 1 of 1 reach those of b at "+e.host)
	})
	t.Run("a suspended member", func(t *testing.T) {
		e.ChangeMember(t, "b", func(s *hubv1alpha1.MemberSpec) { s.Suspended = true })
		isClosed(t, conn)
		e.ChangeMember(t, "b", func(s *hubv1alpha1.MemberSpec) { s.Suspended = false })
		address = e.answers(t, "a", "b", k)
	})
	t.Run("headless", func(t *testing.T) { testHeadless(t, e, k.Namespace) })
	t.Run("headless pods that roll", func(t *testing.T) { testRolling(t, e, k.Namespace) })
	t.Run("PROXY protocol", func(t *testing.T) { testProxied(t, e, k.Namespace) })
	t.Run("access", func(t *testing.T) { testAccess(t, e, k, e.answers(t, "a", "b", k)) })
	t.Run("a client is denied again", func(t *testing.T) { testDeniedAgain(t, e, private) })
	t.Run("a gateway that stops ends no stream", func(t *testing.T) {
		conn, err := connect(e.answers(t, "a", "b", k))
		lab.Must(t, err)
		shared := world.Key{Namespace: k.Namespace, Name: "shared"}
		e.export(t, "a", shared)
		e.export(t, "b", shared)
		e.answers(t, "a", "b", shared)
		continues(t, conn)
		continues(t, conn)
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			stop()
		}()
		continues(t, conn)
		conn.Close()
		<-stopped
		e.reports(t, gatewayv1alpha1.ClusterReachability{Cluster: "b"})
		e.traced(t, k, "a", trace.Broken, "none of 1 gateways reaches those of b")
		world.Eventually(t, func(ctx context.Context) error { // another source serves
			if address, err := e.listening(ctx, "a", shared); err == nil {
				return fmt.Errorf("%s is used, which does not reach b", address)
			}
			return nil
		})
		stop = e.gateway(t, "b")
		e.answers(t, "a", "b", k)
		e.answers(t, "a", "b", shared)
	})
	t.Run("rights", func(t *testing.T) { testRights(t, e, stopA, stop) })
}
