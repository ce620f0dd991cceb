// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package dns_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/audit"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	framework "github.com/tombolo-mcs/tombolo/e2e/framework/world"
	"github.com/tombolo-mcs/tombolo/manifests"
)

const (
	zone   = "clusterset.local."
	readme = "../../../coredns-plugin/clusterset/README.md"
)

// cluster is an API server without controllers.
type cluster struct {
	*lab.Cluster
	client client.Client
}

// startCluster starts an API server without the CRDs of the Multi-Cluster Services API.
func startCluster(t *testing.T) cluster {
	t.Helper()
	c := lab.Start(t, lab.Member("a")).Cluster("a")
	return cluster{c, membership.Client(t, c)}
}

func (c cluster) installCRDs(t *testing.T) {
	t.Helper()
	lab.Must(t, membership.InstallCRDs(t.Context(), c.Cluster))
}

func (c cluster) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	framework.Create(t, c.client, objects...)
}

func (c cluster) delete(t *testing.T, o client.Object) {
	t.Helper()
	lab.Must(t, c.client.Delete(t.Context(), o))
}

// clear deletes what a part of a test has created in the namespace default.
func (c cluster) clear(t *testing.T) {
	t.Helper()
	notTheAPI := client.MatchingFieldsSelector{Selector: fields.OneTermNotEqualSelector("metadata.name", "kubernetes")}
	for _, kind := range []client.Object{&v1beta1.ServiceImport{}, &discoveryv1.EndpointSlice{}, &corev1.Service{}} {
		lab.Must(t, c.client.DeleteAllOf(context.WithoutCancel(t.Context()), kind, client.InNamespace("default"), notTheAPI))
	}
}

// clusterset returns the stanza of the plugin, with the rights of an administrator.
func (c cluster) clusterset() string { return clustersetStanza("kubeconfig " + c.Kubeconfig()) }

func clustersetStanza(api string) string {
	return fmt.Sprintf("clusterset clusterset.local {\n%s\nstartup_timeout 1m\n}", api)
}

// kubernetes returns the stanza of CoreDNS' own plugin for some zones.
func (c cluster) kubernetes(zones string, options ...string) string {
	return fmt.Sprintf("kubernetes %s {\nkubeconfig %s\npods insecure\nstartup_timeout 1m\n%s\n}", zones, c.Kubeconfig(), strings.Join(options, "\n"))
}

// documentedRights returns a kubeconfig with the rights that the plugin's README lists, and no others.
func (c cluster) documentedRights(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(readme)
	lab.Must(t, err)
	_, rest, _ := strings.Cut(string(text), "~~~ yaml\n")
	role, _, found := strings.Cut(rest, "~~~")
	if !found {
		t.Fatal("the README has no role")
	}
	lab.Must(t, c.Apply(t.Context(), []byte(role)))
	c.create(t,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "coredns"}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "coredns"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "coredns-clusterset"},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "coredns"}},
		})
	path, err := c.ServiceAccountKubeconfig(t.Context(), "default", "coredns")
	lab.Must(t, err)
	return path
}

func clusterSetIPImport(name string, ips ...string) *v1beta1.ServiceImport {
	return &v1beta1.ServiceImport{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: v1beta1.ServiceImportSpec{
			Type: v1beta1.ClusterSetIP, IPs: ips, Ports: []v1beta1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}},
		},
	}
}

func headlessImport(name string) *v1beta1.ServiceImport {
	i := clusterSetIPImport(name)
	i.Spec.Type = v1beta1.Headless
	return i
}

// endpoints returns the slice "<service>-east-<suffix>" of a service from cluster east.
func endpoints(service, suffix string, addresses ...string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: service + "-east-" + suffix,
			Labels: map[string]string{v1beta1.LabelServiceName: service, v1beta1.LabelSourceCluster: "east"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("http"), Protocol: ptr.To(corev1.ProtocolTCP), Port: ptr.To[int32](80)}},
	}
	for _, a := range addresses {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{a}})
	}
	return s
}

// TestRights: CoreDNS uses each of the rights that the manifests grant, and none of its requests is refused.
func TestRights(t *testing.T) {
	c := lab.Start(t, lab.Member("a").Audited()).Cluster("a")
	lab.Must(t, membership.InstallCRDs(t.Context(), c))
	objects, err := manifests.Render("overlays/dns-only")
	lab.Must(t, err)
	lab.Must(t, membership.Apply(t.Context(), c, objects...))
	account := types.NamespacedName{Namespace: "tombolo-system", Name: "tombolo-dns"}
	kubeconfig, err := c.ServiceAccountKubeconfig(t.Context(), account.Namespace, account.Name)
	lab.Must(t, err)
	s := startCoreDNS(t, clustersetStanza("kubeconfig "+kubeconfig))
	s.await(t, "dns-version.clusterset.local. TXT", `NOERROR "1.0.0"`)
	s.stop() // a watch is logged when it ends
	lab.Eventually(t, waitLimit, func(context.Context) error {
		problems, err := audit.Misfits(account, objects, c.AuditLog())
		if err == nil && len(problems) > 0 {
			err = errors.New(strings.Join(problems, "\n"))
		}
		return err
	})
}
