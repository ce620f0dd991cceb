// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// autoExports: join gives the agent automatic export and removes it, and join and upgrade keep it. The export of a label stays
// without it, for leave to delete.
//
// spec: P3, K3
func (w *world) autoExports(t *testing.T) {
	t.Helper()
	auto := metav1.ObjectMeta{Namespace: "default", Name: "auto", Labels: map[string]string{clusterset.LabelAutoExport: "true"}}
	service := &corev1.Service{ObjectMeta: auto, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	w.create(t, "east", service)
	w.must(t, w.join("east", "--auto-export"))
	managed := client.MatchingLabels{clusterset.LabelManagedBy: clusterset.ManagedBy}
	w.awaitCount(t, "east", &mcsv1beta1.ServiceExportList{}, 1, managed)
	w.unchanged(t, w.join("east", ""))
	w.unchanged(t, "upgrade --context east --agent-image example/agent:v2")
	w.isAutoExporting(t, true)
	if out := w.must(t, "unexport auto --context east -n default"); !strings.Contains(out, `set it to "false" on the Service instead`) {
		t.Errorf("unexport of an automatic export says\n%s", out)
	}
	w.awaitCount(t, "east", &mcsv1beta1.ServiceExportList{}, 1, managed)

	if out := w.must(t, w.join("east", "--auto-export=false")); !strings.Contains(out, "kubectl delete serviceexports -A -l app.kubernetes.io/managed-by=tombolo-mcs.io") {
		t.Errorf("join --auto-export=false says\n%s", out)
	}
	w.isAutoExporting(t, false)
	w.unchanged(t, w.join("east", ""))
	w.edit(t, "east", service, func() { service.Labels = nil }) // no trace of Tombolo that leave would have to remove
	w.awaitCount(t, "east", &mcsv1beta1.ServiceExportList{}, 1, managed)
}

// isAutoExporting fails the test unless the agent has the flag for automatic export, and the rights, or neither.
func (w *world) isAutoExporting(t *testing.T, want bool) {
	t.Helper()
	if args := w.deployment(t, "tombolo-agent").Spec.Template.Spec.Containers[0].Args; slices.Contains(args, "--auto-export") != want {
		t.Errorf("the arguments of the agent are %q", args)
	}
	for _, object := range []client.Object{&rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{}} {
		err := w.client(t, "east").Get(t.Context(), client.ObjectKey{Name: "tombolo-autoexport"}, object)
		if err == nil != want || err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("%T for automatic export: %v", object, err)
		}
	}
}
