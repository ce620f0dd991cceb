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

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/autoexport"
	"github.com/tombolo-mcs/tombolo/manifests"
	aboutv1beta1 "github.com/tombolo-mcs/tombolo/pkg/api/about/v1beta1"
	gatewayv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/gateway/v1alpha1"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/preference"
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
	// Client reads from the API server, without a cache.
	Client client.Client
	// hasMembers is true if this cluster is a hub too.
	hasMembers bool
}

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

// scheme returns a scheme with the kinds that are read.
func scheme() (*runtime.Scheme, error) {
	result := runtime.NewScheme()
	return result, errors.Join(
		clientscheme.AddToScheme(result), mcsv1beta1.Install(result), aboutv1beta1.AddToScheme(result), hubv1alpha1.AddToScheme(result),
		gatewayv1alpha1.AddToScheme(result), policyv1alpha1.AddToScheme(result),
	)
}

// identify reads the identity of a cluster. The ID is empty if the cluster is not a member.
func identify(ctx context.Context, kubeContext KubeContext) (*Member, error) {
	kinds, err := scheme()
	if err != nil {
		return nil, err
	}
	kubeContext.Config = unthrottled(kubeContext.Config)
	c, err := client.New(kubeContext.Config, client.Options{Scheme: kinds})
	if err != nil {
		return nil, err
	}
	m := &Member{KubeContext: kubeContext, Client: c}
	system := &metav1.PartialObjectMetadata{}
	system.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := c.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		return nil, fmt.Errorf("get namespace %s: %w", metav1.NamespaceSystem, err)
	}
	m.UID = string(system.UID)
	members := &hubv1alpha1.MemberList{}
	if err := c.List(ctx, members, client.Limit(1)); err == nil {
		m.hasMembers = len(members.Items) > 0
	} else if !isNotFound(err) && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("list Members: %w", err)
	}
	property := &aboutv1beta1.ClusterProperty{}
	err = c.Get(ctx, client.ObjectKey{Name: aboutv1beta1.ClusterIDProperty}, property)
	if isNotFound(err) {
		return m, nil // not a member
	}
	if err != nil {
		return nil, fmt.Errorf("get ClusterProperty %s: %w", aboutv1beta1.ClusterIDProperty, err)
	}
	if m.ID, err = clusterset.ParseClusterID(property.Spec.Value); err != nil {
		return nil, fmt.Errorf("ClusterProperty %s: %w", aboutv1beta1.ClusterIDProperty, err)
	}
	err = c.Get(ctx, client.ObjectKey{Name: aboutv1beta1.ClusterSetProperty}, property)
	if err != nil && !isNotFound(err) {
		return nil, fmt.Errorf("get ClusterProperty %s: %w", aboutv1beta1.ClusterSetProperty, err)
	}
	if err == nil {
		m.Clusterset = property.Spec.Value
	}
	err = m.readSettings(ctx)
	return m, err
}

// unthrottled returns a configuration without client-side rate limits: a user waits, and the API server has its own limits.
func unthrottled(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = -1, -1
	config.UserAgent = "kubectl-clusterset"
	return config
}

// readSettings reads the settings from the agent's command line, and the service CIDRs from the cluster if no flag sets them.
func (m *Member) readSettings(ctx context.Context) error {
	m.Settings = Settings{}
	agent := &appsv1.Deployment{}
	err := m.Client.Get(ctx, client.ObjectKey{Namespace: manifests.AgentNamespace, Name: manifests.AgentDeployment}, agent)
	switch {
	case err == nil:
		m.Agent = agent
	case !isNotFound(err):
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
	if err := m.Client.List(ctx, objects); err != nil && !isNotFound(err) { // not served before Kubernetes 1.33
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

// isNotFound reports whether an object, or its whole kind, does not exist.
func isNotFound(err error) bool { return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) }
