// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/cli"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

const dnsName = "tombolo-system/tombolo-dns"

// upgradeTo returns the command that upgrades east to a version.
func upgradeTo(version string) string {
	return "upgrade --context east --agent-image example/agent:" + version + " --dns-image example/dns:" + version
}

// TestUpgrade: what an upgrade writes is checked on the server before the first write, settings of the administrator stay, and what the
// version no longer has is deleted. No agent runs.
func TestUpgrade(t *testing.T) { //nolint:tparallel // its parts follow one another
	t.Parallel()
	w := start(t, "east")
	w.initHub(t, "hub")
	w.must(t, w.join("east", "--pod-cidrs 10.1.0.0/16 --check-from-inside=false --wait 0 --profile production --agent-image example/agent:v1 --dns-image example/dns:v1"))
	t.Run("conflicts", w.testUpgradeConflicts)
	t.Run("refusals", w.testUpgradeRefused)
	t.Run("write fails", w.testUpgradeStopped)
	t.Run("settings stay", w.testUpgradeKeepsSettings)
	t.Run("obsolete objects", w.testUpgradePrunes)
}

// installed returns the versions of the objects that an upgrade writes, by kind and name.
func (w *world) installed(t *testing.T) map[string]string {
	t.Helper()
	result := map[string]string{}
	for _, kind := range []string{
		"apiextensions.k8s.io/v1 CustomResourceDefinition", "apps/v1 Deployment", "policy/v1 PodDisruptionBudget", "v1 Service", "v1 ConfigMap", "v1 ServiceAccount",
		"rbac.authorization.k8s.io/v1 ClusterRole", "rbac.authorization.k8s.io/v1 Role", "networking.k8s.io/v1 NetworkPolicy",
	} {
		version, name, _ := strings.Cut(kind, " ")
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(version)
		list.SetKind(name + "List")
		lab.Must(t, w.client(t, "east").List(t.Context(), list))
		for _, o := range list.Items {
			if strings.Contains(o.GetName(), "tombolo") {
				// Not the version, which a controller changes.
				of := slices.DeleteFunc(o.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Manager != "kubectl-clusterset" })
				result[name+" "+o.GetName()] = fmt.Sprint(o.GetUID(), o.GetGeneration(), of)
			}
		}
	}
	return result
}

// testUpgradeConflicts: objects that another client has changed are listed, all at once, with values and managers, before anything is
// written; and so is what --force-conflicts overwrites.
func (w *world) testUpgradeConflicts(t *testing.T) {
	dns := w.deployment(t, "tombolo-dns")
	w.edit(t, "east", dns, func() { dns.Spec.Template.Spec.Containers[0].Image = "example/dns:patched" })
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "tombolo-system", Name: "tombolo-dns"}}
	w.get(t, "east", budget)
	w.edit(t, "east", budget, func() {
		budget.Spec.MaxUnavailable.IntVal = 7
	})
	before := w.installed(t)
	manager := filepath.Base(os.Args[0]) // this test
	image := `spec.template.spec.containers[name="coredns"].image of Deployment ` + dnsName + ` is "example/dns:patched", set by ` + manager
	unavailable := "spec.maxUnavailable of PodDisruptionBudget " + dnsName + " is 7, set by " + manager
	for _, dryRun := range []string{"", " --dry-run", " --dry-run=client"} {
		w.refused(t, upgradeTo("v2")+dryRun, cli.ExitFailed, "conflict: "+image+`; this command would set "example/dns:v2"`,
			"conflict: "+unavailable+"; this command would set 1", "overwrite all 2 values with --force-conflicts", "nothing has been changed")
	}
	lab.Equal(t, "what is installed after an upgrade with conflicts", before, w.installed(t))
	out := w.must(t, upgradeTo("v2")+" --force-conflicts")
	for _, want := range []string{"overwrites: " + image + `; it becomes "example/dns:v2"`, "overwrites: " + unavailable + "; it becomes 1"} {
		if !strings.Contains(out, want) {
			t.Errorf("--force-conflicts does not say %q:\n%s", want, out)
		}
	}
	w.hasImages(t, "after --force-conflicts", map[string]string{"tombolo-agent": "example/agent:v2", "tombolo-dns": "example/dns:v2"})
	w.unchanged(t, upgradeTo("v2"))
}

// refuse installs an admission policy of the cluster's administrator that the new Deployment of the DNS must fulfil, and waits until it is in
// effect: it refuses a label too.
func (w *world) refuse(t *testing.T, name, expression string) {
	t.Helper()
	rule := admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Update},
		Rule:       admissionv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
	}}
	w.create(t, "east",
		&admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{rule}},
			Variables:        []admissionv1.Variable{{Name: "image", Expression: "object.spec.template.spec.containers[0].image"}},
			Validations: []admissionv1.Validation{
				{Expression: "object.metadata.name != 'tombolo-dns' || " + expression, Message: "only signed images"},
				{Expression: "!('probe' in object.metadata.labels)", Message: "it is in effect"},
			},
		}},
		&admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		}})
	lab.Eventually(t, waitLimit, func(ctx context.Context) error {
		dns := w.deployment(t, "tombolo-dns")
		dns.Labels["probe"] = name
		if err := w.client(t, "east").Update(ctx, dns, client.DryRunAll); err == nil || !strings.Contains(err.Error(), name) {
			return fmt.Errorf("the policy is not in effect: %w", err)
		}
		return nil
	})
	t.Cleanup(func() {
		binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
		lab.Must(t, client.IgnoreNotFound(w.client(t, "east").Delete(context.WithoutCancel(t.Context()), binding)))
	})
}

// testUpgradeRefused: an object that the server would refuse stops the upgrade before anything is written.
func (w *world) testUpgradeRefused(t *testing.T) {
	w.refuse(t, "unsigned", "variables.image != 'example/dns:v3'")
	before := w.installed(t)
	for _, dryRun := range []string{"", " --dry-run"} {
		w.refused(t, upgradeTo("v3")+dryRun, cli.ExitFailed, "the API server would refuse Deployment "+dnsName, "only signed images", "nothing has been changed")
	}
	lab.Equal(t, "what is installed after an upgrade that was refused", before, w.installed(t))
}

// testUpgradeStopped: if a write fails that the server has accepted in a dry run, the message says what was not written, and the same command
// finishes the upgrade.
func (w *world) testUpgradeStopped(t *testing.T) {
	dns := w.deployment(t, "tombolo-dns")
	w.refuse(t, "later", "request.dryRun || variables.image != 'example/dns:v4'")
	out, code := w.run(t, upgradeTo("v4"))
	for _, want := range []string{
		"deployment.apps/tombolo-agent configured\n", "apply Deployment " + dnsName, "only signed images", "writes have been made, and are listed above. Not made: Deployment " + dnsName,
		"PodDisruptionBudget " + dnsName, "run the same command again: it is safe",
	} {
		if code != cli.ExitFailed || !strings.Contains(out, want) {
			t.Errorf("exit code %d, and no %q:\n%s", code, want, out)
		}
	}
	lab.Equal(t, "the DNS", dns.Spec, w.deployment(t, "tombolo-dns").Spec)
	lab.Must(t, w.client(t, "east").Delete(t.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "later"}}))
	lab.Eventually(t, waitLimit, func(context.Context) error {
		if out, code := w.run(t, upgradeTo("v4")); code != cli.ExitOK {
			return errors.New(out)
		}
		return nil
	})
	w.hasImages(t, "after the second upgrade", map[string]string{"tombolo-agent": "example/agent:v4", "tombolo-dns": "example/dns:v4"})
}

// testUpgradeKeepsSettings: what an administrator has set stays and is named, with and without --force-conflicts.
func (w *world) testUpgradeKeepsSettings(t *testing.T) {
	agent := w.deployment(t, "tombolo-agent")
	scaled := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":5}}`))
	lab.Must(t, w.client(t, "east").SubResource("scale").Patch(t.Context(), agent, scaled, client.FieldOwner("kubectl")))
	more := resource.MustParse("3Gi")
	limited := &unstructured.Unstructured{}
	lab.Must(t, limited.UnmarshalJSON([]byte(`{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "tombolo-system", "name": "tombolo-agent"}, "spec": {"template": {"spec": {
		"priorityClassName": "system-cluster-critical", "nodeSelector": {"pool": "infra"}, "tolerations": [{"key": "infra", "operator": "Exists"}],
		"containers": [{"name": "agent", "resources": {"limits": {"memory": "3Gi"}}}]}}}}`)))
	lab.Must(t, w.client(t, "east").Apply(t.Context(), client.ApplyConfigurationFromUnstructured(limited), client.FieldOwner("argocd"), client.ForceOwnership))
	want := w.deployment(t, "tombolo-agent").Spec
	for _, command := range []string{upgradeTo("v5"), upgradeTo("v5") + " --force-conflicts", upgradeTo("v6")} {
		out := w.must(t, command)
		for _, named := range []string{
			"kept: spec.replicas of Deployment tombolo-system/tombolo-agent is 5, set by kubectl (this version has 2)",
			`kept: spec.template.spec.containers[name="agent"].resources.limits.memory of Deployment tombolo-system/tombolo-agent is "3Gi", set by argocd (this version has `,
		} {
			if !strings.Contains(out, named) {
				t.Errorf("$ %s\ndoes not say %q:\n%s", command, named, out)
			}
		}
		got := w.deployment(t, "tombolo-agent").Spec
		lab.Equal(t, command+": replicas", want.Replicas, got.Replicas)
		pod := got.Template.Spec
		lab.Equal(t, command+": scheduling", []any{want.Template.Spec.NodeSelector, want.Template.Spec.Tolerations, want.Template.Spec.PriorityClassName}, []any{pod.NodeSelector, pod.Tolerations, pod.PriorityClassName})
		lab.Equal(t, command+": resources", want.Template.Spec.Containers[0].Resources, pod.Containers[0].Resources)
		if !pod.Containers[0].Resources.Limits.Memory().Equal(more) {
			t.Errorf("$ %s\nlimits %v", command, pod.Containers[0].Resources)
		}
	}
	w.hasImages(t, "beside the settings", map[string]string{"tombolo-agent": "example/agent:v6"})
}

// testUpgradePrunes: an upgrade deletes what an earlier version of the command has installed and this one has not; it deletes nothing else.
func (w *world) testUpgradePrunes(t *testing.T) {
	labels := map[string]string{"app.kubernetes.io/part-of": "tombolo"}
	in := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "tombolo-system", Name: name, Labels: labels}
	}
	role := func(name string) *rbacv1.ClusterRole {
		return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	}
	elsewhere := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "elsewhere", Labels: labels}}
	obsolete := []client.Object{&corev1.ResourceQuota{ObjectMeta: in("obsolete")}, role("obsolete"), &corev1.ConfigMap{ObjectMeta: in("obsolete")}}
	unlabelled := role("unlabelled")
	unlabelled.Labels = nil
	ofCommand := []client.Object{&corev1.Secret{ObjectMeta: in("credentials")}, &corev1.PersistentVolumeClaim{ObjectMeta: in("volume")}, elsewhere, unlabelled, &corev1.ConfigMap{ObjectMeta: in("edited")}}
	ofUser := []client.Object{&corev1.ConfigMap{ObjectMeta: in("user")}, role("user")}
	east := w.client(t, "east")
	apply := func(object client.Object, owner string) {
		t.Helper()
		gvk, err := east.GroupVersionKindFor(object)
		lab.Must(t, err)
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(gvk)
		u.SetNamespace(object.GetNamespace())
		u.SetName(object.GetName())
		u.SetLabels(object.GetLabels())
		if gvk.Kind == "PersistentVolumeClaim" {
			u.Object["spec"] = map[string]any{"accessModes": []any{"ReadWriteOnce"}, "resources": map[string]any{"requests": map[string]any{"storage": "1"}}}
		}
		lab.Must(t, east.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(owner)))
	}
	for _, object := range append(obsolete, ofCommand...) {
		apply(object, "kubectl-clusterset")
	}
	for _, object := range ofUser {
		apply(object, "kubectl")
	}
	edited := &corev1.ConfigMap{ObjectMeta: in("edited")}
	w.edit(t, "east", edited, func() { edited.Data = map[string]string{"a": "b"} })
	exist := func(objects ...client.Object) (names []string) {
		t.Helper()
		for _, object := range objects {
			if err := east.Get(t.Context(), client.ObjectKeyFromObject(object), object.DeepCopyObject().(client.Object)); err == nil {
				names = append(names, object.GetName())
			} else if !meta.IsNoMatchError(err) && client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
		}
		return names
	}
	others := slices.Concat(ofCommand, ofUser)
	all := exist(others...)
	before := w.installed(t)
	out := w.must(t, upgradeTo("v6")+" --dry-run")
	for _, want := range []string{
		"resourcequota/obsolete deleted from tombolo-system namespace (server dry run)\n", "clusterrole.rbac.authorization.k8s.io/obsolete deleted (server dry run)\n",
		"configmap/obsolete deleted from tombolo-system namespace (server dry run)\n", "ConfigMap tombolo-system/edited is of an earlier version, and stays because another client has changed it",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the dry run does not say %q:\n%s", want, out)
		}
	}
	lab.Equal(t, "obsolete objects after a dry run", []string{"obsolete", "obsolete", "obsolete"}, exist(obsolete...))
	lab.Equal(t, "what is installed after a dry run", before, w.installed(t))
	w.must(t, upgradeTo("v6"))
	lab.Equal(t, "obsolete objects", []string(nil), exist(obsolete...))
	lab.Equal(t, "all other objects", all, exist(others...))
	if len(w.installed(t)) < len(before) {
		t.Errorf("an object of this version was deleted: %d of %d are left", len(w.installed(t)), len(before))
	}
	w.get(t, "east", &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "tombolo-system", Name: "tombolo-dns"}})
	if out := w.unchanged(t, upgradeTo("v6")); strings.Contains(out, " deleted") {
		t.Errorf("a second upgrade deletes more:\n%s", out)
	}
}
