// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// labArchives returns a folder with the archives of the images that only labs have.
func labArchives(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"busybox", "socat", "nc.openbsd", "nslookup", "ldd"} {
		if _, err := os.Stat("/usr/bin/" + name); err != nil {
			t.Skip(explain(err))
		}
	}
	if _, err := os.Stat(filepath.Join(productRoot, "bin", "etcd")); err != nil {
		t.Skipf("%v: run make assets", err)
	}
	dir := t.TempDir()
	// Without the project's own images, which take minutes.
	must(t, (builder{root: productRoot, log: io.Discard}).run(t.Context(), []string{"lab", "-root", productRoot, "-out", dir}, ""))
	return dir
}

// TestLab: the names and configurations of the archives, and that their programs run with nothing but the image.
func TestLab(t *testing.T) {
	t.Parallel()
	dir := labArchives(t)
	shells := []string{
		"test -w /tmp && touch /tmp/file && cat /tmp/file && ls -ld /tmp", "drwxrwxrwt",
		"id", "uid=0(root) gid=0(root)",
		"timeout 1 sleep infinity; echo $?", "143", // what pause.tar runs
		"sleep 0; ip help; ping; wget", "Usage: wget",
	}
	tools := slices.Concat(shells, []string{
		"nc -h", "OpenBSD netcat",
		"nc -4 -v -w 1 127.0.0.1 1; true", "nc: connect to 127.0.0.1 port 1 (tcp) failed: ",
		"socat -V", "socat version 1.7.4.4",
		"echo hello | socat -t 60 - EXEC:cat", "hello",
		"nslookup -version", "nslookup 9.",
	})
	for archive, want := range map[string]struct {
		name, config string
		commands     []string // each followed by a part of its output
	}{
		"pause.tar": {"tombolo.example/pause:lab", `{"Entrypoint":["/bin/busybox","sleep","infinity"],"User":"65532:65532"}`, nil},
		"probe.tar": {
			"tombolo.example/probe:lab", `{"Entrypoint":["/probe"],"Env":["` + searchPath + `"],"WorkingDir":"/"}`,
			append(shells, "/probe lookup 127.0.0.1", `"addresses":["127.0.0.1"]`, "nslookup; nc", "Usage: nslookup"),
		},
		"etcd.tar":     {"tombolo.example/etcd:lab", `{"Entrypoint":["/etcd"],"WorkingDir":"/"}`, nil},
		"socat.tar":    {"docker.io/alpine/socat:1.7.4.4", `{"Entrypoint":["socat"],"Env":["` + searchPath + `"],"WorkingDir":"/"}`, tools},
		"netshoot.tar": {"docker.io/nicolaka/netshoot:v0.15", `{"Cmd":["sh"],"Env":["` + searchPath + `"],"WorkingDir":"/"}`, tools},
	} {
		t.Run(archive, func(t *testing.T) {
			t.Parallel()
			name, images := load(t, read(t, filepath.Join(dir, archive)))
			i := images["linux/"+runtime.GOARCH]
			config, err := i.ConfigFile()
			must(t, err)
			if got, err := json.Marshal(config.Config); name != want.name || string(got) != want.config || err != nil {
				t.Errorf("got %s, %s, %v\nwant %s, %s", name, got, err, want.name, want.config)
			}
			if os.Geteuid() != 0 {
				t.Skip("chroot needs root")
			}
			root := t.TempDir()
			content := mutate.Extract(i)
			defer content.Close()
			layer, err := io.ReadAll(content)
			must(t, err)
			must(t, unpack(t.Context(), layer, root))
			for pair := range slices.Chunk(want.commands, 2) {
				if output, err := inside(t.Context(), root, pair[0]); !strings.Contains(output, pair[1]) {
					t.Errorf("%s: %v: %q, want %q in it", pair[0], err, output, pair[1])
				}
			}
		})
	}
}

// inside runs a command of a shell with an image's files as the root, and /proc as pods have it, through which busybox runs its
// own programs. The mount ends with the command.
func inside(ctx context.Context, root, command string) (string, error) {
	if err := os.MkdirAll(filepath.Join(root, "proc"), 0o755); err != nil {
		return "", err
	}
	chroot, err := exec.LookPath("chroot") // PATH is that of the image
	if err != nil {
		return "", err
	}
	const enter = `mount --bind /proc "$0/proc" && PATH="$3" && exec "$1" "$0" /bin/sh -c "$2"`
	output, err := exec.CommandContext(ctx, "unshare", "--mount", "sh", "-c", enter, root, chroot, command, strings.TrimPrefix(searchPath, "PATH=")).CombinedOutput()
	return string(output), err
}

// TestLabMissing: the error for a host that lacks a program names the packages.
func TestLabMissing(t *testing.T) {
	t.Parallel()
	const advice = ": the images of a lab are made of Debian's programs: apt-get install busybox-static socat netcat-openbsd bind9-dnsutils"
	bin := t.TempDir()
	_, err := shellFiles(t.Context(), bin)
	wantError(t, err, "busybox: no such file or directory"+advice)
	_, err = dynamic(t.Context(), bin, map[string]string{"usr/bin/socat": "socat"})
	wantError(t, err, advice)
	if runtime.GOOS != "linux" {
		return
	}
	// The busybox of the package without -static.
	write(t, filepath.Join(bin, "busybox"), string(read(t, "/bin/sh")))
	_, err = shellFiles(t.Context(), bin)
	wantError(t, err, "it is not static"+advice)
}
