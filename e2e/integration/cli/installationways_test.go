// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	framework "github.com/tombolo-mcs/tombolo/e2e/framework/world"
	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// installations installs and uninstalls in the cluster east with the commands of docs/install.md.
type installations struct {
	*world
	shell  *documentShell
	before []*membership.Snapshot
	port   int32 // the latest of the exported Service
}

// documentShell runs commands of docs/install.md, each with its own bash.
type documentShell struct {
	folder      string
	environment []string
	sections    map[string][]string // the blocks of commands, by the title of their section
}

var (
	sectionTitle = regexp.MustCompile(`(?m)^## (.*)$`)
	commandBlock = regexp.MustCompile("(?ms)^ *```([a-z]*)\n(.*?)^ *```$") //nolint:gocritic // the second ^ is the beginning of a line, too
)

// document returns a shell in a copy of the manifests and the charts. The blocks of the document are for east.
func (w *world) document(t *testing.T) *documentShell {
	t.Helper()
	folder, bin := t.TempDir(), t.TempDir()
	for _, name := range []string{"manifests", "charts"} {
		lab.Must(t, os.CopyFS(filepath.Join(folder, name), os.DirFS("../../../"+name)))
	}
	_, err := build(bin, "kubectl-clusterset")
	lab.Must(t, err)
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	for _, program := range []string{"kubectl", "helm"} {
		if _, err := os.Stat(filepath.Join(assets, program)); err != nil {
			t.Fatalf("this needs %s: run make assets kubectl bin/helm (%v)", program, err)
		}
	}
	text, err := os.ReadFile("../../../docs/install.md")
	lab.Must(t, err)
	s := &documentShell{folder: folder, sections: map[string][]string{}, environment: append(os.Environ(),
		"PATH="+bin+":"+assets+":"+os.Getenv("PATH"), "KUBECONFIG="+w.kubeconfig, "HOME="+folder, "HUB_URL="+w.Cluster("hub").Config().Host,
		"REGISTRY=example.com/tombolo", "TAG=v1")}
	titles := sectionTitle.FindAllSubmatchIndex(text, -1)
	for n, title := range titles {
		end := len(text)
		if n+1 < len(titles) {
			end = titles[n+1][0]
		}
		for _, block := range commandBlock.FindAllSubmatch(text[title[1]:end], -1) {
			if name, mark := string(text[title[2]:title[3]]), string(block[1]); mark == "sh" || mark == "" {
				s.sections[name] = append(s.sections[name], strings.ReplaceAll(string(block[2]), "west", "east"))
			}
		}
	}
	return s
}

// block returns the block of a section that contains a text.
func (s *documentShell) block(t *testing.T, section, text string) string {
	t.Helper()
	for _, block := range s.sections[section] {
		if strings.Contains(block, text) {
			return block
		}
	}
	t.Fatalf("docs/install.md has no block with %q in the section %q", text, section)
	return ""
}

// bash runs commands and returns what they print.
func (i *installations) bash(t *testing.T, commands string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-euxo", "pipefail", "-c", commands)
	cmd.Dir, cmd.Env = i.shell.folder, i.shell.environment
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// sh is bash, which must succeed.
func (i *installations) sh(t *testing.T, commands string) {
	t.Helper()
	if out, err := i.bash(t, commands); err != nil {
		t.Fatalf("$ %s\n%s%v", commands, out, err)
	}
}

// byKustomizeAlone is the section about kustomize. joinEast is the command that joins east with the same ranges, and eastImages are its images.
const (
	byKustomizeAlone = "By kustomize alone"
	joinEast         = `kubectl clusterset join --context east --hub-context hub --cluster-id east --hub-server "$HUB_URL" \
	--pod-cidrs 10.2.0.0/16 --node-cidrs 192.0.2.0/24`
	eastImages = " --agent-image $REGISTRY/tombolo-agent:$TAG --dns-image $REGISTRY/tombolo-dns:$TAG"
)

// install installs a member by a way over what another one has left.
func (i *installations) install(t *testing.T, c cell) {
	t.Helper()
	switch c.to {
	case byCommand: // over another installation, it renews the credentials only
		out, err := i.bash(t, joinEast+eastImages)
		if err != nil && (c.ending != running || !strings.Contains(out, "decides what runs in this cluster")) {
			t.Fatalf("$ %s\n%s%v", joinEast+eastImages, out, err)
		}
		if err != nil {
			i.sh(t, joinEast)
		}
	case byKustomize:
		for _, text := range []string{"out/east/member.yaml", "kind: ClusterProperty", "out/east-runs"} {
			i.sh(t, i.shell.block(t, byKustomizeAlone, text))
		}
		i.sh(t, strings.ReplaceAll(i.shell.block(t, "Over another installation", "owner=helm"), "kubectl ", "kubectl --context east "))
	case byHelm:
		i.sh(t, i.shell.block(t, byKustomizeAlone, "out/east/member.yaml"))
		i.installChart(t, c, "east", i.shell.block(t, "By Helm", "charts/tombolo "), desired(t))
		_, runs, _ := strings.Cut(i.shell.block(t, byKustomizeAlone, "out/east-runs"), "cd out/east\n")
		i.sh(t, "cd out/east\n"+runs)
		out, err := i.bash(t, "kubectl clusterset upgrade --context east")
		if err == nil || !strings.Contains(out, "Helm (release tombolo) has installed the agent") {
			t.Errorf("upgrade does not leave an agent to Helm: %v\n%s", err, out)
		}
	}
}

// installChart runs the command that installs a chart. It needs no more flags on what is uninstalled. Over another installation, or over its
// objects outside of a namespace that was deleted, Helm must change nothing without them.
func (i *installations) installChart(t *testing.T, c cell, cluster, command string, objects []*unstructured.Unstructured) {
	t.Helper()
	existing := i.versions(t, cluster, objects)
	out, err := i.bash(t, command)
	if err == nil {
		if (c.ending == running || c.ending == namespaceDeleted) && !strings.Contains(fmt.Sprint(existing), "meta.helm.sh/release-name") {
			t.Errorf("$ %s\n%shas taken over objects of another owner", command, out)
		}
		return
	}
	isRefusal := strings.Contains(out, "cannot be imported into the current release")
	if c.from == byHelm || c.ending != running && c.ending != namespaceDeleted || !isRefusal {
		t.Fatalf("$ %s\n%s%v", command, out, err)
	}
	lab.Equal(t, "what Helm has refused", existing, i.versions(t, cluster, objects))
	i.sh(t, strings.Replace(command, "upgrade --install", "upgrade --install --take-ownership --force-conflicts", 1))
}

// installHub installs a hub by a way over what another one has left.
func (i *installations) installHub(t *testing.T, c cell) {
	t.Helper()
	switch c.to {
	case byCommand: // over another installation, which does not restrict audiences, it says what to add
		command := i.shell.block(t, "By the command", "init-hub")
		out, err := i.bash(t, command)
		if err != nil && (c.from == byCommand || c.ending != running || !strings.Contains(out, `spec.variables[name="audiences"]`)) {
			t.Fatalf("$ %s\n%s%v", command, out, err)
		}
		if err != nil {
			i.sh(t, strings.TrimSpace(command)+" --force-conflicts")
		}
	case byKustomize:
		i.sh(t, i.shell.block(t, byKustomizeAlone, "apply -k manifests/hub"))
	case byHelm:
		i.installChart(t, c, "hub", i.shell.block(t, "By Helm", "charts/tombolo-hub"), desiredHub(t))
	}
}

// end ends an installation.
func (i *installations) end(t *testing.T, by way, how ending) {
	t.Helper()
	switch how {
	case running:
	case left:
		i.sh(t, "kubectl clusterset leave --context east --hub-context hub --yes")
	case leftWithoutHub:
		i.sh(t, "kubectl clusterset leave --from member --context east --yes")
	case namespaceDeleted:
		i.sh(t, "kubectl --context east delete namespace tombolo-system --timeout=2m")
	case uninstalled:
		if by == byHelm {
			i.sh(t, "helm --kube-context east uninstall tombolo --namespace tombolo-system")
			return
		}
		i.sh(t, "kubectl --context east delete -k out/east-runs --timeout=2m")
	}
}

// desired returns the objects of an installation.
func desired(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	definitions, err := manifests.MemberDefinitions()
	lab.Must(t, err)
	objects, err := manifests.Install(manifests.InstallOptions{
		Parts: manifests.Quickstart, AgentImage: "example.com/tombolo/tombolo-agent:v1", DNSImage: "example.com/tombolo/tombolo-dns:v1",
	})
	lab.Must(t, err)
	return append(definitions, objects...)
}

// desiredHub returns the objects of a hub, without the policy that has its audiences.
func desiredHub(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	objects, err := manifests.Hub()
	lab.Must(t, err)
	return slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == "ValidatingAdmissionPolicy" && o.GetName() == "tokens.hub.tombolo-mcs.io"
	})
}

// versions returns what identifies the existing objects of an installation, by their names.
func (i *installations) versions(t *testing.T, cluster string, objects []*unstructured.Unstructured) map[string]string {
	t.Helper()
	versions := map[string]string{}
	for _, o := range objects {
		o = o.DeepCopy()
		if err := i.client(t, cluster).Get(t.Context(), client.ObjectKeyFromObject(o), o); err == nil {
			versions[o.GetKind()+" "+o.GetName()] = fmt.Sprint(o.GetUID(), o.GetGeneration(), o.GetLabels(), o.GetAnnotations())
		}
	}
	return versions
}

// exported is a Service that users export, and that all installations publish.
var exported = framework.Key{Namespace: "default", Name: "web"}

// works returns when all objects are there and up to date, the agent has renewed its heartbeat, and a change of an export, which differs
// in each cell, has reached the hub.
func (i *installations) works(t *testing.T) {
	t.Helper()
	for _, o := range desired(t) {
		i.isUpToDate(t, "east", o)
	}
	lab.Must(t, client.IgnoreAlreadyExists(i.client(t, "east").Create(t.Context(), framework.Export(exported))))
	hub := i.client(t, "hub")
	beat := &hubv1alpha1.Heartbeat{}
	key := client.ObjectKey{Namespace: "member-east", Name: hubv1alpha1.HeartbeatName}
	lab.Must(t, client.IgnoreNotFound(hub.Get(t.Context(), key, beat)))
	before := beat.ResourceVersion
	i.port = max(i.port, 9000) + 1
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: exported.Namespace, Name: exported.Name}}
	i.edit(t, "east", service, func() { service.Spec.Ports[0].Port = i.port })
	lab.Eventually(t, waitLimit, func(ctx context.Context) error {
		if err := hub.Get(ctx, key, beat); err != nil || beat.ResourceVersion == before {
			return errors.Join(err, errors.New("the agent does not renew its heartbeat"))
		}
		records := &hubv1alpha1.PublishedServiceList{}
		if err := hub.List(ctx, records, client.InNamespace(key.Namespace)); err != nil {
			return err
		}
		if n := len(records.Items); n != 1 || len(records.Items[0].Spec.Ports) != 1 || records.Items[0].Spec.Ports[0].Port != i.port {
			return fmt.Errorf("port %d is not published: %d records", i.port, n)
		}
		return nil
	})
}

// isUpToDate fails the test unless an object exists as it is desired. Arguments differ by the way of installing.
func (i *installations) isUpToDate(t *testing.T, cluster string, o *unstructured.Unstructured) {
	t.Helper()
	c, name := i.client(t, cluster), o.GetKind()+" "+o.GetName()
	existing := o.DeepCopy()
	lab.Must(t, c.Get(t.Context(), client.ObjectKeyFromObject(o), existing))
	if existing.GetDeletionTimestamp() != nil {
		t.Fatalf("%s is being deleted", name)
	}
	switch o.GetKind() {
	case "Namespace": // Helm creates it without labels
		return
	case "Deployment":
		containers, _, err := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
		lab.Must(t, err)
		delete(containers[0].(map[string]any), "args")
		lab.Must(t, unstructured.SetNestedSlice(o.Object, containers, "spec", "template", "spec", "containers"))
	}
	err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("test"), client.ForceOwnership, client.DryRunAll)
	lab.Must(t, err)
	for _, of := range []*unstructured.Unstructured{existing, o} {
		of.SetManagedFields(nil)
		of.SetResourceVersion("")
		of.SetGeneration(0)
		delete(of.Object, "status")
	}
	if diff := cmp.Diff(o.Object, existing.Object); diff != "" {
		t.Errorf("%s is not up to date (-desired +existing):\n%s", name, diff)
	}
}
