// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/walk"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// installation is how east becomes a member, as docs/install.md describes it, and how it is updated: without a conflict after each recipe.
type installation struct {
	install func(*testing.T, *world, *walk.Shell)
	update  string
}

// recipe is a section of docs/operations.md that gives a member new credentials or settings. before does what the section is for. on is the
// hub of east after it.
type recipe struct {
	heading string
	before  func(*testing.T, *world)
	on      string
}

// TestRecipes walks the recipes of docs/operations.md for the credentials and the ranges of a member and for a hub that moves, word for word,
// on a member that Helm has installed, and if the variable INSTALLATIONS is "all" on members of each installation. After each, the hub accepts
// the agent's token, the installation can be updated, and the agent renews its heartbeat.
//
// spec: K1
func TestRecipes(t *testing.T) { //nolint:tparallel // its parts follow one another
	t.Parallel()
	w := start(t, "east", "new-hub")
	w.initHub(t, "hub")
	w.initHub(t, "new-hub")
	parts := map[string]func(*testing.T){}
	for name, by := range map[string]installation{
		"command": {func(t *testing.T, w *world, _ *walk.Shell) { w.must(t, w.join("east", "--pod-cidrs 10.2.0.0/16")) }, "kubectl clusterset upgrade --context east " + devImages},
		"kustomize": {func(t *testing.T, _ *world, shell *walk.Shell) {
			for _, block := range blocks(t, "install.md", "## By kustomize alone") {
				run(t, shell, block)
			}
		}, "kubectl --context hub apply -k out/east && kubectl --context east apply -k out/east-runs"},
		"helm": {installHelm, "helm --kube-context east upgrade tombolo charts/tombolo --namespace tombolo-system --values east.yaml"},
	} {
		if name == "helm" || allInstallations() {
			parts[name] = func(t *testing.T) { w.walkRecipes(t, by) }
		}
	}
	w.share(t, parts)
}

// devImages has upgrade keep the images: the command in the shell is a development build.
const devImages = "--agent-image example.com/tombolo/tombolo-agent:v0.0.0-test --dns-image example.com/tombolo/tombolo-dns:v0.0.0-test"

func (w *world) walkRecipes(t *testing.T, by installation) {
	shell, folder := w.shell(t, "NEW_HUB_URL="+w.Cluster("new-hub").Config().Host)
	startNode(t, w.Cluster("east"), w.agent)
	by.install(t, w, shell)
	ca := w.Cluster("hub").Config().CAData
	next, err := lab.NewCertificate()
	lab.Must(t, err)
	lab.Must(t, os.WriteFile(filepath.Join(folder, "both.pem"), slices.Concat(ca, next.PEM), 0o600))
	lab.Must(t, os.WriteFile(filepath.Join(folder, "new.pem"), ca, 0o600)) // TestCredentials changes the certificate, too
	for _, r := range []recipe{
		{"### A token has expired", expireToken, "hub"},
		{"### A token has leaked", nil, "hub"},
		{"### The certificate authority of the hub changes", nil, "hub"},
		{"## Addresses change", nil, "hub"},
		{"## The hub moves", restoreMember, "new-hub"},
	} {
		if r.before != nil {
			r.before(t, w)
		}
		for _, block := range blocks(t, "operations.md", r.heading) {
			if strings.Contains(block, "--force-conflicts") || !strings.Contains(block, "kubectl clusterset join --context east") {
				t.Errorf("%s: this is no recipe:\n%s", r.heading, block)
			}
			run(t, shell, block)
		}
		w.leadsTo(t, r.heading, r.on)
		if r.heading == "## Addresses change" { // "make the same change there"
			addRange(t, filepath.Join(folder, "out", "east", "member.yaml"))
		}
		run(t, shell, by.update)
		w.leadsTo(t, r.heading+", and an update of the installation", r.on)
		w.beats(t, r.on)
	}
	member := &hubv1alpha1.Member{ObjectMeta: metav1.ObjectMeta{Namespace: "member-east", Name: hubv1alpha1.MemberName}}
	w.get(t, "new-hub", member)
	lab.Equal(t, "the ranges that a recipe has added", []hubv1alpha1.CIDR{"10.2.0.0/16", "10.9.0.0/16"}, member.Spec.PodCIDRs)
}

// run runs commands as a document has them.
func run(t *testing.T, shell *walk.Shell, commands string) {
	t.Helper()
	out, err := shell.Run(commands)
	lab.Must(t, err)
	t.Logf("$ %s\n%s", commands, out)
}

// fenced matches a block of a document: its language, and its content.
var fenced = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$") //nolint:gocritic // the second ^ is the beginning of a line, too

// blocks returns the commands of a section of a document, in which east is the member.
func blocks(t *testing.T, document, heading string) (result []string) {
	t.Helper()
	text, err := os.ReadFile("../../../docs/" + document)
	lab.Must(t, err)
	_, section, _ := strings.Cut(string(text), "\n"+heading+"\n")
	section, _, _ = strings.Cut(section, "\n#")
	for _, block := range fenced.FindAllStringSubmatch(section, -1) {
		if block[1] == "" || block[1] == "sh" {
			result = append(result, strings.ReplaceAll(block[2], "west", "east"))
		}
	}
	if len(result) == 0 {
		t.Fatalf("docs/%s has no commands below %q", document, heading)
	}
	return result
}

// installHelm defines the member and its Secret as with kustomize, as the document says.
func installHelm(t *testing.T, _ *world, shell *walk.Shell) {
	t.Helper()
	for _, block := range blocks(t, "install.md", "## By kustomize alone") {
		switch _, credentials, found := strings.Cut(block, "kubectl --context east apply -k out/east-runs\n"); {
		case found:
			for _, helm := range blocks(t, "install.md", "## By Helm") {
				if strings.Contains(helm, "install tombolo charts/tombolo ") {
					run(t, shell, helm)
				}
			}
			run(t, shell, credentials)
		case strings.Contains(block, "kind: Member"):
			run(t, shell, block)
		}
	}
}

// addRange adds the range of the recipe to the file of a Member, if there is one.
func addRange(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	lab.Must(t, err)
	lab.Must(t, os.WriteFile(path, bytes.ReplaceAll(text, []byte("10.2.0.0/16"), []byte("10.2.0.0/16, 10.9.0.0/16")), 0o600))
}

// expireToken gives the agent a token that differs from its own only in its end, which is past.
func expireToken(t *testing.T, w *world) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "tombolo-system", Name: "tombolo-hub"}}
	w.edit(t, "east", secret, func() {
		end := time.Now().Add(-time.Hour)
		secret.Data[clusterset.HubSecretToken] = []byte(w.signed(t, string(secret.Data[clusterset.HubSecretToken]), end))
		if secret.Annotations == nil {
			secret.Annotations = map[string]string{}
		}
		secret.Annotations[clusterset.AnnotationTokenExpires] = end.UTC().Format(time.RFC3339)
	})
	if _, err := w.credentials(t); err == nil {
		t.Error("the hub accepts the token that has expired")
	}
}

// restoreMember creates the Member on the new hub from that on the old one, as from a backup.
func restoreMember(t *testing.T, w *world) {
	t.Helper()
	member := &hubv1alpha1.Member{ObjectMeta: metav1.ObjectMeta{Namespace: "member-east", Name: hubv1alpha1.MemberName}}
	w.get(t, "hub", member)
	member.ObjectMeta = metav1.ObjectMeta{Namespace: member.Namespace, Name: member.Name, Annotations: member.Annotations}
	w.create(t, "new-hub", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: member.Namespace}}, member)
}

// leadsTo: the agent of east has a token that a hub accepts.
func (w *world) leadsTo(t *testing.T, when, hub string) {
	t.Helper()
	server, err := w.credentials(t)
	if want := w.Cluster(hub).Config().Host; err != nil || server != want {
		t.Errorf("%s: the agent has a token for %s, want %s: %v", when, server, want, err)
	}
}
