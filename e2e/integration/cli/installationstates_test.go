// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/tombolo-mcs/tombolo/manifests"
)

// testTerminating: as long as the namespace is being deleted, the command and Helm say to wait.
func (i *installations) testTerminating(t *testing.T) {
	i.restore(t)
	const kubectl = "kubectl --context east -n tombolo-system "
	i.sh(t, kubectl+"create namespace tombolo-system; "+kubectl+"create configmap hold; "+
		kubectl+`patch configmap hold -p '{"metadata": {"finalizers": ["example.com/hold"]}}'; `+
		kubectl+"delete namespace tombolo-system --wait=false")
	i.sh(t, i.shell.block(t, byKustomizeAlone, "out/east/member.yaml"))
	for _, command := range []string{i.shell.block(t, "By Helm", "charts/tombolo "), joinEast + eastImages} {
		out, err := i.bash(t, command)
		if err == nil || !strings.Contains(out, "is being deleted: wait until it does not exist (kubectl wait --for=delete namespace/tombolo-system)") {
			t.Errorf("$ %s\n%s%v", command, out, err)
		}
	}
	i.sh(t, kubectl+`patch configmap hold -p '{"metadata": {"finalizers": null}}'; `+kubectl+"wait --for=delete namespace/tombolo-system --timeout=2m")
}

// crdsCommand is the command with which the chart answers to a CRD of another version.
var crdsCommand = regexp.MustCompile(`helm template .* -f -`)

// testHelmAfterKubectl: Helm says how to update a CRD of another version, and works then. It reports a field that kubectl has changed, and
// overwrites it if it is forced to. What an uninstallation leaves is what docs/install.md lists, and leave deletes it.
func (i *installations) testHelmAfterKubectl(t *testing.T) {
	i.restore(t)
	i.sh(t, "kubectl --context east apply -k manifests/crd/policy; kubectl --context east patch crd serviceexportgrants.policy.tombolo-mcs.io "+
		`--type=json -p '[{"op": "remove", "path": "/spec/versions/0/additionalPrinterColumns"}]'`)
	install := i.shell.block(t, "By Helm", "charts/tombolo ")
	out, err := i.bash(t, install)
	update := crdsCommand.FindString(out)
	if err == nil || update == "" {
		t.Fatalf("$ %s\n%sdoes not say how to update a CRD of another version: %v", install, out, err)
	}
	i.sh(t, strings.NewReplacer("CHART VALUES", "charts/tombolo --values east.yaml", "kubectl ", "kubectl --context east ").Replace(update))
	i.install(t, cell{to: byHelm})
	i.works(t)
	i.sh(t, "kubectl --context east -n tombolo-system scale deployment tombolo-agent --replicas=3")
	if out, err = i.bash(t, install); err == nil || !strings.Contains(out, `conflict with "kubectl"`) || !strings.Contains(out, ".spec.replicas") {
		t.Errorf("Helm does not report what kubectl has changed: %v\n%s", err, out)
	}
	i.sh(t, strings.Replace(install, "upgrade --install", "upgrade --install --force-conflicts", 1))
	if n := *i.deployment(t, manifests.AgentDeployment).Spec.Replicas; n != 1 {
		t.Errorf("%d replicas", n)
	}
	i.end(t, byHelm, uninstalled)
	i.sh(t, `for crd in serviceexports.multicluster.x-k8s.io serviceexportgrants.policy.tombolo-mcs.io; do kubectl --context east get crd $crd; done
		kubectl --context east -n tombolo-system get secret tombolo-hub
		kubectl --context hub -n member-east get member/member
		kubectl clusterset leave --context east --hub-context hub --cluster-id east --yes`)
}
