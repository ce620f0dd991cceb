// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"bytes"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// TestSpelling: an API server stores each value of each rendering (the kustomizations, the charts, and what the command applies) as it was
// sent. A value that is stored in another spelling ("1000" as 1k, a default within a list) differs from what its owner sends: the next field
// manager that applies the same object gets a conflict. So two managers, one after the other, can apply each rendering without force.
//
//nolint:tparallel // the renderings share objects: one after the other
func TestSpelling(t *testing.T) {
	t.Parallel()
	cluster := lab.Start(t, lab.Member("a")).Cluster("a")
	run := kubectl(t, cluster)
	renderings := rendered(t)
	for _, name := range kustomizations(t) {
		renderings["manifests/"+name] = []string{"-k", pathOf(t, name)}
	}
	if len(renderings) < 20 {
		t.Errorf("there are %d renderings only: %v", len(renderings), slices.Sorted(maps.Keys(renderings)))
	}
	run("apply", "-k", pathOf(t, "hub"))                                                      // which knows what a Member is
	for _, namespace := range []string{"tombolo-system", "member-cluster-a", "member-east"} { // of the renderings that have no Namespace
		run("create", "namespace", namespace)
	}
	run("apply", "-k", pathOf(t, "crd"))
	run("wait", "--for=condition=Established", "crd", "--all", "--timeout=3m")
	for _, name := range slices.Sorted(maps.Keys(renderings)) {
		t.Run(name, func(t *testing.T) {
			run, apply := kubectl(t, cluster), append([]string{"apply", "--server-side"}, renderings[name]...)
			run(slices.Concat(apply, []string{"--field-manager=first", "--force-conflicts"})...) // other renderings have the same objects with other values
			run(slices.Concat(apply, []string{"--field-manager=second"})...)
		})
	}
}

// rendered returns the arguments of "kubectl apply" for the objects that the command applies and for those of the charts.
func rendered(t *testing.T) map[string][]string {
	t.Helper()
	folder, result := t.TempDir(), map[string][]string{}
	add := func(name string, content []byte) {
		path := filepath.Join(folder, filepath.Base(name)+".yaml")
		lab.Must(t, os.WriteFile(path, content, 0o600))
		result[name] = []string{"-f", path}
	}
	prefix := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00:1::/48")}
	for name, render := range map[string]func() ([]*unstructured.Unstructured, error){
		"init-hub": func() ([]*unstructured.Unstructured, error) { return manifests.Hub("https://kubernetes.default.svc") },
		"join-hub": func() ([]*unstructured.Unstructured, error) {
			return manifests.Member(manifests.MemberOptions{
				ClusterID: "east", PodCIDRs: prefix, NodeCIDRs: prefix, ServiceCIDRs: prefix, Namespaces: []string{"shop"}, ClaimedAges: hubv1alpha1.ClaimedAgesTrusted,
				Network: "cloud", Publish: hubv1alpha1.PublishAvailability, GatewayCIDRs: []hubv1alpha1.CIDR{"198.51.100.0/24"}, GatewayNames: []hubv1alpha1.DNSName{"gateway.example.com"},
				Properties: map[string]hubv1alpha1.PropertyValue{"region": "eu"}, MaxServices: 2000, MaxEndpoints: 1500,
			})
		},
		"invite":      func() ([]*unstructured.Unstructured, error) { return manifests.Invitation("east") },
		"definitions": manifests.MemberDefinitions,
		"join": func() ([]*unstructured.Unstructured, error) {
			return manifests.Install(manifests.InstallOptions{
				Parts: manifests.Production, Gateway: true, GatewayType: corev1.ServiceTypeNodePort, AutoExport: true, AgentArgs: []string{"--v=1"},
			})
		},
	} {
		objects, err := render()
		lab.Must(t, err)
		var all bytes.Buffer
		for _, object := range objects {
			content, err := yaml.Marshal(object.Object)
			lab.Must(t, err)
			fmt.Fprintf(&all, "---\n%s", content)
		}
		add(name, all.Bytes())
	}
	const images = "agent.image=example/agent:v1,dns.image=example/dns:v1,gateway.image=example/gateway:v1"
	for name, values := range map[string]string{
		"tombolo-hub": "audiences={https://kubernetes.default.svc}",
		"tombolo":     "profile=production,clusterID=east,gateway.enabled=true,egress.enabled=true," + images,
	} {
		program := filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "helm")
		cmd := exec.CommandContext(t.Context(), program, "template", name, pathOf(t, "../charts/"+name), "--include-crds", "--namespace", "tombolo-system", "--set", values)
		cmd.Env = append(os.Environ(), "HOME="+folder)
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("$ helm template charts/%s\n%s%v (this needs helm: run make bin/helm)", name, errs.String(), err)
		}
		add("charts/"+name, out)
	}
	return result
}
