// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ranges finds the address ranges of a cluster, and compares them with those of other clusters.
package ranges

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/connection"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Set are the address ranges of one cluster.
type Set struct{ Pods, Nodes, Services []netip.Prefix }

// Of returns the ranges of a Member. It leaves out invalid CIDRs, which the hub does not admit.
func Of(spec hubv1alpha1.MemberSpec) Set {
	parse := func(cidrs []hubv1alpha1.CIDR) (result []netip.Prefix) {
		for _, c := range cidrs {
			if prefix, err := netip.ParsePrefix(string(c)); err == nil {
				result = append(result, prefix.Masked())
			}
		}
		return result
	}
	return Set{parse(spec.PodCIDRs), parse(spec.NodeCIDRs), parse(spec.ServiceCIDRs)}
}

// Overlap is a pair of ranges that have addresses in common.
type Overlap struct {
	ours, theirs                netip.Prefix
	kind, otherKind, otherOwner string
}

func (o Overlap) String() string {
	return fmt.Sprintf("%s %s overlap with %s %s of %s", o.kind, o.ours, o.otherKind, o.theirs, o.otherOwner)
}

// Overlaps returns the overlaps of a cluster's pod and node ranges with its own Service ranges, and with all ranges of other
// clusters. With overlaps, packets may go to the wrong cluster.
func Overlaps(own Set, others map[clusterset.ClusterID]Set) []Overlap {
	result := own.overlapsWith(own.Services, "service CIDR", "this cluster itself")
	ids := make([]clusterset.ClusterID, 0, len(others))
	for id := range others {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		other, otherOwner := others[id], "member "+string(id)
		result = append(result, own.overlapsWith(other.Pods, "pod CIDR", otherOwner)...)
		result = append(result, own.overlapsWith(other.Nodes, "node CIDR", otherOwner)...)
		result = append(result, own.overlapsWith(other.Services, "service CIDR", otherOwner)...)
	}
	return result
}

func (r Set) overlapsWith(theirs []netip.Prefix, otherKind, otherOwner string) []Overlap {
	var result []Overlap
	for kind, ours := range map[string][]netip.Prefix{"pod CIDR": r.Pods, "node CIDR": r.Nodes} {
		for _, a := range ours {
			for _, b := range theirs {
				if a.Overlaps(b) {
					result = append(result, Overlap{a, b, kind, otherKind, otherOwner})
				}
			}
		}
	}
	slices.SortFunc(result, func(a, b Overlap) int { return strings.Compare(a.String(), b.String()) })
	return result
}

// Compact returns the prefixes sorted, without those that another one contains.
func Compact(prefixes []netip.Prefix) []netip.Prefix {
	sorted := slices.Clone(prefixes)
	slices.SortFunc(sorted, func(a, b netip.Prefix) int {
		if a.Addr() != b.Addr() {
			return a.Addr().Compare(b.Addr())
		}
		return a.Bits() - b.Bits()
	})
	var result []netip.Prefix
	for _, p := range sorted {
		if n := len(result); n == 0 || !result[n-1].Overlaps(p) {
			result = append(result, p)
		}
	}
	return result
}

// NotCovered returns the prefixes that none of the others contains.
func NotCovered(prefixes, others []netip.Prefix) []netip.Prefix {
	return slices.DeleteFunc(slices.Clone(prefixes), func(p netip.Prefix) bool {
		return slices.ContainsFunc(others, func(o netip.Prefix) bool { return o.Bits() <= p.Bits() && o.Contains(p.Addr()) })
	})
}

// Commas returns prefixes as the value of a flag.
func Commas(prefixes []netip.Prefix) string {
	texts := make([]string, 0, len(prefixes))
	for _, p := range prefixes {
		texts = append(texts, p.String())
	}
	return strings.Join(texts, ",")
}

// List returns prefixes for a message, and of many only the first ones.
func List(prefixes []netip.Prefix) string {
	const shown = 8
	texts := make([]string, 0, len(prefixes))
	for _, p := range prefixes[:min(shown, len(prefixes))] {
		texts = append(texts, p.String())
	}
	if more := len(prefixes) - shown; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, ", ")
}

// Finding is a set of CIDRs and their source.
type Finding struct {
	Prefixes []netip.Prefix
	Where    string
}

// Source reads CIDRs from one source. It returns none if the source does not exist or has none.
type Source func(ctx context.Context, c *connection.Cluster) (Finding, error)

// firstFound returns the finding of the first source that has one.
func firstFound(ctx context.Context, c *connection.Cluster, sources ...Source) (Finding, error) {
	for _, find := range sources {
		found, err := find(ctx, c)
		if err != nil || len(found.Prefixes) > 0 {
			return found, err
		}
	}
	return Finding{}, nil
}

// Pods returns the pod ranges. No single API has them for all kinds of clusters.
func Pods(ctx context.Context, c *connection.Cluster) (Finding, error) {
	return firstFound(ctx, c,
		kubeadm("podSubnet"),
		argument("kube-controller-manager", "--cluster-cidr"),
		nodePodRanges,
	)
}

// Services returns the Service ranges. Kubernetes has an API for them since 1.33.
func Services(ctx context.Context, c *connection.Cluster) (Finding, error) {
	return firstFound(ctx, c,
		ServiceCIDRs,
		kubeadm("serviceSubnet"),
		argument("kube-apiserver", "--service-cluster-ip-range"),
	)
}

// kubeadm returns a source that reads a field of kubeadm's configuration.
func kubeadm(field string) Source {
	return func(ctx context.Context, c *connection.Cluster) (Finding, error) {
		config := &corev1.ConfigMap{}
		err := c.Client.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "kubeadm-config"}, config)
		if connection.IsAbsent(err) {
			return Finding{}, nil
		}
		if err != nil {
			return Finding{}, fmt.Errorf("get ConfigMap kube-system/kubeadm-config: %w", err)
		}
		var content struct {
			Networking map[string]string `json:"networking"`
		}
		if err := yaml.Unmarshal([]byte(config.Data["ClusterConfiguration"]), &content); err != nil {
			return Finding{}, fmt.Errorf("ConfigMap kube-system/kubeadm-config: %w", err)
		}
		return parsed(content.Networking[field], "ConfigMap kube-system/kubeadm-config")
	}
}

// argument returns a source that reads a flag of a control plane component that runs as a pod.
func argument(component, flag string) Source {
	return func(ctx context.Context, c *connection.Cluster) (Finding, error) {
		pods := &corev1.PodList{}
		err := c.Client.List(ctx, pods, client.InNamespace(metav1.NamespaceSystem), client.MatchingLabels{"component": component}, client.Limit(10))
		if err != nil {
			return Finding{}, fmt.Errorf("list pods of %s: %w", component, err)
		}
		for _, pod := range pods.Items {
			for _, container := range pod.Spec.Containers {
				for _, arg := range append(container.Command, container.Args...) {
					if value, found := strings.CutPrefix(arg, flag+"="); found {
						return parsed(value, "flag "+flag+" of "+component)
					}
				}
			}
		}
		return Finding{}, nil
	}
}

// parsed parses comma-separated CIDRs. It returns none for the empty text.
func parsed(text, where string) (Finding, error) {
	if text == "" {
		return Finding{}, nil
	}
	prefixes, err := clusterset.ParsePrefixes(strings.Split(strings.ReplaceAll(text, " ", ""), ","))
	if err != nil {
		return Finding{}, fmt.Errorf("%s: %w", where, err)
	}
	return Finding{prefixes, where}, nil
}

// nodePodRanges returns the podCIDRs of the existing nodes. Those of later nodes differ.
func nodePodRanges(ctx context.Context, c *connection.Cluster) (Finding, error) {
	nodes := &corev1.NodeList{}
	if err := c.Client.List(ctx, nodes); err != nil {
		return Finding{}, fmt.Errorf("list nodes: %w", err)
	}
	var all []string
	for _, node := range nodes.Items {
		all = append(all, node.Spec.PodCIDRs...)
	}
	prefixes, err := clusterset.ParsePrefixes(all)
	if err != nil {
		return Finding{}, fmt.Errorf("the nodes' podCIDRs: %w", err)
	}
	return Finding{Compact(prefixes), fmt.Sprintf("%d nodes' podCIDRs; a node that comes later has another: better pass --pod-cidrs", len(nodes.Items))}, nil
}

// Nodes returns the addresses of the existing nodes. No API has the network that they are in.
func Nodes(ctx context.Context, c *connection.Cluster) (Finding, error) {
	nodes := &corev1.NodeList{}
	if err := c.Client.List(ctx, nodes); err != nil {
		return Finding{}, fmt.Errorf("list nodes: %w", err)
	}
	var prefixes []netip.Prefix
	for _, node := range nodes.Items {
		for _, address := range node.Status.Addresses {
			ip, err := netip.ParseAddr(address.Address)
			if address.Type == corev1.NodeInternalIP && err == nil {
				prefixes = append(prefixes, netip.PrefixFrom(ip.Unmap(), ip.Unmap().BitLen()))
			}
		}
	}
	return Finding{Compact(prefixes), fmt.Sprintf("the addresses of %d nodes; a node that comes later has another: better pass --node-cidrs", len(nodes.Items))}, nil
}

// ServiceCIDRs returns the ranges of the ServiceCIDRs of a cluster.
func ServiceCIDRs(ctx context.Context, c *connection.Cluster) (Finding, error) {
	objects := &networkingv1.ServiceCIDRList{}
	err := c.Client.List(ctx, objects)
	if connection.IsAbsent(err) {
		return Finding{}, nil // before Kubernetes 1.33
	}
	if err != nil {
		return Finding{}, fmt.Errorf("list ServiceCIDRs: %w", err)
	}
	ranges, err := clusterset.ServiceRanges(objects.Items)
	if err != nil {
		return Finding{}, err
	}
	return Finding{Compact(ranges), "the cluster's ServiceCIDRs"}, nil
}
