// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// machine is what a cluster of the full lab runs on: network, mount and process namespaces of its own. All that runs in
// it, pods and their shims too, ends with its first process, and so do its mounts and interfaces: the kernel sees to it.
type machine struct {
	init      *Process     // unshare, which waits for the machine's first process
	addresses []netip.Addr // IPv4, and IPv6 if the cluster has it
	folder    string       // of its cluster
	cgroup    string       // relative to the root of each hierarchy
}

// machineScript is the first process of a machine: it mounts what programs know by fixed paths, so that each machine has
// its own, says that it is ready, and reaps orphans for ever. Arguments: the cluster's folder.
//
// The sysctls are those of the machine's network namespace. Pods of other clusters come in on its interface and leave on
// the bridge of its own pods, so it forwards.
const machineScript = `
set -eu
cd "$1"
for path in run var/lib var/log; do
	mkdir -p "machine/$path" "/$path"
	mount --bind "machine/$path" "/$path"
done
mkdir -p /run/lock /var/log/containers /var/log/pods /var/lib/cni
ip link set lo up
sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 net.ipv6.conf.default.accept_dad=0 \
	net.ipv6.conf.all.accept_dad=0 net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0
echo >machine/ready
while :; do sleep 3600 & wait $!; done
`

func (c *Cluster) newMachine(addresses []netip.Addr) *machine {
	m := &machine{addresses: addresses, folder: c.folder, cgroup: filepath.Join(filepath.Base(c.labFolder), c.Name)}
	ready := filepath.Join(c.folder, "machine", "ready")
	m.init = c.process("machine", exists(ready), "unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc",
		"--kill-child", "/bin/sh", "-c", machineScript, "machine", c.folder)
	return m
}

// exists is a check of readiness: a file is there.
func exists(path string) func(context.Context) error {
	return func(context.Context) error {
		_, err := os.Stat(path)
		return err
	}
}

// enter returns the command that runs a program on the machine, in the folder of its cluster. It keeps the cgroups of the
// caller, which the kubelet must see.
func (m *machine) enter(argv ...string) []string {
	pid := strconv.Itoa(m.init.PID())
	return append([]string{
		"nsenter", "--target", pid, "--net", "--mount", "--pid=/proc/" + pid + "/ns/pid_for_children",
		"--wdns=" + m.folder, "--",
	}, argv...)
}

// run runs a program on the machine to its end and returns what it printed. An error has its output.
func (m *machine) run(ctx context.Context, argv ...string) ([]byte, error) {
	argv = m.enter(argv...)
	return execute(ctx, argv...)
}

// Run runs a program on the cluster's machine, where its own network is, and returns what it printed. An error has that too.
func (c *Cluster) Run(ctx context.Context, argv ...string) ([]byte, error) {
	if c.machine == nil {
		return nil, fmt.Errorf("cluster %s has no machine to run %s on", c.Name, argv[0])
	}
	return c.machine.run(ctx, argv...)
}

func execute(ctx context.Context, argv ...string) ([]byte, error) {
	out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		return out, fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, strings.TrimSpace(string(out)))
	}
	return out, nil
}

// processes returns the numbers, on the host, of all processes of the machine, its pods' too.
func (m *machine) processes() ([]int, error) {
	first := m.init.PID()
	if first == 0 {
		return nil, fmt.Errorf("%s does not run", m.init)
	}
	namespace, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid_for_children", first))
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		// One that has ended in the meantime is not there to be read.
		if of, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid)); err == nil && of == namespace {
			pids = append(pids, pid)
		}
	}
	if len(pids) == 0 {
		return nil, errors.New("the machine has no process")
	}
	return pids, nil
}

// start returns when the machine is up. Its cgroups exist by then, in each hierarchy that the host has: the kubelet
// refuses to start below one that does not exist.
func (m *machine) start(ctx context.Context) error {
	for _, root := range cgroupRoots() {
		if err := os.MkdirAll(filepath.Join(root, m.cgroup), 0o755); err != nil {
			return fmt.Errorf("making a cgroup: %w", err)
		}
	}
	return m.init.Start(ctx)
}

// cgroupRoots returns where the host's cgroup hierarchies are mounted: one for each controller, or a unified one.
func cgroupRoots() []string {
	const root = "/sys/fs/cgroup"
	if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err == nil {
		return []string{root}
	}
	all, err := filepath.Glob(filepath.Join(root, "*", "cgroup.procs"))
	if err != nil { // only a bad pattern does that
		panic(err)
	}
	roots := make([]string, len(all))
	for i, file := range all {
		roots[i] = filepath.Dir(file)
	}
	return roots
}

// thaw lets all processes of the machine continue.
func (m *machine) thaw() error {
	pids, err := m.processes()
	if err != nil {
		return err
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	return nil
}
