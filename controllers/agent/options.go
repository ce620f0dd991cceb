// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agent assembles the controllers of a member cluster and runs them.
package agent

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"github.com/tombolo-mcs/tombolo/controllers/imports"
	"github.com/tombolo-mcs/tombolo/internal/liveness"
	"github.com/tombolo-mcs/tombolo/internal/preference"
	"github.com/tombolo-mcs/tombolo/internal/reach"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Options are the settings of an agent.
type Options struct {
	// Member and Hub are the client configurations for the two API servers.
	Member, Hub *rest.Config
	// AgentCluster is the cluster in which the agent runs, and which has its Lease. Nil means the member.
	AgentCluster *rest.Config
	// ClusterID is used if the cluster has no ClusterProperty cluster.clusterset.k8s.io.
	ClusterID string
	// ServiceCIDRs are the cluster's ranges for Services. If empty, they are read from the API server, which serves them since
	// Kubernetes 1.33.
	ServiceCIDRs []string
	// Namespace is the namespace of the agent, with its Lease. In the member, nothing is imported into it or exported from it.
	Namespace string
	// AllowNamespaces and DenyNamespaces limit the namespaces into which services are imported. If AllowNamespaces is empty, all
	// are allowed.
	AllowNamespaces, DenyNamespaces []string
	// MetadataDomains are the domains, in lower case, whose labels and annotations are imported. Keys without a domain always are.
	// A domain does not include its subdomains.
	MetadataDomains []string
	// DefaultSources are the preferred sources of imports without a ServiceImportRoutingPolicy, such as SameCluster, SameProperty=region
	// and Any. If empty, all exporters serve.
	DefaultSources []string
	// AutoExport says whether labels of Services and Namespaces export Services (P3), at most AutoExportLimit of a namespace.
	AutoExport      AutoExport
	AutoExportLimit int
	// GatewayAddresses are the addresses at which other members reach the gateways of this cluster. If empty, they are those of the
	// Service of the gateways.
	GatewayAddresses []string
	// Selector says which selector derived Services have; empty means none.
	Selector clusterset.DerivedSelector
	// HubSecret is the Secret in the member cluster with the token for the hub, in which the agent renews the token. If it is
	// empty, the agent does not renew it. TokenLifetime is the requested lifetime of a token.
	HubSecret     types.NamespacedName
	TokenLifetime time.Duration
	// Election says whether replicas choose a leader.
	Election Election
	// Pod is the Pod of the agent.
	Pod Pod
	// Workers is the number of services that each controller reconciles at the same time.
	Workers int
	// HeartbeatInterval is the time between heartbeats with up to 100 members; with more, it is longer in proportion. A member that is
	// silent for four of them counts as silent.
	HeartbeatInterval time.Duration
	// AbsentTimeout is how long a cluster may have no Member on the hub, without an observed deletion, before its exports are
	// removed.
	AbsentTimeout time.Duration
	// MetricsAddress and ProbeAddress are the addresses to listen on; "0" means none.
	MetricsAddress, ProbeAddress string
	// MetricsAuth serves the metrics by HTTPS, to accounts that may get /metrics.
	MetricsAuth bool
	// ClusterDNS is the address of the DNS that is queried for the clusterset's zone, with its port, or NoClusterDNS. If it is empty, it is that
	// of the agent's pod.
	ClusterDNS string
	// ProfileAddress is the address for Go's profiles. It is not that of the metrics, because profiles contain more than metrics
	// should; "0" or empty means none.
	ProfileAddress string
	// Registry registers the agent's metrics.
	Registry prometheus.Registerer
	Log      logr.Logger
	// Version is the version of the agent, for its heartbeat.
	Version string
}

// Election says whether the replicas of an agent choose a leader.
type Election string

// Values of Election.
const (
	ElectLeader Election = "leader"
	RunAlone    Election = "alone"
)

// Pod is the name and the UID of the agent's Pod. Both are empty if it runs in none, or if they are not known.
type Pod struct{ Name, UID string }

// AutoExport says whether labels export Services.
type AutoExport string

// Values of AutoExport.
const (
	NoAutoExport    AutoExport = ""
	AutoExportLabel AutoExport = "label"
)

// maxAutoExports is the largest AutoExportLimit.
const maxAutoExports = 5000

// Validate returns all problems of the options in one error; nil if there are none.
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
	for _, address := range o.GatewayAddresses {
		if _, err := reach.ParseAddress(address); err != nil {
			problems = append(problems, fmt.Errorf("--gateway-address: %w", err))
		}
	}
	if len(o.GatewayAddresses) > hubv1alpha1.MaxGatewayAddresses {
		problems = append(problems, fmt.Errorf("--gateway-address: %d addresses, more than %d", len(o.GatewayAddresses), hubv1alpha1.MaxGatewayAddresses))
	}
	if o.Election == ElectLeader && o.Namespace == "" {
		problems = append(problems, errors.New("no namespace for the leader election: set POD_NAMESPACE, or pass --namespace or --leader-elect=false"))
	}
	if o.AgentCluster != nil && o.HubSecret != (types.NamespacedName{}) {
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
	if _, err := preference.ParseSources(o.DefaultSources); err != nil {
		problems = append(problems, fmt.Errorf("--default-sources: %w", err))
	}
	if o.Workers < 1 || o.Workers > 256 {
		problems = append(problems, fmt.Errorf("--workers=%d: must be between 1 and 256", o.Workers))
	}
	if o.HeartbeatInterval < time.Second || o.HeartbeatInterval > liveness.MaxInterval {
		problems = append(problems, fmt.Errorf("--heartbeat-interval=%s: must be between 1s and 5m", o.HeartbeatInterval))
	}
	if o.AbsentTimeout < time.Minute || o.AbsentTimeout > 30*24*time.Hour {
		problems = append(problems, fmt.Errorf("--absent-member-timeout=%s: must be between 1m and 720h", o.AbsentTimeout))
	}
	return errors.Join(append(problems, o.checkAutoExport(), o.checkClusterDNS())...)
}

func (o Options) checkClusterDNS() error {
	if o.ClusterDNS == "" || o.ClusterDNS == NoClusterDNS {
		return nil
	}
	if _, _, err := net.SplitHostPort(o.ClusterDNS); err != nil {
		return fmt.Errorf("--cluster-dns: %w", err)
	}
	return nil
}

func (o Options) checkAutoExport() error {
	if o.AutoExport != NoAutoExport && (o.AutoExportLimit < 1 || o.AutoExportLimit > maxAutoExports) {
		return fmt.Errorf("--auto-export-limit=%d: must be between 1 and %d", o.AutoExportLimit, maxAutoExports)
	}
	return nil
}

// importPolicy selects the namespaces into which services are imported: never the agent's own.
func (o Options) importPolicy() imports.NamespacePolicy {
	return imports.NamespacePolicy{Allowed: o.AllowNamespaces, Denied: append(slices.Clone(o.DenyNamespaces), o.Namespace)}
}

// serviceCIDRs returns the given ranges, which Validate has checked.
func (o Options) serviceCIDRs() []netip.Prefix {
	prefixes, err := clusterset.ParsePrefixes(o.ServiceCIDRs)
	if err != nil { // Validate has refused it
		return nil
	}
	return prefixes
}

// defaultSources returns the given sources, which Validate has checked.
func (o Options) defaultSources() []policyv1alpha1.Source {
	sources, err := preference.ParseSources(o.DefaultSources)
	if err != nil { // Validate has refused it
		return nil
	}
	return sources
}

// gatewayAddresses returns the given addresses, which Validate has checked.
func (o Options) gatewayAddresses() []hubv1alpha1.GatewayAddress {
	var result []hubv1alpha1.GatewayAddress
	for _, text := range o.GatewayAddresses {
		if address, err := reach.ParseAddress(text); err == nil {
			result = append(result, address)
		}
	}
	return result
}
