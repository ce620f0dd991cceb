// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// resolve asks the cluster's DNS, from the client pod, for exactly this name.
func (p *place) resolve(kind, name string) records {
	p.Helper()
	return p.resolveTimes(1, kind, name)[0]
}

// replicas is how many questions ask all pods of DNS, each of which remembers its own answers, but for one time in 500,000
// where there are two.
const replicas = 20

func (p *place) resolveTimes(count int, kind, name string) []records {
	p.Helper()
	lines := p.probe("resolve", "-count", strconv.Itoa(count), "-type", kind, strings.TrimSuffix(name, ".")+".")
	all := make([]records, len(lines))
	for i, line := range lines {
		if err := json.Unmarshal([]byte(line), &all[i]); err != nil {
			p.Fatalf("probe printed %q: %v", line, err)
		}
	}
	return all
}

// awaitName waits until a service is imported and has an address in the clusterset. Until it is imported no question is sent: each
// pod of DNS would answer for a while that there is no such name.
func (p *place) awaitName(service string) {
	p.Helper()
	p.eventually("the import of "+service+" in cluster "+p.cluster.Name, func(ctx context.Context) error {
		return p.client.Get(ctx, p.key(service), &mcsv1beta1.ServiceImport{})
	})
	p.awaitAddress(p.name(service))
}

// awaitAddress waits until each pod of the cluster's DNS knows an IPv4 address of a name.
func (p *place) awaitAddress(name string) {
	p.Helper()
	p.eventually("an address of "+name+" in cluster "+p.cluster.Name, func(context.Context) error {
		for _, r := range p.resolveTimes(replicas, "A", name) {
			if r.Rcode != "NOERROR" || len(r.Answers) == 0 {
				return fmt.Errorf("DNS says %+v", r)
			}
		}
		return nil
	})
}

// families are the types of address records, each with a network that uses it.
var families = map[string]string{"A": "tcp4", "AAAA": "tcp6"}

// awaitDNS waits until the cluster's DNS says this of a name: "NOERROR 10.0.0.1 10.0.0.2", "NOERROR" for a name without such
// records, or "NXDOMAIN". DNS remembers what it said for some seconds.
func (p *place) awaitDNS(kind, name, want string) {
	p.Helper()
	p.await(kind, name, want, func(r records) string { return formatReply(r.Rcode, r.Answers) })
}

// await waits until what each pod of the cluster's DNS says of a name reads as wanted.
func (p *place) await(kind, name, want string, read func(records) string) {
	p.Helper()
	p.eventually(kind+" of "+name+" in cluster "+p.cluster.Name, func(context.Context) error {
		for _, r := range p.resolveTimes(replicas, kind, name) {
			if got := read(r); got != want {
				return fmt.Errorf("DNS says %q (%+v), want %q", got, r, want)
			}
		}
		return nil
	})
}

// formatReply returns a DNS reply as one line, with sorted records.
func formatReply(rcode string, records []string) string {
	return strings.Join(append([]string{rcode}, slices.Sorted(slices.Values(records))...), " ")
}

// addresses returns what DNS says of a name that is these pods: kind is A or AAAA.
func addresses(kind string, pods ...corev1.Pod) string {
	var all []string
	for _, pod := range pods {
		all = append(all, podIP(kind, pod))
	}
	return formatReply("NOERROR", all)
}

// podIP returns a pod's address for an A or AAAA record.
func podIP(kind string, pod corev1.Pod) string {
	for _, ip := range pod.Status.PodIPs {
		if parsed, err := netip.ParseAddr(ip.IP); err == nil && parsed.Is4() == (kind == "A") {
			return ip.IP
		}
	}
	return "none"
}

// staleForwardIsRepaired: the Service of Tombolo's DNS is deleted and created again, so that it has another address, and names fail. status
// and trace name the command. After it, names resolve.
func staleForwardIsRepaired(s *scene) {
	a, b := s.in("a"), s.in("b")
	b.offer("web", 1)
	a.awaitName("web")
	before, after := a.moveDNS()

	const command = "kubectl clusterset dns --context a"
	moved := fmt.Sprintf("forwards clusterset.local to %s, but Service tombolo-system/tombolo-dns has the address %s", before, after)
	a.eventually("that trace names the cause", func(ctx context.Context) error {
		out, err := a.Kubectl(ctx, "", "clusterset", "trace", a.namespace+"/web", "--all-contexts", "--from", "a")
		if err == nil || !strings.Contains(out, moved) || !strings.Contains(out, command) {
			return fmt.Errorf("%w: %s", errors.Join(errors.New("trace"), err), out)
		}
		return nil
	})
	out, err := a.Kubectl(s.Context(), "", "clusterset", "status", "--all-contexts")
	if err != nil || !strings.Contains(out, "ERROR DNSStale a:") || !strings.Contains(out, moved) || !strings.Contains(out, "Run: "+command) {
		s.Errorf("status: %v\n%s", err, out)
	}

	lab.Must(s, a.serveNames())
	a.awaitAddress(a.name("web"))
	if out, err := a.Kubectl(s.Context(), "", "clusterset", "status", "--all-contexts"); err != nil || strings.Contains(out, "DNSStale") {
		s.Errorf("status after the repair: %v\n%s", err, out)
	}
}

// moveDNS deletes the Service of Tombolo's DNS and creates it again. It returns the addresses before and after.
func (p *place) moveDNS() (before, after string) {
	p.Helper()
	p.Cleanup(func() { // for the stories that follow, also after a failure
		if err := p.serveNames(); err != nil {
			p.Errorf("%v", err)
		}
	})
	found := &corev1.Service{}
	lab.Must(p, p.client.Get(p.Context(), client.ObjectKey{Namespace: system, Name: "tombolo-dns"}, found))
	before, after = strings.Join(found.Spec.ClusterIPs, ", "), ""
	for after == "" || after == before {
		lab.Must(p, p.client.Delete(p.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: found.Name}}))
		again := found.DeepCopy()
		again.ObjectMeta = metav1.ObjectMeta{Namespace: system, Name: found.Name, Labels: found.Labels, Annotations: found.Annotations}
		again.Spec.ClusterIP, again.Spec.ClusterIPs = "", nil
		lab.Must(p, p.client.Create(p.Context(), again))
		after = strings.Join(again.Spec.ClusterIPs, ", ")
	}
	return before, after
}

// serveNames configures the cluster's DNS and waits until all of its pods serve the clusterset.
func (p *place) serveNames() error {
	ctx := context.WithoutCancel(p.Context())
	if _, err := p.Kubectl(ctx, "", "clusterset", "dns", "--context", p.cluster.Name); err != nil {
		return err
	}
	return p.AwaitDNS(ctx, p.cluster)
}
