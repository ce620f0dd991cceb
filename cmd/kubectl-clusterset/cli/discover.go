// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// finding is a set of CIDRs and their source.
type finding struct {
	prefixes []netip.Prefix
	where    string
}

// source reads CIDRs from one source. It returns none if the source does not exist or has none.
type source func(ctx context.Context, c *cluster) (finding, error)

// firstFound returns the finding of the first source that has one.
func firstFound(ctx context.Context, c *cluster, sources ...source) (finding, error) {
	for _, find := range sources {
		found, err := find(ctx, c)
		if err != nil || len(found.prefixes) > 0 {
			return found, err
		}
	}
	return finding{}, nil
}

// podRanges returns the pod ranges. No single API has them for all kinds of clusters.
func podRanges(ctx context.Context, c *cluster) (finding, error) {
	return firstFound(ctx, c,
		kubeadm("podSubnet"),
		argument("kube-controller-manager", "--cluster-cidr"),
		nodePodRanges,
	)
}

// serviceRanges returns the Service ranges. Kubernetes has an API for them since 1.33.
func serviceRanges(ctx context.Context, c *cluster) (finding, error) {
	return firstFound(ctx, c,
		serviceCIDRs,
		kubeadm("serviceSubnet"),
		argument("kube-apiserver", "--service-cluster-ip-range"),
	)
}

// kubeadm returns a source that reads a field of kubeadm's configuration.
func kubeadm(field string) source {
	return func(ctx context.Context, c *cluster) (finding, error) {
		config := &corev1.ConfigMap{}
		err := c.client.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "kubeadm-config"}, config)
		if isAbsentKind(err) {
			return finding{}, nil
		}
		if err != nil {
			return finding{}, fmt.Errorf("get ConfigMap kube-system/kubeadm-config: %w", err)
		}
		var content struct {
			Networking map[string]string `json:"networking"`
		}
		if err := yaml.Unmarshal([]byte(config.Data["ClusterConfiguration"]), &content); err != nil {
			return finding{}, fmt.Errorf("ConfigMap kube-system/kubeadm-config: %w", err)
		}
		return parsed(content.Networking[field], "ConfigMap kube-system/kubeadm-config")
	}
}

// argument returns a source that reads a flag of a control plane component that runs as a pod.
func argument(component, flag string) source {
	return func(ctx context.Context, c *cluster) (finding, error) {
		pods := &corev1.PodList{}
		err := c.client.List(ctx, pods, client.InNamespace(metav1.NamespaceSystem), client.MatchingLabels{"component": component}, client.Limit(10))
		if err != nil {
			return finding{}, fmt.Errorf("list pods of %s: %w", component, err)
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
		return finding{}, nil
	}
}

// parsed parses comma-separated CIDRs. It returns none for the empty text.
func parsed(text, where string) (finding, error) {
	if text == "" {
		return finding{}, nil
	}
	prefixes, err := clusterset.ParsePrefixes(strings.Split(strings.ReplaceAll(text, " ", ""), ","))
	if err != nil {
		return finding{}, fmt.Errorf("%s: %w", where, err)
	}
	return finding{prefixes, where}, nil
}

// nodePodRanges returns the podCIDRs of the existing nodes. Those of later nodes differ.
func nodePodRanges(ctx context.Context, c *cluster) (finding, error) {
	nodes := &corev1.NodeList{}
	if err := c.client.List(ctx, nodes); err != nil {
		return finding{}, fmt.Errorf("list nodes: %w", err)
	}
	var all []string
	for _, node := range nodes.Items {
		all = append(all, node.Spec.PodCIDRs...)
	}
	prefixes, err := clusterset.ParsePrefixes(all)
	if err != nil {
		return finding{}, fmt.Errorf("the nodes' podCIDRs: %w", err)
	}
	return finding{compact(prefixes), fmt.Sprintf("%d nodes' podCIDRs; a node that comes later has another: better pass --pod-cidrs", len(nodes.Items))}, nil
}

// nodeRanges returns the addresses of the existing nodes. No API has the network that they are in.
func nodeRanges(ctx context.Context, c *cluster) (finding, error) {
	nodes := &corev1.NodeList{}
	if err := c.client.List(ctx, nodes); err != nil {
		return finding{}, fmt.Errorf("list nodes: %w", err)
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
	return finding{compact(prefixes), fmt.Sprintf("the addresses of %d nodes; a node that comes later has another: better pass --node-cidrs", len(nodes.Items))}, nil
}

func serviceCIDRs(ctx context.Context, c *cluster) (finding, error) {
	objects := &networkingv1.ServiceCIDRList{}
	err := c.client.List(ctx, objects)
	if isAbsentKind(err) {
		return finding{}, nil // before Kubernetes 1.33
	}
	if err != nil {
		return finding{}, fmt.Errorf("list ServiceCIDRs: %w", err)
	}
	ranges, err := clusterset.ServiceRanges(objects.Items)
	if err != nil {
		return finding{}, err
	}
	return finding{compact(ranges), "the cluster's ServiceCIDRs"}, nil
}
