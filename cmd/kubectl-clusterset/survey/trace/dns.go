// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/miekg/dns"
	discoveryv1 "k8s.io/api/discovery/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/memberdns"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// answer is the response of one DNS server for the name of a service.
type answer struct {
	// by names the DNS server; empty if there is only one.
	by        string
	code      string
	addresses []string // sorted
	err       error
}

// ClusterDNS returns the DNS servers of a member that its pods query.
func ClusterDNS(ctx context.Context, m *survey.Member) ([]memberdns.Resolver, error) {
	return memberdns.Resolvers(ctx, m.Client, m.KubeContext.Config)
}

// queryDNS queries each DNS server of a member for the service's addresses of both families, because a pod may use any of them.
func (t *tracer) queryDNS(ctx context.Context, v *memberTrace) []answer {
	resolvers, err := t.Resolve(ctx, v.view.Member)
	if err != nil {
		return []answer{{err: err}}
	}
	answers := make([]answer, len(resolvers))
	var group sync.WaitGroup
	for i, resolver := range resolvers {
		group.Go(func() {
			answers[i] = t.queryResolver(ctx, resolver)
			if len(resolvers) > 1 {
				answers[i].by = resolver.String()
			}
		})
	}
	group.Wait()
	return answers
}

func (t *tracer) queryResolver(ctx context.Context, resolver memberdns.Resolver) answer {
	ctx, cancel := context.WithTimeout(ctx, memberdns.Timeout)
	defer cancel()
	result := answer{}
	for _, kind := range []uint16{dns.TypeA, dns.TypeAAAA} {
		question := new(dns.Msg).SetQuestion(dnsName(t.Key), kind)
		reply, err := resolver.Exchange(ctx, question)
		if err != nil {
			return answer{err: err}
		}
		result.code = dns.RcodeToString[reply.Rcode]
		if reply.Rcode != dns.RcodeSuccess {
			return result
		}
		result.addresses = append(result.addresses, addressesIn(reply)...)
	}
	slices.Sort(result.addresses)
	return result
}

func dnsName(key clusterset.ServiceKey) string {
	return fmt.Sprintf("%s.%s.svc.%s.", key.Name, key.Namespace, memberdns.Zone)
}

func addressesIn(reply *dns.Msg) []string {
	var result []string
	for _, record := range reply.Answer {
		switch r := record.(type) {
		case *dns.A:
			result = append(result, r.A.String())
		case *dns.AAAA:
			result = append(result, r.AAAA.String())
		}
	}
	return result
}

// dnsSteps compares the answers of the member's DNS servers with the import, and returns the first that differs, with its cause if the
// configuration of the DNS shows it.
func (v *memberTrace) dnsSteps() []Step {
	want := v.expectedAddresses()
	for _, a := range v.answers {
		if wrong := v.dnsFault(a, want); wrong != nil {
			return v.explained(wrong, a.err)
		}
	}
	switch {
	case v.dns.State == memberdns.Stale && len(v.answers) == 0:
		return []Step{v.step(HopDNS, Broken, v.dns.Message, v.dns.Next)}
	case len(v.answers) == 0:
		return nil
	case v.dns.State == memberdns.Stale, v.dns.State == memberdns.NotKnown && v.dns.OfCache: // the answers are not those of the cache, or will not last
		return []Step{v.step(HopDNS, NotKnown, v.dns.Message, v.dns.Next)}
	}
	return []Step{v.step(HopDNS, OK, strings.TrimSuffix(dnsName(v.Sources.Key), ".")+" is "+listed(want), "")}
}

// explained returns the steps of a fault. If the configuration of the DNS is wrong, it is the cause, unless no pod of the DNS runs.
func (v *memberTrace) explained(steps []Step, err error) []Step {
	isCause := v.dns.State == memberdns.Stale || v.dns.State == memberdns.NotSet && err == nil
	if !isCause || errors.Is(err, memberdns.ErrNoPod) {
		return steps
	}
	return []Step{v.step(HopDNS, Broken, v.dns.Message+"; "+steps[0].Found, v.dns.Next)}
}

// dnsFault returns a step if an answer differs from the import, otherwise nil.
func (v *memberTrace) dnsFault(a answer, want []string) []Step {
	name := strings.TrimSuffix(dnsName(v.Sources.Key), ".")
	if a.by != "" {
		name = a.by + ": " + name
	}
	context := v.view.Member.KubeContext.Name
	switch {
	case errors.Is(a.err, memberdns.ErrNotFound):
		return []Step{v.step(HopDNS, Note, fmt.Sprintf("%s was not queried: %v. Pass --dns-server %s=HOST:PORT to query it", name, a.err, v.id()), "")}
	case a.err != nil:
		return []Step{v.step(HopDNS, Broken, fmt.Sprintf("no answer for %s: %v", name, a.err),
			fmt.Sprintf("check the pods of the cluster's DNS, usually: kubectl --context %s --namespace kube-system get pods --selector k8s-app=kube-dns; if its DNS is another one, pass --dns-server %s=HOST:PORT", context, v.id()))}
	case a.code == "NXDOMAIN" && len(want) > 0:
		return []Step{v.step(HopDNS, Broken, fmt.Sprintf("%s does not exist (NXDOMAIN): no plugin serves %s there, or it is behind", name, memberdns.Zone),
			fmt.Sprintf("kubectl clusterset dns --context %s; then the logs of deployment/tombolo-dns", context))}
	case a.code != "NOERROR" && a.code != "NXDOMAIN":
		return []Step{v.step(HopDNS, Broken, fmt.Sprintf("%s is answered by %s", name, a.code),
			fmt.Sprintf("the logs of deployment/tombolo-dns, or of CoreDNS, in %s", context))}
	case !slices.Equal(a.addresses, want):
		return []Step{v.step(HopDNS, Broken, fmt.Sprintf("%s is %s, but should be %s", name, listed(a.addresses), listed(want)),
			fmt.Sprintf("the DNS is behind: the logs of deployment/tombolo-dns in %s", context))}
	}
	return nil
}

// expectedAddresses returns the addresses of the service's name, sorted: those of the import, or of the ready endpoints if it is
// headless.
func (v *memberTrace) expectedAddresses() []string {
	var result []string
	if v.serviceImport.Spec.Type != mcsv1beta1.Headless {
		result = slices.Clone(v.serviceImport.Spec.IPs)
	} else {
		for _, slice := range v.slices {
			result = append(result, readyAddresses(slice)...)
		}
	}
	for i, address := range result {
		if ip, err := netip.ParseAddr(address); err == nil {
			result[i] = ip.String()
		}
	}
	slices.Sort(result)
	return slices.Compact(result)
}

// readyAddresses returns the addresses of the slice's ready endpoints. Host names are not answered.
func readyAddresses(slice discoveryv1.EndpointSlice) []string {
	if slice.AddressType == discoveryv1.AddressTypeFQDN {
		return nil
	}
	var result []string
	for _, endpoint := range slice.Endpoints {
		if endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready {
			result = append(result, endpoint.Addresses...)
		}
	}
	return result
}

func listed(addresses []string) string {
	switch {
	case len(addresses) == 0:
		return "nothing"
	case len(addresses) > 8:
		return fmt.Sprintf("%s and %d more", strings.Join(addresses[:8], ", "), len(addresses)-8)
	}
	return strings.Join(addresses, ", ")
}
