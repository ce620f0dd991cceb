// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lab runs real Kubernetes control planes on one machine: for each cluster an etcd, a kube-apiserver and, where
// asked for, a kube-controller-manager. It needs no root, no containers and no network but the loopback interface, and
// works on Linux and macOS. There are no nodes, so pods are objects that never run; everything else (admission, RBAC,
// quotas, validation, watch, dual-stack Services) is the real thing.
//
// As root on Linux it runs complete clusters as well (CompleteMember), each on a machine of its own namespaces: with
// scheduler, kubelet, containerd, kube-proxy and pods, which reach those of other clusters. See machine.go.
//
// A test starts what it needs, and everything is gone when it ends:
//
//	l := lab.Start(t, lab.Hub(), lab.Member("a"), lab.Member("b"))
//	config := l.Cluster("a").Config()
//
// The processes of a cluster can be stopped, killed, restarted, frozen and thawed one by one. An API server keeps its
// port and etcd its data, so credentials and clients stay valid.
//
// Several labs may run at once, in one process or in many. Each has a folder of its own below the folder for temporary
// files, and a watchdog that ends the processes and removes the folder when the process that started the lab ends, in
// whatever way: see package watchdog.
//
// The binaries come from KUBEBUILDER_ASSETS or from bin/ of this repository, where "make assets" and "make lab-assets" build them.
package lab

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab/watchdog"
)

// maxFolderLength keeps <folder>/<index>.client below the shortest limit for the path of a Unix socket: 104 bytes with
// the final zero, on macOS.
const maxFolderLength = 90

// Lab is a set of running clusters. Close ends it.
type Lab struct {
	folder   string
	clusters []*Cluster
	watchdog *watchdog.Watchdog
	network  *network // nil: no cluster has a machine
	log      func(format string, args ...any)
	close    func() error
}

// New starts the clusters, all at once, and returns when all are ready. On an error nothing is left behind. If ctx ends
// after the start, the lab stays, as long as something refers to it.
func New(ctx context.Context, o Options) (*Lab, error) {
	l, err := prepare(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := l.start(ctx); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Cluster returns the cluster of this name, and nil if there is none.
func (l *Lab) Cluster(name string) *Cluster {
	for _, c := range l.clusters {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// Clusters returns all clusters in the order of the options.
func (l *Lab) Clusters() []*Cluster {
	return slices.Clone(l.clusters)
}

// Folder returns the folder with everything that belongs to the lab. It disappears with the lab.
func (l *Lab) Folder() string { return l.folder }

// Close kills all processes, removes the lab's folder, and returns when both have happened. Only the first call acts; all
// return the same result.
func (l *Lab) Close() error { return l.close() }

// prepare makes all that the clusters' processes need: the watchdog comes first.
func prepare(ctx context.Context, o Options) (*Lab, error) {
	Quiet()
	if err := o.validate(); err != nil {
		return nil, err
	}
	found := make([]binaries, len(o.Clusters))
	for i, c := range o.Clusters {
		var err error
		if found[i], err = findBinaries(c); err != nil {
			return nil, err
		}
	}
	l := &Lab{log: o.Log}
	l.close = sync.OnceValue(l.remove)
	if l.log == nil {
		l.log = func(string, ...any) {}
	}
	var err error
	if l.folder, err = newFolderPath(); err != nil {
		return nil, err
	}
	if l.watchdog, err = watchdog.Start(l.folder); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(o.Clusters, func(c ClusterOptions) bool { return c.Form != ControlPlane }) {
		if err := l.startNetwork(ctx); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	numbers := o.numbers()
	for i, co := range o.Clusters {
		c, err := newCluster(l, i, numbers[i], co, found[i], o.Logs)
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
		l.clusters = append(l.clusters, c)
	}
	return l, nil
}

func (l *Lab) start(ctx context.Context) error {
	if err := l.startMachines(ctx); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, c := range l.clusters {
		g.Go(func() error { return c.start(ctx) })
	}
	return g.Wait()
}

// startMachines starts all machines, links them, and makes the pods of each reachable from all of its network.
func (l *Lab) startMachines(ctx context.Context) error {
	for _, c := range l.clusters {
		if c.machine == nil {
			continue
		}
		if err := c.machine.start(ctx); err != nil {
			return fmt.Errorf("cluster %s: %w", c.Name, err)
		}
		if err := l.network.connect(ctx, c.index, c.machine); err != nil {
			return fmt.Errorf("cluster %s: %w", c.Name, err)
		}
	}
	for _, from := range l.clusters {
		if from.options.Form == Complete && from.options.Network != "" {
			if err := l.network.masquerade(ctx, from); err != nil {
				return fmt.Errorf("cluster %s: %w", from.Name, err)
			}
		}
		for _, to := range l.clusters {
			if from == to || from.machine == nil || to.options.Form != Complete || from.options.Network != to.options.Network {
				continue
			}
			if err := l.network.route(ctx, from.machine, to); err != nil {
				return fmt.Errorf("cluster %s: %w", from.Name, err)
			}
		}
	}
	return nil
}

func (l *Lab) remove() error {
	var g sync.WaitGroup
	for _, c := range l.clusters {
		for _, p := range c.Processes() {
			g.Go(p.Kill)
		}
	}
	if l.network != nil {
		g.Go(l.network.wan.Kill)
	}
	g.Wait()
	for _, c := range l.clusters {
		c.releasePort()
	}
	// The watchdog removes the folder, as it would after a crash. RemoveAll is for the case that it was killed.
	return errors.Join(l.watchdog.Release(), os.RemoveAll(l.folder))
}

// newFolderPath returns a path that does not exist, where os.TempDir says, or in /tmp if that is too long for the Unix
// sockets in it.
func newFolderPath() (string, error) {
	name := "tombolo-lab-" + strings.ToLower(rand.Text()[:10])
	for _, parent := range []string{os.TempDir(), "/tmp"} {
		if path := filepath.Join(parent, name); filepath.IsAbs(path) && len(path) <= maxFolderLength {
			return path, nil
		}
	}
	return "", errors.New("lab: no folder for temporary files has a path that is short enough")
}
