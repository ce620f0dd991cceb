// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// program is one of the project's programs with what its image says of it. The Dockerfile says the same.
type program struct {
	// name is that of the image, of its archive and of its one program.
	name string
	// stage is what docker build --target names.
	stage, title, description string
	// pkg is the package of the program, and versionVariable the variable that the linker sets to the version.
	pkg, versionVariable string
	ports                []string
}

// programs returns the project's programs. CoreDNS listens on port 1053: port 53 requires the file capability
// NET_BIND_SERVICE, and such a file does not start if allowPrivilegeEscalation is false, as the restricted Pod Security
// level demands. The Service maps port 53 to it.
func programs() []program {
	return []program{
		{
			name: "tombolo-agent", stage: "agent", pkg: "./cmd/tombolo-agent", versionVariable: "main.version",
			title:       "Tombolo agent",
			description: "Makes a Kubernetes cluster a member of a clusterset: publishes what it exports, imports what the others do",
			ports:       []string{"8080/tcp", "8081/tcp"},
		},
		{
			name: "tombolo-gateway", stage: "gateway", pkg: "./cmd/tombolo-gateway", versionVariable: "main.version",
			title:       "Tombolo gateway",
			description: "Forwards connections between a Kubernetes cluster and the gateways of other clusters of a clusterset",
			ports:       []string{"8080/tcp", "8081/tcp", "8443/tcp"},
		},
		{
			name: "tombolo-dns", stage: "dns", pkg: "./cmd/coredns", versionVariable: "github.com/coredns/coredns/coremain.GitCommit",
			title:       "CoreDNS with Tombolo's plugin clusterset",
			description: "CoreDNS with the plugins that a cluster uses and clusterset, which answers for clusterset.local",
			ports:       []string{"1053/tcp", "1053/udp", "8080/tcp", "8181/tcp", "9153/tcp"},
		},
	}
}

const (
	// user is the user of the images: a number, so that a kubelet can check runAsNonRoot. The manifests name the same.
	user = "65532:65532"
	// passwd and group name the user for programs that look it up, as klog does.
	passwd = "nonroot:x:65532:65532:nonroot:/:/sbin/nologin\n"
	group  = "nonroot:x:65532:\n"
)

// images returns the project's images.
func (b builder) images(r release) []image {
	var all []image
	for _, p := range b.programs {
		all = append(all, b.image(p, r))
	}
	return all
}

// image returns the image of a program. It has no shell, no libc and no /tmp: nothing needs them, and the root can be mounted
// read-only. All files belong to root, so the user cannot change them.
func (b builder) image(p program, r release) image {
	const prefix = "org.opencontainers.image."
	ports := map[string]struct{}{}
	for _, port := range p.ports {
		ports[port] = struct{}{}
	}
	return image{
		ref: b.repository + "/" + p.name + ":" + r.version,
		config: v1.Config{
			User: user, ExposedPorts: ports, Entrypoint: []string{"/" + p.name}, WorkingDir: "/",
			Labels: map[string]string{
				prefix + "title": p.title, prefix + "description": p.description,
				prefix + "version": r.version, prefix + "revision": r.revision,
				prefix + "source": "https://github.com/tombolo-mcs/tombolo", prefix + "licenses": "Apache-2.0",
			},
		},
		files: func(ctx context.Context, target v1.Platform) ([]file, error) {
			content, err := b.compile(ctx, p.pkg, "-X "+p.versionVariable+"="+r.version, target)
			return []file{
				regular("etc/group", 0o644, []byte(group)),
				regular("etc/passwd", 0o644, []byte(passwd)),
				regular("etc/ssl/certs/ca-certificates.crt", 0o644, certificates()),
				regular(p.name, 0o755, content),
			}, err
		},
	}
}

// certificates returns the roots that Mozilla trusts, in PEM. CoreDNS needs them to forward with TLS, and the agent if the
// hub's certificate is a public one. They are a file, so that a mount can replace it. Roots with a constraint are left out,
// because PEM cannot express one.
func certificates() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			b.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return b.Bytes()
}

// compile returns the program of a package: static, stripped, and with the same bytes in every folder. It sets every variable
// of the environment that would change these bytes.
func (b builder) compile(ctx context.Context, pkg, linked string, p v1.Platform) ([]byte, error) {
	dir, err := os.MkdirTemp("", "tombolo-images-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "program")
	fmt.Fprintf(b.log, "build %s for %s (minutes, the first time)\n", pkg, p)
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w "+linked, "-o", name, pkg)
	command.Dir = b.root
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.OS, "GOARCH="+p.Architecture,
		"GOFLAGS=-mod=readonly", "GOWORK=off", "GOEXPERIMENT=", "GOFIPS140=off", "GOAMD64=v1", "GOARM64=v8.0")
	if output, err := command.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build %s for %s in %s: %w\n%s", pkg, p, b.root, err, output)
	}
	return os.ReadFile(name)
}
