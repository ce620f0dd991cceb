// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// binaries are the paths of the programs that a cluster runs.
type binaries struct {
	etcd, apiServer, controllerManager string

	// For complete clusters only.
	scheduler, kubelet, proxy, containerd, shim, ctr, runc string
	cniPlugins                                             string // a folder
	pauseImage                                             string // an archive

	release string // as in the options
}

// findBinaries returns an error that says how to get them if one is missing.
func findBinaries(c ClusterOptions) (binaries, error) {
	folders, err := assetFolders()
	if err != nil {
		return binaries{}, err
	}
	b := binaries{release: c.Release}
	kubernetes := folders
	if c.Release != "" {
		kubernetes = nil
		for _, folder := range folders {
			kubernetes = append(kubernetes, filepath.Join(folder, c.Release))
		}
	}
	missing := find(folders, program{"etcd", &b.etcd})
	missing = append(missing, find(kubernetes,
		program{"kube-apiserver", &b.apiServer}, program{"kube-controller-manager", &b.controllerManager})...)
	if len(missing) > 0 {
		return binaries{}, fmt.Errorf("lab: %s not found in %s: run \"make assets\"", strings.Join(missing, ", "), strings.Join(folders, ", "))
	}
	if c.Form == ControlPlane {
		return b, nil
	}
	err = b.findMachinePrograms(c, folders, kubernetes)
	return b, err
}

// findMachinePrograms finds what it takes beyond a control plane, and checks what a machine needs of its host.
func (b *binaries) findMachinePrograms(c ClusterOptions, folders, kubernetes []string) error {
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		return errors.New("lab: clusters with machines need Linux and root")
	}
	for _, name := range []string{"unshare", "nsenter", "ip", "sysctl"} {
		if _, err := exec.LookPath(name); err != nil {
			return fmt.Errorf("lab: %w: install the packages util-linux, iproute2 and procps", err)
		}
	}
	if c.Form != Complete {
		return nil
	}
	missing := find(kubernetes,
		program{"kube-scheduler", &b.scheduler}, program{"kubelet", &b.kubelet}, program{"kube-proxy", &b.proxy})
	missing = append(missing, find(folders,
		program{"containerd", &b.containerd}, program{"containerd-shim-runc-v2", &b.shim}, program{"ctr", &b.ctr})...)
	for _, folder := range folders {
		if path := filepath.Join(folder, "images", "pause.tar"); b.pauseImage == "" && isFile(path) {
			b.pauseImage = path
		}
	}
	if b.pauseImage == "" {
		missing = append(missing, "images/pause.tar")
	}
	if len(missing) > 0 {
		return fmt.Errorf("lab: %s not found in %s: run \"make lab-assets\"", strings.Join(missing, ", "), strings.Join(folders, ", "))
	}
	return b.findHostPrograms()
}

// findHostPrograms finds what distributions package.
func (b *binaries) findHostPrograms() error {
	var err error
	if b.runc, err = exec.LookPath("runc"); err != nil {
		return fmt.Errorf("lab: %w: install the package runc", err)
	}
	for _, folder := range []string{"/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"} {
		if findExecutable("bridge", []string{folder}) != "" {
			b.cniPlugins = folder
			break
		}
	}
	if b.cniPlugins == "" {
		return errors.New("lab: no CNI plugins found: install the package containernetworking-plugins")
	}
	for _, name := range []string{"nft", "iptables", "conntrack"} {
		if _, err := exec.LookPath(name); err != nil {
			return fmt.Errorf("lab: %w: install the packages nftables, iptables and conntrack", err)
		}
	}
	return nil
}

type program struct {
	name string
	path *string
}

// find fills in the paths of programs and returns the names of those that are missing.
func find(folders []string, programs ...program) (missing []string) {
	for _, p := range programs {
		if *p.path = findExecutable(p.name, folders); *p.path == "" {
			missing = append(missing, p.name)
		}
	}
	return missing
}

// assetFolders returns the folders to search, the first match wins. KUBEBUILDER_ASSETS as filled by setup-envtest has no
// kube-controller-manager, so bin/ is searched as well.
func assetFolders() ([]string, error) {
	var folders []string
	if folder := os.Getenv("KUBEBUILDER_ASSETS"); folder != "" {
		folders = append(folders, folder)
	}
	roots, err := moduleRoots()
	if err != nil {
		return nil, fmt.Errorf("lab: finding the binaries: %w", err)
	}
	for _, root := range roots {
		folders = append(folders, filepath.Join(root, "bin"))
	}
	if len(folders) == 0 {
		return nil, errors.New("lab: no binaries: set KUBEBUILDER_ASSETS, or run below the root of the repository")
	}
	return folders, nil
}

// Root returns the root of the repository: the outermost folder above the working directory that has a go.mod.
func Root() (string, error) {
	roots, err := moduleRoots()
	if err != nil {
		return "", fmt.Errorf("lab: finding the repository: %w", err)
	}
	if len(roots) == 0 {
		return "", errors.New("lab: this must run below the root of the repository")
	}
	return roots[len(roots)-1], nil
}

// moduleRoots returns the working directory and those above it, as far as they have a go.mod.
func moduleRoots() ([]string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	var roots []string
	for {
		if isFile(filepath.Join(folder, "go.mod")) {
			roots = append(roots, folder)
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return roots, nil
		}
		folder = parent
	}
}

func findExecutable(name string, folders []string) string {
	for _, folder := range folders {
		path := filepath.Join(folder, name)
		if info, err := os.Stat(path); err == nil && info.Mode()&0o111 != 0 && isFile(path) {
			return path
		}
	}
	return ""
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// Build builds the command cmd/<name> of the module at root into a file, with the flags of "make build": what was compiled for
// one program need not be compiled anew for another. More flags may be added. An error has what the compiler says.
func Build(ctx context.Context, root, name, into string, flags ...string) error {
	command := exec.CommandContext(ctx, "go", append(append([]string{"build", "-trimpath", "-o", into}, flags...), "./cmd/"+name)...)
	command.Dir = root
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", name, err, output)
	}
	return nil
}
