// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/cli"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	framework "github.com/tombolo-mcs/tombolo/e2e/framework/world"
)

// by runs "kubectl clusterset" of a version.
func (w *world) by(t *testing.T, version, command string, code int, texts ...string) {
	t.Helper()
	present := w.build
	w.build = cli.Build{Version: version, Registry: release.Registry}
	defer func() { w.build = present }()
	w.refused(t, command, code, texts...)
}

// definition returns a CustomResourceDefinition, and the fields of the specification of its kind.
func (w *world) definition(t *testing.T, cluster, name string) (*unstructured.Unstructured, map[string]any) {
	t.Helper()
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	crd.SetName(name)
	w.get(t, cluster, crd)
	return crd, fieldsIn(t, crd)
}

// fieldsIn returns the fields of the specification of a kind in its definition, which can be changed.
func fieldsIn(t *testing.T, crd *unstructured.Unstructured) map[string]any {
	t.Helper()
	versions, _, err := unstructured.NestedFieldNoCopy(crd.Object, "spec", "versions")
	lab.Must(t, err)
	fields, _, err := unstructured.NestedFieldNoCopy(versions.([]any)[0].(map[string]any), "schema", "openAPIV3Schema", "properties", "spec", "properties")
	lab.Must(t, err)
	return fields.(map[string]any)
}

// grow adds a field to the specification of a kind, as a later version does.
func (w *world) grow(t *testing.T, cluster, definition string) {
	t.Helper()
	crd, _ := w.definition(t, cluster, definition)
	w.edit(t, cluster, crd, func() { fieldsIn(t, crd)["later"] = map[string]any{"type": "string", "maxLength": int64(10)} })
}

// isGrown reports whether a kind has the field of a later version.
func (w *world) isGrown(t *testing.T, cluster, definition string) bool {
	t.Helper()
	_, fields := w.definition(t, cluster, definition)
	return fields["later"] != nil
}

// TestVersions: no member becomes newer than its hub, and no hub is downgraded by mistake. A rollback is possible: first the members, then the hub.
func TestVersions(t *testing.T) {
	t.Parallel()
	w := start(t, "east")
	const members, grants = "members.hub.tombolo-mcs.io", "serviceexportgrants.policy.tombolo-mcs.io"
	const upgrade, images = "upgrade --context east", " --agent-image example.com/tombolo/tombolo-agent:v1.1.0 --dns-image example.com/tombolo/tombolo-dns:v1.1.0"
	w.by(t, "v1.1.0", "init-hub --context hub", cli.ExitOK)
	lab.Must(t, w.Cluster("hub").RestartControllers(t.Context())) // as initHub does
	join := w.join("east", "--pod-cidrs 10.1.0.0/16 --check-from-inside=false --wait 0"+images)
	w.by(t, "v1.2.0", join, cli.ExitFailed, "this command is of version v1.2.0 and the hub of version v1.1.0: no member may be newer than its hub", "nothing has been changed")
	w.by(t, "v1.1.0", join, cli.ExitOK, "the version of the hub is v1.1.0, and the version of this command v1.1.0")
	before := w.installed(t)
	for _, from := range []string{"", " --hub-context hub"} {
		w.by(t, "v1.2.0", upgrade+from, cli.ExitFailed, "this command is of version v1.2.0 and the hub of version v1.1.0", "kubectl clusterset init-hub", "nothing has been changed")
	}
	lab.Equal(t, "what is installed after an upgrade that was refused", before, w.installed(t))
	w.by(t, "v1.2.0", join, cli.ExitOK) // a member joins again: it keeps its version

	beat := framework.Heartbeat("east")
	beat.Spec.AgentVersion = "v1.2.0"
	w.create(t, "hub", beat)
	w.by(t, "v1.1.0", "status --context east --hub-context hub", cli.ExitOK, "MemberNewer east: Its agent is of version v1.2.0 and the hub of version v1.1.0", " of version v1.1.0\n")

	w.grow(t, "hub", members)
	w.grow(t, "east", grants)
	w.by(t, "v1.1.0", "init-hub --context hub", cli.ExitFailed, "takes away Member.spec.later", "nothing has been changed")
	w.by(t, "v1.0.0", "init-hub --context hub", cli.ExitFailed, "this command (v1.0.0) is older than the hub (v1.1.0)", "takes away Member.spec.later", "first roll back all members", "nothing has been changed")
	// The rollback.
	w.by(t, "v1.0.0", upgrade, cli.ExitOK, "this is a rollback of the agent from v1.1.0 to v1.0.0", grants+" stays as it is: it is newer than this command, and has ServiceExportGrant.spec.later")
	w.hasImages(t, "after a rollback", map[string]string{"tombolo-agent": "example.com/tombolo/tombolo-agent:v1.0.0"})
	if !w.isGrown(t, "east", grants) || !w.isGrown(t, "hub", members) {
		t.Error("a field of a newer version was taken away")
	}
	w.by(t, "v1.0.0", "init-hub --context hub --allow-downgrade --force-conflicts", cli.ExitOK, "the hub is downgraded from version v1.1.0 to v1.0.0, which takes away Member.spec.later")
	if w.isGrown(t, "hub", members) {
		t.Error("the kinds of the hub are still the newer ones")
	}
	w.by(t, "v1.1.0", upgrade, cli.ExitFailed, "the hub of version v1.0.0")

	// Hubs of versions that do not say which they are.
	crd, _ := w.definition(t, "hub", members)
	w.edit(t, "hub", crd, func() {
		unstructured.RemoveNestedField(crd.Object, "metadata", "annotations", "tombolo-mcs.io/version")
	})
	w.by(t, "v1.1.0", upgrade, cli.ExitOK, "the hub does not have its version")
	reads := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "tombolo-hub-read"}}
	w.edit(t, "hub", reads, func() {
		reads.Rules = slices.DeleteFunc(reads.Rules, func(r rbacv1.PolicyRule) bool { return strings.HasPrefix(r.APIGroups[0], "apiextensions") })
	})
	w.by(t, "v1.1.0", upgrade, cli.ExitOK, "the version of the hub is not known (the hub does not let this client read it)")
	w.by(t, "v1.1.0", "init-hub --context hub --force-conflicts", cli.ExitOK, "the version of the hub is unknown, and the version of this command v1.1.0: no kind is downgraded")
	w.by(t, "v1.1.0", upgrade, cli.ExitOK, "the version of the hub is v1.1.0, and the version of this command v1.1.0")

	// Without a kind of rules, which upgrade installs.
	const status = "status --context east --hub-context hub"
	crd, _ = w.definition(t, "east", grants)
	lab.TouchDeletedCRDs(t, w.client(t, "east"))
	lab.Must(t, w.client(t, "east").Delete(t.Context(), crd))
	lab.Holds(t, waitLimit, "problem with rules", func() bool {
		out, _ := w.run(t, status)
		return strings.Contains(out, "ERROR RulesMissing east: Its API server does not serve ServiceExportGrant")
	})
	w.by(t, "v1.1.0", upgrade, cli.ExitOK, "customresourcedefinition.apiextensions.k8s.io/"+grants+" created\n")
	if out, _ := w.run(t, status); strings.Contains(out, "RulesMissing") {
		t.Errorf("after an upgrade:\n%s", out)
	}
}
