// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package complete

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"
)

// The images that stories and installations use, as the archives in images/ name them.
const (
	// AgentImage, DNSImage and GatewayImage are Tombolo's own, as the nodes have them.
	AgentImage   = "localhost/tombolo-agent:lab"
	DNSImage     = "localhost/tombolo-dns:lab"
	GatewayImage = "localhost/tombolo-gateway:lab"
	// ProbeImage is what the pods of the stories run: see e2e/framework/probe.
	ProbeImage = "tombolo.example/probe:lab"
	// EtcdImage is the etcd of the lab's control planes. It is loaded where a story needs it.
	EtcdImage = "tombolo.example/etcd:lab"
)

// programs are what a user installs Tombolo with.
type programs struct {
	kubectl    string
	clusterset string // kubectl-clusterset
	probe      string
	root       string // of the repository, for its kustomizations
	images     []string
	before     bool // they are those of an earlier version
}

// findPrograms returns those of the version in the folder root.
func findPrograms(root string) (programs, error) {
	bin := filepath.Join(root, "bin")
	p := programs{kubectl: filepath.Join(bin, "kubectl"), clusterset: filepath.Join(bin, "kubectl-clusterset"), probe: filepath.Join(bin, "probe"), root: root}
	if assets := os.Getenv("KUBEBUILDER_ASSETS"); assets != "" {
		if path := filepath.Join(assets, "kubectl"); exists(path) {
			p.kubectl = path
		}
	}
	for _, image := range []string{"tombolo-agent", "tombolo-dns", "tombolo-gateway", "probe"} {
		p.images = append(p.images, filepath.Join(bin, "images", image+".tar"))
	}
	for _, path := range append([]string{p.kubectl, p.clusterset, p.probe}, p.images...) {
		if !exists(path) {
			return programs{}, fmt.Errorf("%s is missing: run make lab-assets", path)
		}
	}
	return p, nil
}

// image returns the name of one of Tombolo's images, such as AgentImage, in this version.
func (p programs) image(name string) string {
	if p.before {
		return strings.Replace(name, "localhost/", "localhost/before/", 1)
	}
	return name
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Path returns the folder with kubectl, its plugin and probe, as users want them in their PATH.
func (c *Clusterset) Path() string { return filepath.Dir(c.programs.clusterset) }

// LoadImages loads images of the lab into all nodes, by the names of their archives.
func (c *Clusterset) LoadImages(ctx context.Context, names ...string) error {
	var archives []string
	for _, name := range names {
		archives = append(archives, filepath.Join(c.Path(), "images", name+".tar"))
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, cluster := range c.Clusters() {
		if cluster.Node != nil {
			g.Go(func() error { return cluster.Node.LoadImages(ctx, archives...) })
		}
	}
	return g.Wait()
}

// Kubectl runs kubectl with all contexts of the clusterset, and kubectl-clusterset as its plugin, in the root of the
// repository. It returns what it printed; an error has that too.
func (c *Clusterset) Kubectl(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, c.programs.kubectl, args...)
	cmd.Dir = c.programs.root
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig, "HOME="+c.Folder(),
		"PATH="+filepath.Dir(c.programs.clusterset)+":"+os.Getenv("PATH"))
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return string(out), fmt.Errorf("kubectl %s: %w:\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), err
}
