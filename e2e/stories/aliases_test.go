// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/walk"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// aliasesServeByLocalNames: a and b export a service. The commands of docs/traffic.md about aliases, in a, give a new name and the name
// that the service has in a the pods of both clusters. What a exports are its own pods, before and after. No request to the name that the
// service has in a fails.
func aliasesServeByLocalNames(s *scene) {
	a, b := s.in("a"), s.in("b")
	a.offer("web", 1)
	b.offer("web", 1)
	for _, p := range s.members() {
		p.awaitAnswers("tcp4", s.name("web"), 80, "a", "b")
	}
	a.expectAnswers("tcp4", localName(s, "web"), 80, "a")
	load := a.load("tcp4", localName(s, "web"), 80, 20)
	a.followSection("traffic.md", "## Aliases")
	for _, network := range []string{"tcp4", "tcp6"} {
		a.awaitAnswers(network, localName(s, "web-everywhere"), 80, "a", "b")
		a.awaitAnswers(network, localName(s, "web"), 80, "a", "b")
	}
	b.expectAnswers("tcp4", localName(s, "web"), 80, "b")
	b.scale("web", 0)
	for _, p := range s.members() {
		p.awaitAnswers("tcp4", s.name("web"), 80, "a")
	}
	a.awaitAnswers("tcp4", localName(s, "web-everywhere"), 80, "a")
	b.scale("web", 1)
	a.awaitAnswers("tcp4", localName(s, "web"), 80, "a", "b")
	change(a, "web", &corev1.Service{}, func(web *corev1.Service) { delete(web.Annotations, clusterset.AnnotationImport) })
	a.awaitAnswers("tcp4", localName(s, "web"), 80, "a")
	total := load.endClean()
	if total.ByCluster["a"] == 0 || total.ByCluster["b"] == 0 {
		s.Errorf("%v answered, want both", total.ByCluster)
	}
}

// aliasOfAnotherNetwork: an alias in a reaches the pods of b, which is in another network, beside its own.
func aliasOfAnotherNetwork(s *scene) {
	a, b := s.in("a"), s.in("b")
	b.offer("web", 1)
	a.deploy("own", 1)
	own := service("own")
	own.Annotations = map[string]string{clusterset.AnnotationImport: "web"}
	plain := service("plain")
	plain.Annotations, plain.Spec.Selector = own.Annotations, nil
	a.create(own, plain)
	a.awaitImport("web", "b")
	a.awaitAnswers("tcp4", localName(s, "plain"), 80, "b")
	a.awaitAnswers("tcp4", localName(s, "own"), 80, "a", "b")
	lab.Must(s, a.usesGateways("web", "b", true))
}

// followSection runs the commands of a section of a document in this place, where kubectl uses the cluster and the namespace of the scene.
func (p *place) followSection(document, heading string) {
	p.Helper()
	root, err := lab.Root()
	lab.Must(p, err)
	content, err := os.ReadFile(filepath.Join(root, "docs", document))
	lab.Must(p, err)
	_, section, found := strings.Cut(string(content), "\n"+heading+"\n")
	if !found {
		p.Fatalf("docs/%s has no section %q", document, heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	kubeconfig, err := os.ReadFile(p.Kubeconfig)
	lab.Must(p, err)
	own := filepath.Join(p.TempDir(), "kubeconfig")
	lab.Must(p, os.WriteFile(own, kubeconfig, 0o600))
	shell, err := walk.NewShell(p.Context(), root, append(os.Environ(), "KUBECONFIG="+own, "KUBECACHEDIR="+p.Folder(), "PATH="+p.Path()+":"+os.Getenv("PATH")))
	lab.Must(p, err)
	defer shell.Close()
	_, err = shell.Run("kubectl config use-context " + p.cluster.Name + " && kubectl config set-context --current --namespace " + p.namespace)
	lab.Must(p, err)
	steps, err := walk.Steps(section)
	lab.Must(p, err)
	if len(steps) == 0 {
		p.Fatalf("section %q of docs/%s has no commands", heading, document)
	}
	for _, step := range steps {
		lab.Must(p, shell.Take(step))
	}
}
