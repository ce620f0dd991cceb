// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install_test installs Tombolo as its users do: with kubectl and the kustomizations of manifests.
package install_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
)

// TestKustomizations: each kustomization that is meant for users can be applied and applied again without a change, its
// pods fit the restricted Pod Security level, and deleting it, and deleting it again, leaves nothing behind.
func TestKustomizations(t *testing.T) {
	t.Parallel()
	l := lab.Start(t, lab.ClusterOptions{Name: "a", Controllers: lab.DefaultControllers()})
	cluster := l.Cluster("a")
	run := kubectl(t, cluster)
	cl, err := cluster.Client(nil)
	lab.Must(t, err)
	lab.TouchDeletedCRDs(t, cl)
	before := membership.Traces(t, cluster)
	for _, names := range [][]string{
		{"overlays/production"},
		{"overlays/dns-only"},
		{"overlays/managed-member"},
		{"agent", "gateway"},
		{"dns/corefile"},
		{"hub", "overlays/example-member"},
		{"hub", "overlays/managed"},
	} {
		for _, name := range names { // a member needs the hub
			applyTwice(t, run, pathOf(t, name))
			if name == "hub" {
				run("wait", "--for=condition=Established", "crd/members.hub.tombolo-mcs.io", "--timeout=3m")
			}
		}
		admitPods(t, cluster)
		for _, name := range slices.Backward(names) {
			run("delete", "-k", pathOf(t, name), "--timeout=1m")
			run("delete", "-k", pathOf(t, name), "--timeout=1m", "--ignore-not-found")
		}
		lab.Equal(t, fmt.Sprintf("%v, deleted, leave something behind", names), before, membership.Traces(t, cluster))
	}
}

// kustomizations returns all that can be applied as they are: components cannot, nor what has yet to be put into a namespace,
// nor monitoring, whose kinds are the Prometheus Operator's (tools/monitoring decodes those strictly).
func kustomizations(t *testing.T) []string {
	t.Helper()
	root := pathOf(t, ".")
	var names []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "kustomization.yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if bytes.Contains(text, []byte("kind: Component")) || bytes.Contains(text, []byte("namespace: member-CLUSTERID")) {
			return nil
		}
		name, err := filepath.Rel(root, filepath.Dir(path))
		if name != "agent/workload" && !strings.HasPrefix(name, "monitoring") { // the former has no namespace either
			names = append(names, name)
		}
		return err
	})
	lab.Must(t, err)
	return names
}

func pathOf(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "..", "manifests", name))
	lab.Must(t, err)
	return path
}

// applyTwice applies the kustomization of a folder, and again, which changes nothing.
func applyTwice(t *testing.T, run func(...string) string, path string) {
	t.Helper()
	run("apply", "-k", path)
	applied := specs(run, path)
	run("apply", "-k", path)
	lab.Equal(t, fmt.Sprintf("%s, applied again, changes", path), applied, specs(run, path))
}

// specs returns the generation of each object of a kustomization that has one.
func specs(run func(...string) string, path string) string {
	return run("get", "-k", path, "-o", `jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.uid} {.metadata.generation}{"\n"}{end}`)
}

// admitPods has the API server admit a pod of each Deployment of ours, as its controller would create it: again and again
// where a quota has not been counted yet.
func admitPods(t *testing.T, cluster *lab.Cluster) {
	t.Helper()
	c, err := cluster.Client(nil)
	lab.Must(t, err)
	deployments := &appsv1.DeploymentList{}
	lab.Must(t, c.List(t.Context(), deployments))
	for _, d := range deployments.Items {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name, Labels: d.Spec.Template.Labels},
			Spec:       d.Spec.Template.Spec,
		}
		lab.Eventually(t, time.Minute, func(ctx context.Context) error {
			if err := c.Create(ctx, pod.DeepCopy(), client.DryRunAll); err != nil {
				return fmt.Errorf("a pod of %s is not admitted: %w", d.Name, err)
			}
			return nil
		})
	}
}

// kubectl returns a function that runs kubectl as an administrator of the cluster and returns what it prints.
func kubectl(t *testing.T, cluster *lab.Cluster) func(args ...string) string {
	t.Helper()
	program := filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl")
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("this needs kubectl: run make assets kubectl (%v)", err)
	}
	return func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, append([]string{"--kubeconfig", cluster.Kubeconfig()}, args...)...)
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); err != nil {
			t.Fatalf("$ kubectl %s\n%s%s%v", strings.Join(args, " "), out.String(), errs.String(), err)
		}
		return out.String()
	}
}

// exampleRow matches the name of an example in the table of examples/README.md.
var exampleRow = regexp.MustCompile("(?m)^\\| `([^`]+)` ")

// TestExamples: the table of examples/README.md lists each kustomization of examples. An API server takes them, where the kinds and the
// namespaces exist, and takes them again without a change.
func TestExamples(t *testing.T) {
	t.Parallel()
	run := kubectl(t, lab.Start(t, lab.Member("a")).Cluster("a"))
	for _, name := range []string{"crd/mcs", "crd/policy", "hub"} {
		run("apply", "-k", pathOf(t, name))
	}
	run("wait", "--for=condition=Established", "crd", "--all", "--timeout=3m")
	for _, namespace := range []string{"shop", "bank", "customers"} { // those of the user
		run("create", "namespace", namespace)
	}
	root := pathOf(t, "../examples")
	var examples []string
	lab.Must(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "kustomization.yaml" {
			return err
		}
		name, err := filepath.Rel(root, filepath.Dir(path))
		examples = append(examples, name)
		return err
	}))
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	lab.Must(t, err)
	var listed []string
	for _, row := range exampleRow.FindAllStringSubmatch(string(readme), -1) {
		listed = append(listed, row[1])
	}
	slices.Sort(listed)
	lab.Equal(t, "the table of examples/README.md differs from the folders", examples, listed)
	for _, name := range examples {
		applyTwice(t, run, filepath.Join(root, name))
	}
	takesDocuments(t, run)
}

// yamlBlock matches a block of YAML of a document.
var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// takesDocuments: an API server takes the NetworkPolicies and the kustomizations that documents show.
func takesDocuments(t *testing.T, run func(...string) string) {
	t.Helper()
	out := pathOf(t, "../out") // the kustomizations name those of manifests by relative paths
	lab.Must(t, os.MkdirAll(out, 0o755))
	taken := map[string]int{}
	for _, document := range []string{"networks.md", "operations.md"} {
		text, err := os.ReadFile(pathOf(t, "../docs/"+document))
		lab.Must(t, err)
		for _, block := range yamlBlock.FindAllSubmatch(text, -1) {
			folder, err := os.MkdirTemp(out, "document-")
			lab.Must(t, err)
			t.Cleanup(func() { os.RemoveAll(folder) })
			file := filepath.Join(folder, "kustomization.yaml")
			lab.Must(t, os.WriteFile(file, block[1], 0o600))
			switch { // other blocks are parts of objects
			case bytes.Contains(block[1], []byte("kind: Kustomization")):
				run("apply", "--dry-run=server", "-k", folder)
				taken["Kustomization"]++
			case bytes.Contains(block[1], []byte("kind: NetworkPolicy")):
				run("apply", "--dry-run=server", "-f", file)
				taken["NetworkPolicy"]++
			}
		}
	}
	lab.Equal(t, "the objects of documents are not those that are expected", map[string]int{"NetworkPolicy": 2, "Kustomization": 2}, taken)
}
