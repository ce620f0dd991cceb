// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/complete"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// headlessAcrossNetworks: the pods of a StatefulSet have names of their own in clusters of other networks, each of which leads to this very
// pod. They and the name of the service are virtual IPs there, and SRV records have the ports of the pods. A pod that is not ready loses its
// name, and has the same address again when it returns. No gateway is an endpoint of the import.
func headlessAcrossNetworks(s *scene) {
	a, b := s.in("a"), s.in("b")
	for _, p := range s.members() {
		p.deployStateful("db", 2)
		p.create(headless("db"), export("db"))
	}
	first := map[string]string{}
	for from, to := range map[*place]*place{a: b, b: a} {
		for _, pod := range to.pods("db") {
			name := pod.Name + "." + to.cluster.Name + "." + s.name("db")
			for kind, network := range families {
				first[kind+from.cluster.Name+name] = from.virtualIP(kind, name)
				from.isAnsweredBy(pod, to.cluster.Name, network, name)
			}
		}
	}
	for _, from := range []*place{a, b} {
		from.awaitTargets("_http._tcp.", "db", "db-0.a", "db-0.b", "db-1.a", "db-1.b")
	}
	b.shell("db-0", "touch /tmp/unready")
	a.awaitTargets("_http._tcp.", "db", "db-0.a", "db-1.a", "db-1.b")
	a.awaitDNS("A", "db-0.b."+s.name("db"), "NXDOMAIN")
	b.shell("db-0", "rm /tmp/unready")
	a.awaitTargets("_http._tcp.", "db", "db-0.a", "db-0.b", "db-1.a", "db-1.b")
	for kind := range families {
		if before, after := first[kind+"adb-0.b."+s.name("db")], a.virtualIP(kind, "db-0.b."+s.name("db")); before != after {
			s.Errorf("%s of db-0 of cluster b is %s, before %s", kind, after, before)
		}
	}
	all, err := a.mirrored(s.Context(), "db")
	lab.Must(s, err)
	for _, gateway := range a.podsOf("tombolo-system", "tombolo-gateway") {
		for _, slice := range all {
			for _, endpoint := range slice.Endpoints {
				if endpoint.Addresses[0] == gateway.Status.PodIP {
					s.Errorf("EndpointSlice %s has the gateway %s", slice.Name, gateway.Status.PodIP)
				}
			}
		}
	}
}

// isAnsweredBy waits until a name answers. The story fails unless this pod does.
func (p *place) isAnsweredBy(pod corev1.Pod, cluster, network, name string) {
	p.Helper()
	p.eventually(fmt.Sprintf("an answer of %s in cluster %s over %s", name, p.cluster.Name, network), func(context.Context) error {
		answer := p.ask(network, name, 8080, 1)[0]
		if answer.Error != "" {
			return fmt.Errorf("a request failed: %+v", answer)
		}
		if answer.Cluster != cluster || answer.Pod != pod.Name {
			p.Errorf("from cluster %s, %s over %s: %+v, want an answer of this pod", p.cluster.Name, name, network, answer)
		}
		return nil
	})
}

// virtualIP waits until a name has exactly one address, the same in all pods of DNS, and returns it.
func (p *place) virtualIP(kind, name string) (address string) {
	p.Helper()
	p.eventually(fmt.Sprintf("%s of %s in cluster %s", kind, name, p.cluster.Name), func(context.Context) error {
		all := p.resolveTimes(replicas, kind, name)
		for _, r := range all {
			if len(r.Answers) != 1 || r.Answers[0] != all[0].Answers[0] {
				return fmt.Errorf("DNS answers %+v", r)
			}
		}
		address = all[0].Answers[0]
		return nil
	})
	return address
}

// etcdAcrossNetworks: three members of one etcd cluster, each in another cluster and one of these in another network, find each other by the
// names of their pods. A write survives the loss of a pod, whose successor gets the name, the virtual IP and the data again.
func etcdAcrossNetworks(s *scene) {
	lab.Must(s, s.LoadImages(s.Context(), "etcd"))
	a, b := s.in("a"), s.in("b")
	places := append(s.members(), s.third())
	for _, p := range places {
		p.deployEtcd("new")
		etcd := headless("etcd")
		etcd.Spec.Ports = []corev1.ServicePort{{Name: "client", Port: 2379}, {Name: "peer", Port: 2380}}
		p.create(etcd, export("etcd"))
	}
	put := func(from *place, to, key, value string) {
		s.Helper()
		from.within(podWaitLimit, "write "+key, func(ctx context.Context) error {
			_, err := from.etcd(ctx, to, "kv/put", map[string]any{"key": encoded(key), "value": encoded(value)})
			return err
		})
	}
	has := func(from *place, to, key, value string) {
		s.Helper()
		from.within(podWaitLimit, "read "+key, func(ctx context.Context) error {
			got, err := from.etcd(ctx, to, "kv/range", map[string]any{"key": encoded(key), "serializable": true}) // its own copy
			if err == nil && !strings.Contains(got, encoded(value)) {
				err = fmt.Errorf("member %s has %s", to, got)
			}
			return err
		})
	}
	put(a, "b", "first", "1") // a client reaches the member of the other network, too
	for _, to := range []string{"a", "b", "c"} {
		has(a, to, "first", "1")
		has(b, to, "first", "1")
	}
	address := a.virtualIP("A", "etcd-0.b."+s.name("etcd"))
	scale := func(count int32, state string) {
		change(b, "etcd", &appsv1.StatefulSet{}, func(set *appsv1.StatefulSet) {
			set.Spec.Replicas = &count
			set.Spec.Template.Spec.Containers[0].Env[0].Value = state
		})
	}
	scale(0, "existing")
	a.awaitDNS("A", "etcd-0.b."+s.name("etcd"), "NXDOMAIN")
	put(a, "a", "second", "2")
	has(b, "c", "second", "2")
	a.replaceEtcd("b")
	scale(1, "existing")
	has(a, "b", "second", "2")
	if got := a.virtualIP("A", "etcd-0.b."+s.name("etcd")); got != address {
		s.Errorf("the pod that returned has the address %s, before %s", got, address)
	}
	put(b, "b", "third", "3")
	has(b, "a", "third", "3")
}

// deployEtcd creates a StatefulSet with the member of this cluster. state says whether the etcd cluster is new or existing.
func (p *place) deployEtcd(state string) {
	p.Helper()
	peer := func(id string) string { return "http://etcd-0." + id + "." + p.name("etcd") + ":2380" }
	labels, one := map[string]string{"app": "etcd"}, int32(1)
	container := corev1.Container{
		Name: "etcd", Image: complete.EtcdImage, ImagePullPolicy: corev1.PullNever,
		Env: []corev1.EnvVar{{Name: "ETCD_INITIAL_CLUSTER_STATE", Value: state}},
		Args: []string{
			"--name=" + p.cluster.Name, "--data-dir=/data", "--listen-client-urls=http://0.0.0.0:2379", "--listen-peer-urls=http://0.0.0.0:2380",
			"--advertise-client-urls=" + strings.Replace(peer(p.cluster.Name), "2380", "2379", 1), "--initial-advertise-peer-urls=" + peer(p.cluster.Name),
			"--initial-cluster=a=" + peer("a") + ",b=" + peer("b") + ",c=" + peer("c"),
		},
	}
	p.create(&appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "etcd"},
		Spec: appsv1.StatefulSetSpec{
			ServiceName: "etcd", Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{container}}},
		},
	})
}

func encoded(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// etcd sends a request to the etcd member of a cluster, from the client pod, and returns the body of the answer. The client's sending side
// stays open until then, because etcd cancels a request whose client has closed it.
func (p *place) etcd(ctx context.Context, member, method string, request any) (string, error) {
	body, err := json.Marshal(request)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	in, write := io.Pipe()
	defer in.Close()
	go func() {
		_, _ = fmt.Fprintf(write, "POST /v3/%s HTTP/1.0\r\nHost: etcd\r\nContent-Length: %d\r\n\r\n%s", method, len(body), body)
	}()
	var out bytes.Buffer
	if err := p.exec(ctx, clientPod, in, &out, "nc", "etcd-0."+member+"."+p.name("etcd"), "2379"); err != nil {
		return "", err
	}
	head, answer, _ := strings.Cut(out.String(), "\r\n\r\n")
	if !strings.HasPrefix(head, "HTTP/1.0 200") {
		return "", fmt.Errorf("member %s: %s: %s", member, method, out.String())
	}
	return answer, nil
}

// replaceEtcd removes the etcd member of a cluster, whose data is lost, and adds it again.
func (p *place) replaceEtcd(member string) {
	p.Helper()
	answer, err := p.etcd(p.Context(), "a", "cluster/member/list", map[string]any{})
	lab.Must(p, err)
	var list struct {
		Members []struct {
			ID, Name string
			PeerURLs []string
		}
	}
	lab.Must(p, json.Unmarshal([]byte(answer), &list))
	for _, m := range list.Members {
		if m.Name != member {
			continue
		}
		_, err := p.etcd(p.Context(), "a", "cluster/member/remove", map[string]any{"ID": m.ID})
		lab.Must(p, err)
		p.eventually("etcd adds member "+member, func(ctx context.Context) error { // not before the others are connected for five seconds
			_, err := p.etcd(ctx, "a", "cluster/member/add", map[string]any{"peerURLs": m.PeerURLs})
			return err
		})
	}
}
