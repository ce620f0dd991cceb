// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// patience is how long anything may take on a busy machine.
const patience = 90 * time.Second

func clientset(t *testing.T, c *lab.Cluster) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// eventually waits until the condition holds.
func eventually(t *testing.T, what string, condition func(ctx context.Context) (bool, error)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, condition); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func TestHubEnforcesQuotaNextToMembers(t *testing.T) {
	begin := time.Now()
	l := lab.Start(t, lab.Hub(), lab.Member("a"), lab.Member("b"))
	t.Logf("a hub with controllers and two members were ready after %.1f s", time.Since(begin).Seconds())

	for _, c := range l.Clusters() {
		version, err := clientset(t, c).ServerVersion()
		if err != nil {
			t.Fatal(err)
		}
		if version.Major != "1" || version.GitVersion == "v0.0.0-master+$Format:%H$" {
			t.Errorf("cluster %s reports version %+v", c.Name, version)
		}
	}
	testQuota(t, clientset(t, l.Cluster("hub")))
}

func testQuota(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	ctx := t.Context()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "member-a"}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	limit := corev1.ResourceList{"count/secrets": resource.MustParse("1")}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: limit}}
	if _, err := client.CoreV1().ResourceQuotas(ns.Name).Create(ctx, quota, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the quota is in effect", func(ctx context.Context) (bool, error) {
		q, err := client.CoreV1().ResourceQuotas(ns.Name).Get(ctx, "q", metav1.GetOptions{})
		return err == nil && len(q.Status.Hard) == 1, err
	})
	create := func(name string) error {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}
		_, err := client.CoreV1().Secrets(ns.Name).Create(ctx, secret, metav1.CreateOptions{})
		return err
	}
	// Admission has its own view of quotas, and refuses all until that has the status too.
	eventually(t, "the first secret is allowed", func(context.Context) (bool, error) {
		err := create("first")
		return err == nil || apierrors.IsAlreadyExists(err), nil
	})
	err := create("second")
	if err == nil { // the quota's controller may have counted before it saw the first
		err = create("third")
	}
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "exceeded quota") {
		t.Errorf("a further secret is not refused by the quota: %v", err)
	}
	if err := client.CoreV1().Namespaces().Delete(ctx, ns.Name, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	eventually(t, "the namespace is gone", func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().Namespaces().Get(ctx, ns.Name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
}
