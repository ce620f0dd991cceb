// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// maxClusters is bounded by the default service CIDRs: the second byte of 10.100.0.0/16 counts clusters.
const maxClusters = 100

// Options say what a lab consists of.
type Options struct {
	// Clusters to run: at least one, at most 100.
	Clusters []ClusterOptions
	// Logs is a folder that receives the logs, as <cluster>/<process>.log. Empty: the lab's own folder, which
	// disappears with the lab.
	Logs string
	// Log receives a line for each step of the start. Nil: nothing is logged.
	Log func(format string, args ...any)
}

// ClusterOptions say what a cluster consists of.
type ClusterOptions struct {
	// Name is a DNS label, unique within the lab.
	Name string
	// IPFamilies of Services, the primary one first, and of pods and machines. Empty: IPv4 and IPv6. A machine needs IPv4.
	IPFamilies []corev1.IPFamily
	// ServiceCIDRs: one, or one of each family, the primary one first. Empty: 10.<100+i>.0.0/16 and
	// fd00:10:<100+i>::/112 for cluster i of a network, as far as IPFamilies has the family. Not both may be set.
	ServiceCIDRs []netip.Prefix
	// Controllers are those that kube-controller-manager runs. Empty: it does not run at all.
	Controllers []string
	// ControllersLater has them start with Cluster.RestartControllers, and not with the lab.
	ControllersLater bool
	// Form says how complete the cluster is. The default: a control plane on the loopback interface.
	Form Form
	// Network is the network of the cluster's pods: pods of one network reach each other. Clusters of different networks have the same
	// ranges, and no host can derive the addresses of pods from those of machines: a packet of a pod of a named network that leaves for a
	// machine bears the address of its own machine. Empty: the network that has no name.
	Network string
	// Release is the folder, below that of the binaries, with those of another release of Kubernetes than the default one.
	Release string
	// Audit writes every request, without its body, to the file Cluster.AuditLog.
	Audit bool
	// APIServerArgs are appended to the arguments of kube-apiserver: a later flag wins over an earlier one.
	APIServerArgs []string
	// Env is added to the environment of all processes, as NAME=value: a later one wins over an earlier one.
	Env []string
}

// Audited returns the options of a cluster whose API server logs requests. It does not stream lists, as old ones do not, so that clients
// both list and watch.
func (o ClusterOptions) Audited() ClusterOptions {
	o.Audit = true
	o.APIServerArgs = append(slices.Clone(o.APIServerArgs), "--feature-gates=WatchList=false")
	return o
}

// Form says how complete a cluster is.
type Form int

const (
	// ControlPlane has neither nodes nor a network: its API server listens on the loopback interface. Needs no root.
	ControlPlane Form = iota
	// Machine is a control plane on a machine of its own, which the pods of other clusters reach. It runs all controllers
	// that are on by default. Linux and root.
	Machine
	// Complete is a Machine with a scheduler, and a node of the cluster's name in zone "zone-<name>" that runs pods.
	// Linux and root.
	Complete
)

// Oldest is the release of the oldest Kubernetes that members may run.
const Oldest = "oldest"

// CompleteMember returns the options of a cluster of the full lab.
func CompleteMember(name string) ClusterOptions {
	return ClusterOptions{Name: name, Form: Complete, Controllers: []string{"*"}}
}

// MachineHub returns the options of a hub of the full lab that lives apart from the members.
func MachineHub() ClusterOptions {
	return ClusterOptions{Name: "hub", Form: Machine, Controllers: []string{"*"}}
}

// Hub returns the options of a cluster "hub" with the default controllers: without kube-controller-manager
// ResourceQuota would admit everything, and namespaces would never finish terminating.
func Hub() ClusterOptions {
	return ClusterOptions{Name: "hub", Controllers: DefaultControllers()}
}

// Member returns the options of a cluster without controllers, the cheapest there is: Services get addresses, but no controller
// writes EndpointSlices, default service accounts or the rules of aggregated ClusterRoles such as "edit", namespaces do not
// finish terminating, and dependents of deleted owners stay.
func Member(name string) ClusterOptions {
	return ClusterOptions{Name: name}
}

// DefaultControllers returns the names of the controllers that matter without nodes and volumes.
func DefaultControllers() []string {
	return []string{
		"clusterrole-aggregation-controller",
		"endpointslice-controller",
		"garbage-collector-controller",
		"namespace-controller",
		"resourcequota-controller",
		"root-ca-certificate-publisher-controller",
		"serviceaccount-controller",
		"validatingadmissionpolicy-status-controller",
	}
}

func (o Options) validate() error {
	if len(o.Clusters) == 0 || len(o.Clusters) > maxClusters {
		return fmt.Errorf("lab: %d clusters are asked for; it takes 1 to %d", len(o.Clusters), maxClusters)
	}
	names := sets.New[string]()
	for _, c := range o.Clusters {
		if names.Has(c.Name) {
			return fmt.Errorf("lab: two clusters are named %q", c.Name)
		}
		names.Insert(c.Name)
	}
	return nil
}

// numbers returns the number of each cluster in its network.
func (o Options) numbers() []int {
	count := map[string]int{}
	result := make([]int, len(o.Clusters))
	for i, c := range o.Clusters {
		result[i] = count[c.Network]
		count[c.Network]++
	}
	return result
}

// serviceCIDRs returns the service CIDRs of the cluster with this number in its network, the primary one first.
func (o ClusterOptions) serviceCIDRs(number int) []netip.Prefix {
	if len(o.ServiceCIDRs) > 0 {
		return slices.Clone(o.ServiceCIDRs)
	}
	families := o.IPFamilies
	if len(families) == 0 {
		families = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
	}
	var cidrs []netip.Prefix
	for _, f := range families {
		if f == corev1.IPv4Protocol {
			cidrs = append(cidrs, netip.MustParsePrefix(fmt.Sprintf("10.%d.0.0/16", 100+number)))
		} else {
			cidrs = append(cidrs, netip.MustParsePrefix(fmt.Sprintf("fd00:10:%d::/112", 100+number)))
		}
	}
	return cidrs
}
