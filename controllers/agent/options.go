// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agent puts the controllers of a member cluster together and runs them.
package agent

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"github.com/tombolo-mcs/tombolo/controllers/imports"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Options are all that an agent can be told.
type Options struct {
	// Member and Hub say how to reach the two API servers.
	Member, Hub *rest.Config
	// Home is the cluster that the agent runs in, where its Lease lies. Nil means the member.
	Home *rest.Config
	// ClusterID is used where the cluster has no ClusterProperty cluster.clusterset.k8s.io.
	ClusterID string
	// ServiceCIDRs are the cluster's ranges for Services. Empty means to ask the API server, which knows them from
	// Kubernetes 1.33 on.
	ServiceCIDRs []string
	// Namespace is where the agent runs: its Lease lies there, and in the member nothing is imported into it or exported from it.
	Namespace string
	// AllowNamespaces and DenyNamespaces narrow the namespaces into which services are imported. None allowed means all.
	AllowNamespaces, DenyNamespaces []string
	// MetadataDomains are those whose labels and annotations are imported, in lower case, beside keys without a domain. A domain does
	// not admit its subdomains.
	MetadataDomains []string
	// Selector says which selector derived Services have; empty for none.
	Selector clusterset.DerivedSelector
	// HubSecret is where the member's token for the hub lies, in the member cluster, from which Hub has it; the agent renews
	// it there. Empty where that is somebody else's work. TokenLifetime is how long a token is to be good.
	HubSecret     types.NamespacedName
	TokenLifetime time.Duration
	// Election says whether replicas choose a leader.
	Election Election
	// Workers is how many services each controller works on at a time.
	Workers int
	// HeartbeatInterval is the time between heartbeats. A member that is silent for four of them counts as silent.
	HeartbeatInterval time.Duration
	// AbsentTimeout is how long a cluster may have no Member on the hub, though nobody was seen to delete it, before what it
	// exported is removed.
	AbsentTimeout time.Duration
	// MetricsAddress and ProbeAddress are where to serve; "0" means not at all.
	MetricsAddress, ProbeAddress string
	// ProfileAddress is where to serve Go's profiles, away from the metrics, since they tell more than those should; "0" or
	// empty means not at all.
	ProfileAddress string
	// Registry takes the agent's metrics.
	Registry prometheus.Registerer
	Log      logr.Logger
	// Version is what the agent says of itself.
	Version string
}

// Election says whether the replicas of an agent choose a leader.
type Election string

// Whether the replicas of an agent choose a leader.
const (
	ElectLeader Election = "leader"
	RunAlone    Election = "alone"
)

// Validate returns what is wrong with the options, all of it at once; nil if nothing is.
func (o Options) Validate() error {
	var problems []error
	if o.Member == nil {
		problems = append(problems, errors.New("no member cluster: run in a cluster, or pass --kubeconfig"))
	}
	if o.Hub == nil {
		problems = append(problems, errors.New("no hub: pass --hub-kubeconfig, or --hub-in-cluster where the agent runs on the hub"))
	}
	if o.ClusterID != "" {
		if _, err := clusterset.ParseClusterID(o.ClusterID); err != nil {
			problems = append(problems, fmt.Errorf("--cluster-id: %w", err))
		}
	}
	if _, err := clusterset.ParsePrefixes(o.ServiceCIDRs); err != nil {
		problems = append(problems, fmt.Errorf("--service-cidrs: %w", err))
	}
	if o.Election == ElectLeader && o.Namespace == "" {
		problems = append(problems, errors.New("no namespace for the leader election: set POD_NAMESPACE, or pass --namespace or --leader-elect=false"))
	}
	if o.Home != nil && o.HubSecret != (types.NamespacedName{}) {
		problems = append(problems, errors.New("--hub-secret: pass none with --hub-in-cluster, as a pod's tokens are renewed by its kubelet"))
	}
	if o.HubSecret != (types.NamespacedName{}) && (o.TokenLifetime < 10*time.Minute || o.TokenLifetime > 365*24*time.Hour) {
		problems = append(problems, fmt.Errorf("--hub-token-lifetime=%s: must be between 10m and 8760h", o.TokenLifetime))
	}
	if !slices.Contains([]clusterset.DerivedSelector{"", clusterset.NoSelector, clusterset.OldestSelector}, o.Selector) {
		problems = append(problems, fmt.Errorf("--derived-selector=%s: must be %s or %s", o.Selector, clusterset.NoSelector, clusterset.OldestSelector))
	}
	for _, namespace := range slices.Concat(o.AllowNamespaces, o.DenyNamespaces) {
		if len(validation.IsDNS1123Label(namespace)) > 0 {
			problems = append(problems, fmt.Errorf("--allow-namespaces, --deny-namespaces: %q is no name of a namespace", namespace))
		}
	}
	for _, domain := range o.MetadataDomains {
		if len(validation.IsDNS1123Subdomain(domain)) > 0 || clusterset.IsReserved(domain+"/") {
			problems = append(problems, fmt.Errorf("--allow-metadata-domains: %q is no domain in lower case, or one of Kubernetes or Tombolo, which never cross", domain))
		}
	}
	if o.Workers < 1 || o.Workers > 256 {
		problems = append(problems, fmt.Errorf("--workers=%d: must be between 1 and 256", o.Workers))
	}
	if o.HeartbeatInterval < time.Second || o.HeartbeatInterval > 5*time.Minute {
		problems = append(problems, fmt.Errorf("--heartbeat-interval=%s: must be between 1s and 5m", o.HeartbeatInterval))
	}
	if o.AbsentTimeout < time.Minute || o.AbsentTimeout > 30*24*time.Hour {
		problems = append(problems, fmt.Errorf("--absent-member-timeout=%s: must be between 1m and 720h", o.AbsentTimeout))
	}
	return errors.Join(problems...)
}

// importPolicy says into which namespaces services are imported: never into the agent's own.
func (o Options) importPolicy() imports.NamespacePolicy {
	return imports.NamespacePolicy{Allowed: o.AllowNamespaces, Denied: append(slices.Clone(o.DenyNamespaces), o.Namespace)}
}

// serviceCIDRs returns the ranges that were given; they have been validated.
func (o Options) serviceCIDRs() []netip.Prefix {
	prefixes, err := clusterset.ParsePrefixes(o.ServiceCIDRs)
	if err != nil { // Validate has refused it
		return nil
	}
	return prefixes
}
