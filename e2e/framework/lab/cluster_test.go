// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"bytes"
	"context"
	"net/netip"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/mcs-api/config/crd"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

func TestCustomResourcesWorkAtOnce(t *testing.T) {
	c := lab.Start(t, lab.ClusterOptions{Name: "a", Audit: true}).Cluster("a")
	if err := c.InstallCRDs(t.Context(), crd.ServiceExportCRD, crd.ServiceImportCRD); err != nil {
		t.Fatal(err)
	}
	manifest := []byte("# a comment\n---\n" +
		"{apiVersion: v1, kind: Namespace, metadata: {name: shop}}\n---\n" +
		"{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceExport, metadata: {name: cart, namespace: shop}}\n")
	for range 2 {
		if err := c.Apply(t.Context(), manifest); err != nil {
			t.Fatal(err)
		}
	}
	scheme := runtime.NewScheme()
	if err := mcsv1beta1.Install(scheme); err != nil {
		t.Fatal(err)
	}
	client, err := c.Client(scheme)
	if err != nil {
		t.Fatal(err)
	}
	exports := &mcsv1beta1.ServiceExportList{}
	if err := client.List(t.Context(), exports); err != nil || len(exports.Items) != 1 || exports.Items[0].Name != "cart" {
		t.Errorf("got exports %v, error %v", exports.Items, err)
	}
	if err := c.InstallCRDs(t.Context(), manifest); err == nil || err.Error() != "installing CRDs in cluster a: Namespace shop is none" {
		t.Errorf("a namespace was installed as a CRD: %v", err)
	}
	log, err := os.ReadFile(c.AuditLog())
	if err != nil || !bytes.Contains(log, []byte(`"requestURI":"/apis/multicluster.x-k8s.io/v1beta1/namespaces/shop/serviceexports/cart?`)) {
		t.Errorf("the audit log (error %v) lacks the request for the export", err)
	}
}

func TestServiceAccountHasItsOwnRights(t *testing.T) {
	c := lab.Start(t, lab.Member("a")).Cluster("a")
	admin := clientset(t, c)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}
	if _, err := admin.CoreV1().ServiceAccounts("default").Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	path, err := c.ServiceAccountKubeconfig(t.Context(), "default", "robot")
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	robot := kubernetes.NewForConfigOrDie(config)
	if _, err := robot.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("without a role: %v, want forbidden", err)
	}
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "services"},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"create"}, APIGroups: []string{""}, Resources: []string{"services"}}},
	}
	if _, err := admin.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "robot"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "robot", Namespace: "default"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
	}
	if _, err := admin.RbacV1().RoleBindings("default").Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	config, err = c.ServiceAccountConfig(t.Context(), "default", "robot")
	if err != nil {
		t.Fatal(err)
	}
	robot = kubernetes.NewForConfigOrDie(config)
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	eventually(t, "the role counts", func(ctx context.Context) (bool, error) {
		_, err := robot.CoreV1().Services("default").Create(ctx, service, metav1.CreateOptions{})
		return err == nil, nil
	})
}

func TestIPFamilies(t *testing.T) {
	v4, v6 := corev1.IPv4Protocol, corev1.IPv6Protocol
	l := lab.Start(t,
		lab.Member("dual"),
		lab.ClusterOptions{Name: "four", IPFamilies: []corev1.IPFamily{v4}},
		lab.ClusterOptions{Name: "six", IPFamilies: []corev1.IPFamily{v6}},
		lab.ClusterOptions{Name: "six-first", ServiceCIDRs: []netip.Prefix{
			netip.MustParsePrefix("fd00:aaaa::/112"), netip.MustParsePrefix("172.20.0.0/20"),
		}},
	)
	want := map[string][]corev1.IPFamily{"dual": {v4, v6}, "four": {v4}, "six": {v6}, "six-first": {v6, v4}}
	policy := corev1.IPFamilyPolicyPreferDualStack
	for _, c := range l.Clusters() {
		service := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "s"},
			Spec:       corev1.ServiceSpec{IPFamilyPolicy: &policy, Ports: []corev1.ServicePort{{Port: 80}}},
		}
		service, err := clientset(t, c).CoreV1().Services("default").Create(t.Context(), service, metav1.CreateOptions{})
		if err != nil {
			t.Errorf("cluster %s: %v", c.Name, err)
			continue
		}
		if diff := cmp.Diff(want[c.Name], service.Spec.IPFamilies); diff != "" {
			t.Errorf("cluster %s: families (-want +got):\n%s", c.Name, diff)
		}
		for i, ip := range service.Spec.ClusterIPs {
			if !c.ServiceCIDRs[i].Contains(netip.MustParseAddr(ip)) {
				t.Errorf("cluster %s: address %s is not in %s", c.Name, ip, c.ServiceCIDRs[i])
			}
		}
	}
}
