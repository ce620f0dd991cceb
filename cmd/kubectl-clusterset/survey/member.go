// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/apiserver"
	"github.com/tombolo-mcs/tombolo/controllers/autoexport"
	"github.com/tombolo-mcs/tombolo/controllers/imports"
	"github.com/tombolo-mcs/tombolo/internal/preference"
	"github.com/tombolo-mcs/tombolo/manifests"
	aboutv1beta1 "github.com/tombolo-mcs/tombolo/pkg/api/about/v1beta1"
	gatewayv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/gateway/v1alpha1"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Member is a reachable member cluster.
type Member struct {
	KubeContext KubeContext
	// ID is the value of its ClusterProperty; UID is the UID of its namespace kube-system.
	ID  clusterset.ClusterID
	UID string
	// Clusterset is the value of its ClusterProperty for the clusterset; empty if there is none.
	Clusterset string
	// Agent is the agent's Deployment; nil if the cluster has none, for example if the agent runs beside the hub.
	Agent    *appsv1.Deployment
	Settings Settings
	// SettingsErr is why the agent and its settings could not be read; nil if they were.
	SettingsErr error
	// Client reads from the API server, without a cache.
	Client client.Client
	// lease is the Lease of its agents; nil if there is none, or if it may not be read.
	lease *AgentLease
	// hasMembers is true if this cluster is a hub too.
	hasMembers bool
}

// ReadTimeout limits the time to list the objects of a member.
const ReadTimeout = time.Minute

// AnnotationHub on the agent's pods is the URL of the hub.
const AnnotationHub = "tombolo-mcs.io/hub"

// Settings are the flags of the member's agent that affect its decisions.
type Settings struct {
	ServiceCIDRs                      []netip.Prefix
	AllowedNamespaces, DenyNamespaces []string
	MetadataDomains                   []string
	Selector                          clusterset.DerivedSelector
	DefaultSources                    []policyv1alpha1.Source
	// AutoExport is true if labels export Services, at most AutoExportLimit of a namespace.
	AutoExport      bool
	AutoExportLimit int
}

// Scheme returns a scheme with the kinds that are read.
func Scheme() (*runtime.Scheme, error) {
	result := runtime.NewScheme()
	return result, errors.Join(
		clientscheme.AddToScheme(result), mcsv1beta1.Install(result), aboutv1beta1.AddToScheme(result), hubv1alpha1.AddToScheme(result),
		gatewayv1alpha1.AddToScheme(result), policyv1alpha1.AddToScheme(result),
	)
}

// identify reads the identity of a cluster. The ID is empty if the cluster is not a member.
func identify(ctx context.Context, kubeContext KubeContext) (*Member, error) {
	kinds, err := Scheme()
	if err != nil {
		return nil, err
	}
	var clock apiserver.Clock
	kubeContext.Config = apiserver.Config(kubeContext.Config)
	kubeContext.Config.Wrap(clock.Wrap)
	c, err := client.New(kubeContext.Config, client.Options{Scheme: kinds})
	if err != nil {
		return nil, err
	}
	m := &Member{KubeContext: kubeContext, Client: c}
	core, err := kubernetes.NewForConfig(kubeContext.Config)
	if err != nil {
		return nil, err
	}
	// First a request without discovery, which has no context and so no short time limit.
	system, err := core.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("get namespace %s: %w", metav1.NamespaceSystem, err)
	}
	m.UID = string(system.UID)
	members := &hubv1alpha1.MemberList{}
	if err := c.List(ctx, members, client.Limit(1)); err == nil {
		m.hasMembers = len(members.Items) > 0
	} else if !apiserver.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("list Members: %w", err)
	}
	if err := m.readIdentity(ctx); err != nil || m.ID == "" {
		return m, err
	}
	m.lease, err = ReadAgentLease(ctx, c, manifests.AgentNamespace, clock.Now)
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, err
	}
	m.SettingsErr = m.readSettings(ctx)
	return m, ctx.Err()
}

// readIdentity reads the IDs of the cluster and of its clusterset. They are empty if the cluster is not a member.
func (m *Member) readIdentity(ctx context.Context) error {
	property := &aboutv1beta1.ClusterProperty{}
	err := m.Client.Get(ctx, client.ObjectKey{Name: aboutv1beta1.ClusterIDProperty}, property)
	if apiserver.IsNotFound(err) && !m.hasAgent(ctx) {
		return nil // not a member
	}
	if err != nil {
		return fmt.Errorf("get ClusterProperty %s: %w", aboutv1beta1.ClusterIDProperty, err)
	}
	if m.ID, err = clusterset.ParseClusterID(property.Spec.Value); err != nil {
		return fmt.Errorf("ClusterProperty %s: %w", aboutv1beta1.ClusterIDProperty, err)
	}
	err = m.Client.Get(ctx, client.ObjectKey{Name: aboutv1beta1.ClusterSetProperty}, property)
	if err != nil && !apiserver.IsNotFound(err) {
		return fmt.Errorf("get ClusterProperty %s: %w", aboutv1beta1.ClusterSetProperty, err)
	}
	if err == nil {
		m.Clusterset = property.Spec.Value
	}
	return nil
}

// hasAgent reports whether the cluster has an agent.
func (m *Member) hasAgent(ctx context.Context) bool {
	return m.Client.Get(ctx, client.ObjectKey{Namespace: manifests.AgentNamespace, Name: manifests.AgentDeployment}, &appsv1.Deployment{}) == nil
}

// readSettings reads the settings from the agent's command line, and the service CIDRs from the cluster if no flag sets them.
func (m *Member) readSettings(ctx context.Context) error {
	m.Settings = Settings{}
	agent := &appsv1.Deployment{}
	err := m.Client.Get(ctx, client.ObjectKey{Namespace: manifests.AgentNamespace, Name: manifests.AgentDeployment}, agent)
	switch {
	case err == nil:
		m.Agent = agent
	case !apiserver.IsNotFound(err):
		return fmt.Errorf("get Deployment %s: %w", manifests.AgentDeployment, err)
	}
	if err := m.Settings.parse(m.Agent); err != nil {
		return fmt.Errorf("the command line of Deployment %s: %w", manifests.AgentDeployment, err)
	}
	m.Settings.DenyNamespaces = append(m.Settings.DenyNamespaces, manifests.AgentNamespace)
	if len(m.Settings.ServiceCIDRs) > 0 {
		return nil
	}
	objects := &networkingv1.ServiceCIDRList{}
	if err := m.Client.List(ctx, objects); err != nil && !apiserver.IsNotFound(err) { // not served before Kubernetes 1.33
		return fmt.Errorf("list ServiceCIDRs: %w", err)
	}
	m.Settings.ServiceCIDRs, err = clusterset.ServiceRanges(objects.Items)
	return err
}

// parse reads the flags that matter here, as cmd/tombolo-agent defines them.
func (s *Settings) parse(agent *appsv1.Deployment) error {
	s.AutoExportLimit = autoexport.DefaultLimit
	if agent == nil {
		return nil
	}
	for _, container := range agent.Spec.Template.Spec.Containers {
		for _, arg := range append(container.Command, container.Args...) {
			flag, value, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
			var err error
			switch flag {
			case "service-cidrs":
				s.ServiceCIDRs, err = clusterset.ParsePrefixes(strings.Split(value, ","))
			case "allow-namespaces":
				s.AllowedNamespaces = strings.Split(value, ",")
			case "deny-namespaces":
				s.DenyNamespaces = strings.Split(value, ",")
			case "allow-metadata-domains":
				s.MetadataDomains = strings.Split(value, ",")
			case "default-sources":
				s.DefaultSources, err = preference.ParseSources(strings.FieldsFunc(value, func(r rune) bool { return r == ',' }))
			case "auto-export":
				s.AutoExport, err = strconv.ParseBool(cmp.Or(value, "true"))
			case "auto-export-limit":
				s.AutoExportLimit, err = strconv.Atoi(value)
			case "derived-selector":
				s.Selector = clusterset.DerivedSelector(value)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", arg, err)
			}
		}
	}
	return nil
}

// Namespaces returns the policy for the namespaces into which the member imports.
func (m *Member) Namespaces() imports.NamespacePolicy {
	return imports.NamespacePolicy{Allowed: m.Settings.AllowedNamespaces, Denied: m.Settings.DenyNamespaces}
}
