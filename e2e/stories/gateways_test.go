// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// separateNetworks are the networks of the clusters. The pods and Services of a and b have the same addresses; the pods of a and c reach
// each other.
var separateNetworks = map[string]string{"a": hubv1alpha1.DefaultNetwork, "b": "right", "c": hubv1alpha1.DefaultNetwork}

// parallelAcross are the stories of clusters in separate networks that keep to their own namespace, the longest first.
var parallelAcross = []story{
	{"an export is granted to one of two clusters", exportIsGrantedToOneCluster},
	{"an etcd cluster has its members in two networks", etcdAcrossNetworks},
	{"pods of a headless service have names and addresses of their own across networks", headlessAcrossNetworks},
	{"a grant lets one service account use a service", grantRestricts},
	{"three clusters in two networks serve together", threeClustersInTwoNetworks},
	{"session affinity holds across networks", affinityAcrossNetworks},
	{"a service is reached across networks", serviceAcrossNetworks},
	{"a cluster with IPv4 only and one with both families use each other's services", oneClusterHasIPv4Only},
	{"an alias reaches another network", aliasOfAnotherNetwork},
	{"the example of a StatefulSet has names in both networks", exampleOfAStatefulSet},
}

// serialAcross are those that disturb the clusters, in their order. Large transfers leave no time for others beside them. The last ones, in
// which no request may fail, run when those of the documents have ended.
var serialAcross = []story{
	{"the server speaks first, large transfers and half-close work across networks", streamsAcrossNetworks},
	{"a backend is killed in the middle of a stream", backendIsKilled},
	{"a gateway that is killed is left out", gatewayIsKilled},
	{"a gateway that does not reach the other cluster is left out", gatewayWithoutNetwork},
	{"the network between two clusters is slow, and then cut", slowPathIsCut},
	{"a suspended member is cut off", suspendedMemberIsCutOff},
	{"gateways serve without hub and agents", gatewaysWithoutHubAndAgents},
	{"certificates and authorities are renewed under load", certificatesAreRenewed},
	{"gateways restart under load", gatewaysRestart},
	{"a member moves to another network and back", memberMoves},
}

// tcpNetworks are what gateways support.
var tcpNetworks = []string{"tcp4", "tcp6"}

// serviceAcrossNetworks: pods reach a service of a cluster whose pods have the same addresses, by its name, in both directions and both
// IP families. A UDP port is left out and the import says so. trace names the gateways.
func serviceAcrossNetworks(s *scene) {
	for _, from := range []string{"a", "b"} {
		s.in(from).offer("web-of-"+from, 2)
	}
	for from, to := range map[string]string{"a": "b", "b": "a"} {
		p, name := s.in(to), "web-of-"+from
		imported := p.awaitImport(name, from)
		for _, network := range tcpNetworks {
			p.awaitAnyAnswer(network, s.name(name), 80)
			p.expectAnswers(network, s.name(name), 80, from)
		}
		unusable := meta.FindStatusCondition(imported.Status.Conditions, conditions.TypeSourceUnusable)
		if unusable == nil || !strings.Contains(unusable.Message, "80/UDP") {
			s.Errorf("the import in %s does not say that UDP is left out: %+v", to, imported.Status.Conditions)
		}
		out, err := s.Kubectl(s.Context(), "", "clusterset", "trace", s.namespace+"/"+name, "--all-contexts", "--from", to)
		if err != nil || !strings.Contains(out, "through gateways: 2 of 2 reach those of "+from) {
			s.Errorf("trace: %v\n%s", err, out)
		}
	}
}

// socatImage is an image of the conformance suite of mcs-api, which the lab has a replacement of.
const socatImage = "docker.io/alpine/socat:1.7.4.4"

// megabytes is the size of a large transfer, which no buffer between the two ends holds.
const megabytes = 64

// streamsAcrossNetworks: a server that sends without being asked is received, a client that closes its sending side still gets the answer,
// and large transfers in both directions arrive as they were sent.
func streamsAcrossNetworks(s *scene) {
	a, b := s.in("a"), s.in("b")
	data := fmt.Sprintf("yes %s | head -c %d", strings.Repeat("0123456789", 10), megabytes<<20) // with short lines, yes uses a whole processor
	server := probeContainer("sh", "-c", fmt.Sprintf(`
		socat -t 30 TCP6-LISTEN:8080,fork,reuseaddr SYSTEM:md5sum &
		socat TCP6-LISTEN:8081,fork,reuseaddr SYSTEM:%q`, data))
	server.Image = socatImage
	a.deployPods("streams", 1, corev1.PodSpec{Containers: []corev1.Container{server}})
	streams := service("streams")
	streams.Spec.Ports = []corev1.ServicePort{tcp("up", 80, 8080), tcp("down", 81, 8081)}
	a.create(streams, export("streams"))
	b.awaitImport("streams", "a")
	b.awaitAddress(s.name("streams"))
	run := func(command string) (string, error) {
		var out bytes.Buffer
		err := b.exec(s.Context(), clientPod, nil, &out, "sh", "-c", command)
		return strings.TrimSpace(out.String()), err
	}
	want, err := run(data + " | md5sum")
	lab.Must(s, err)
	for port, command := range map[int]string{
		80: data + " | nc " + s.name("streams") + " 80",           // the answer comes after the client's last byte
		81: "nc " + s.name("streams") + " 81 </dev/null | md5sum", // the server speaks first
	} {
		b.eventually(fmt.Sprintf("%d MB on port %d", megabytes, port), func(context.Context) error {
			got, err := run(command)
			if err == nil && got != want {
				s.Fatalf("port %d: the hash is %q, want %q", port, got, want)
			}
			return err // the server does not listen yet
		})
	}
}

// affinityAcrossNetworks: with session affinity, a client keeps its pod in the other network.
func affinityAcrossNetworks(s *scene) {
	a, b := s.in("a"), s.in("b")
	a.deploy("web", 3)
	web := service("web")
	web.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
	a.create(web, export("web"))
	b.awaitImport("web", "a")
	b.awaitAnyAnswer("tcp", s.name("web"), 80)
	pods := map[string]bool{}
	for _, answer := range b.expectAnswers("tcp", s.name("web"), 80, "a") {
		pods[answer.Pod] = true
	}
	if len(pods) != 1 {
		s.Errorf("pods %v have answered one client, want one", pods)
	}
}

// loadAcross offers a service in a and has b ask it all the time.
func (s *scene) loadAcross() *load {
	s.Helper()
	s.in("a").offer("web", 2)
	b := s.in("b")
	b.awaitImport("web", "a")
	b.awaitAnyAnswer("tcp", s.name("web"), 80)
	return b.load("tcp", s.name("web"), 80, 15)
}

// gatewaysRestart: while the gateways of both clusters are replaced one by one, no request fails.
func gatewaysRestart(s *scene) {
	requests := s.loadAcross()
	for _, p := range s.members() {
		p.rollOut(manifests.AgentNamespace, manifests.GatewayDeployment)
	}
	requests.endClean()
}

// gatewaysWithoutHubAndAgents: while the hub is down and no agent runs, streams work, also through gateways that start meanwhile.
func gatewaysWithoutHubAndAgents(s *scene) {
	requests := s.loadAcross()
	s.Hub.APIServer.Kill()
	s.Cleanup(func() { lab.Must(s, s.Hub.APIServer.Start(context.Background())) })
	for _, p := range s.members() {
		p.rollOut(manifests.AgentNamespace, manifests.AgentDeployment)
	}
	s.in("a").rollOut(manifests.AgentNamespace, manifests.GatewayDeployment)
	requests.endClean()
}

// gatewayIsKilled: after the time that the agent and the kubelet need, no request goes to a gateway that was killed. The kubelet ends the
// containers of a deleted pod later than the request returns, hence the process is killed first.
func gatewayIsKilled(s *scene) {
	s.in("a").offer("web", 2)
	b := s.in("b")
	b.awaitImport("web", "a")
	b.awaitAnyAnswer("tcp", s.name("web"), 80)
	for _, p := range s.members() {
		pod := p.podsOf(manifests.AgentNamespace, manifests.GatewayDeployment)[0]
		lab.Must(s, p.cluster.Node.KillContainer(s.Context(), client.ObjectKeyFromObject(&pod), "gateway"))
		lab.Must(s, p.client.Delete(s.Context(), &pod, client.GracePeriodSeconds(0)))
		b.awaitAnswers("tcp", s.name("web"), 80, "a")
	}
}

// backendIsKilled: a client that sends to a pod which is killed sees a reset, and its next connection works.
func backendIsKilled(s *scene) {
	a, b := s.in("a"), s.in("b")
	server := probeContainer("socat", "TCP6-LISTEN:8080,fork,reuseaddr", "SYSTEM:touch /tmp/open; sleep 1000000") // which reads nothing
	server.Image = socatImage
	a.deployPods("web", 2, corev1.PodSpec{Containers: []corev1.Container{server}})
	a.create(service("web"), export("web"))
	b.awaitImport("web", "a")
	b.awaitAddress(s.name("web"))
	upload := func(name string) (server corev1.Pod) {
		sender := probeContainer("socat", "-u", "OPEN:/dev/zero", "TCP:"+s.name("web")+":80,retry=50,interval=0.2") // kube-proxy may read the slices later
		sender.Image = socatImage
		b.create(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{sender}},
		})
		a.within(podWaitLimit, "a stream of "+name, func(ctx context.Context) error {
			for _, server = range a.pods("web") {
				if a.exec(ctx, server.Name, nil, io.Discard, "rm", "/tmp/open") == nil {
					return nil
				}
			}
			return errors.New("there is none")
		})
		return server
	}
	killed := upload("first")
	lab.Must(s, a.cluster.Node.KillContainer(s.Context(), client.ObjectKeyFromObject(&killed), "probe"))
	b.eventually("the end of the stream", func(ctx context.Context) error {
		var pod corev1.Pod
		if err := b.client.Get(ctx, b.key("first"), &pod); err != nil || pod.Status.Phase == corev1.PodFailed {
			return err
		}
		return fmt.Errorf("the pod is %s", pod.Status.Phase)
	})
	out, err := s.Kubectl(s.Context(), "", "--context", b.cluster.Name, "-n", s.namespace, "logs", "first")
	// A reset after a half-close is EPIPE: the server's child can end its direction before it is killed as well.
	if err != nil || !strings.Contains(out, "Connection reset by peer") && !strings.Contains(out, "Broken pipe") {
		s.Errorf("the client says %q, want a reset: %v", out, err)
	}
	upload("next")
}

// gatewayWithoutNetwork: a gateway whose packets no longer leave its cluster is ready, but slices do not list it, so that no request fails.
// When it reaches the other cluster again, it is listed again.
func gatewayWithoutNetwork(s *scene) {
	s.in("a").offer("web", 2)
	b := s.in("b")
	b.awaitImport("web", "a")
	b.awaitAnyAnswer("tcp", s.name("web"), 80)
	pod := b.podsOf(manifests.AgentNamespace, manifests.GatewayDeployment)[0]
	rules := "table inet cut {\nchain forward {\ntype filter hook forward priority 0;\n"
	for _, ip := range pod.Status.PodIPs {
		family := map[bool]string{true: "ip6", false: "ip"}[strings.Contains(ip.IP, ":")]
		rules += fmt.Sprintf("oifname eth0 %s saddr %s drop\n", family, ip.IP)
	}
	_, err := b.cluster.Run(s.Context(), "nft", rules+"}\n}")
	lab.Must(s, err)
	heal := sync.OnceFunc(func() {
		_, err := b.cluster.Run(context.Background(), "nft", "delete table inet cut")
		lab.Must(s, err)
	})
	s.Cleanup(heal)
	listed := func() int {
		slices, err := b.mirrored(s.Context(), "web")
		lab.Must(s, err)
		addresses := map[string]bool{}
		for _, slice := range slices {
			for _, endpoint := range slice.Endpoints {
				if slice.AddressType == "IPv4" && slice.Labels[clusterset.LabelGateway] != "" {
					addresses[endpoint.Addresses[0]] = true
				}
			}
		}
		return len(addresses)
	}
	await := func(count int) {
		b.eventually(fmt.Sprintf("%d gateways in the slices", count), func(context.Context) error {
			if got := listed(); got != count {
				return fmt.Errorf("%d", got)
			}
			return nil
		})
	}
	await(1)
	b.expectAnswers("tcp", s.name("web"), 80, "a")
	heal()
	await(2)
	b.expectAnswers("tcp", s.name("web"), 80, "a")
}

// suspendedMemberIsCutOff: a member that the hub's administrator suspends is reached no more, and is again when it is no longer
// suspended.
func suspendedMemberIsCutOff(s *scene) {
	b := s.in("b")
	requests := s.loadAcross()
	suspend := func(suspended bool) {
		patch := fmt.Sprintf(`{"spec":{"suspended":%v}}`, suspended)
		_, err := s.Kubectl(context.Background(), "", "--context", s.Hub.Name, "-n", clusterset.ClusterID("a").HubNamespace(),
			"patch", "member/"+hubv1alpha1.MemberName, "--type", "merge", "--patch", patch)
		lab.Must(s, err)
	}
	s.Cleanup(func() { suspend(false) })
	requests.endClean()
	suspend(true)
	began := time.Now()
	b.awaitNothingOf("web")
	s.Logf("the import ended %.1f s after the suspension", time.Since(began).Seconds())
	suspend(false)
	b.awaitImport("web", "a")
	b.awaitAnyAnswer("tcp", s.name("web"), 80)
}
