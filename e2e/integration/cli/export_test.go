// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/cli"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
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

func (s *surveyed) testExport(t *testing.T) {
	s.serve(t, "east", "web", "10.1.0.1", 80)
	s.serve(t, "west", "web", "10.2.0.1", 8080)
	s.serve(t, "west", "cart", "10.2.0.2", 80)
	s.refused(t, "export --context hub -n shop web", cli.ExitFailed, "does not know ServiceExports")
	s.refused(t, "export --context east -n shop web wbe", cli.ExitFailed, "Service wbe: there is none of that name in namespace shop", "nothing has been changed")
	s.says(t, "export --context east -n shop web --dry-run", "serviceexport.multicluster.x-k8s.io/web created (server dry run)")
	s.printsExport(t)
	s.completes(t, "export --context east -n shop we", "web\n")
	s.completes(t, "status --context we", "west\n")
	s.completes(t, "trace --hub-context hub --from ea", "east\n")
	s.awaitCount(t, "east", &mcsv1beta1.ServiceExportList{}, 0)
	s.create(t, "west", &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "alias", Labels: map[string]string{"tier": "front"}},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.com"},
	})
	s.refused(t, "export --context west -n shop alias", cli.ExitFailed, "Service alias is of type ExternalName, which cannot be exported")
	s.says(t, "export --context east -n shop web --wait 3m", "serviceexport.multicluster.x-k8s.io/web created", "web: The service is exported to the clusterset.")
	s.says(t, "export --context east -n shop web --wait 3m", "serviceexport.multicluster.x-k8s.io/web unchanged")
	s.says(t, "export --context west -n shop -l tier=front --wait 3m", "Service alias is left out: ", "serviceexport.multicluster.x-k8s.io/cart created", "serviceexport.multicluster.x-k8s.io/web created")
	s.awaitCount(t, "west", &mcsv1beta1.ServiceExportList{}, 2)
	s.stop["east"]()
	s.serve(t, "east", "slow", "10.1.0.3", 80)
	s.refused(t, "export --context east -n shop slow --wait 100ms", cli.ExitFailed, "slow: its agent has not reported a condition", "the ServiceExports are there, but not all are ready")
	s.startAgent("east")
	s.says(t, "export --context east -n shop slow --wait 3m", "slow: The service is exported to the clusterset.")
}

// printsExport: a dry run of the client prints exactly what would be applied, and sends no request that writes.
func (s *surveyed) printsExport(t *testing.T) {
	t.Helper()
	var out, errs bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errs}
	args := append(strings.Fields("export --context east -n shop web --dry-run=client -o yaml --kubeconfig"), s.kubeconfig)
	code := cli.Run(t.Context(), release, args, streams)
	const want = "---\n# In this cluster (dry run: nothing is changed)\n" +
		"apiVersion: multicluster.x-k8s.io/v1beta1\nkind: ServiceExport\nmetadata:\n  name: web\n  namespace: shop\n"
	if code != cli.ExitOK || out.String() != want || !strings.Contains(errs.String(), "serviceexport.multicluster.x-k8s.io/web created (dry run)\n") {
		t.Errorf("exit code %d\n%s\nand as an error is\n%s", code, &out, &errs)
	}
}

// completes fails the test unless the shell is offered exactly these lines for the last word of a command.
func (s *surveyed) completes(t *testing.T, command, want string) {
	t.Helper()
	var out bytes.Buffer
	verb, rest, _ := strings.Cut(command, " ")
	args := append([]string{"__complete", verb, "--kubeconfig", s.kubeconfig}, strings.Fields(rest)...)
	code := cli.Run(t.Context(), release, args, genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &bytes.Buffer{}})
	if code != cli.ExitOK || out.String() != want+":4\n" { // ShellCompDirectiveNoFileComp
		t.Errorf("%s: exit code %d\n%s", command, code, &out)
	}
}

func (s *surveyed) testUnexport(t *testing.T) {
	s.refused(t, "unexport --context west -n shop web wbe", cli.ExitFailed, "there is no ServiceExport wbe in namespace shop", "nothing has been changed")
	s.says(t, "unexport --context west -n shop -l tier=front --dry-run", "serviceexport.multicluster.x-k8s.io/web deleted from shop namespace (server dry run)")
	s.refused(t, "unexport --context west -n shop --all", cli.ExitFailed, "2 ServiceExports of namespace shop are deleted", "Continue? [y/N]", "nothing has been changed")
	s.says(t, "unexport --context west -n shop --all --yes", "serviceexport.multicluster.x-k8s.io/cart deleted from shop namespace\n", "serviceexport.multicluster.x-k8s.io/web deleted from shop namespace\n")
	s.says(t, "unexport --context west -n shop --all", "no ServiceExport of namespace shop is picked")
	s.awaitCount(t, "hub", &hubv1alpha1.PublishedServiceList{}, 0, client.InNamespace("member-west"))
}
