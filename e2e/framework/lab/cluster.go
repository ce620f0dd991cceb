// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"k8s.io/client-go/rest"
)

// startAttempts is how often an API server or its controllers are started that end before they are ready: a foreign program may have
// grabbed the port in the moment before, and if the machine stalls for half a minute, both give up by themselves.
const startAttempts = 3

// machinePort is the port of the API server on a machine.
const machinePort = "6443"

// Cluster is one Kubernetes control plane.
type Cluster struct {
	// Name as in the options.
	Name string
	// ServiceCIDRs, the primary one first.
	ServiceCIDRs []netip.Prefix
	// Etcd stores the data, which survive its restart.
	Etcd *Process
	// APIServer keeps its address over restarts.
	APIServer *Process
	// ControllerManager is nil if the cluster has no controllers.
	ControllerManager *Process
	// Node is what the pods run on; nil if the cluster is not complete.
	Node *Node

	options     ClusterOptions
	binaries    binaries
	index       int
	number      int // in its network
	labFolder   string
	folder      string
	logs        string
	credentials credentials
	port        *portClaim // of a cluster without a machine
	machine     *machine   // nil: there is none
	programs    []*Process // see Program
	log         func(format string, args ...any)
}

func newCluster(l *Lab, index, number int, o ClusterOptions, b binaries, logs string) (*Cluster, error) {
	c := &Cluster{
		Name:         o.Name,
		ServiceCIDRs: o.serviceCIDRs(number),
		options:      o,
		binaries:     b,
		index:        index,
		number:       number,
		labFolder:    l.folder,
		folder:       filepath.Join(l.folder, o.Name),
		logs:         filepath.Join(l.folder, o.Name),
		log:          l.log,
	}
	if logs != "" {
		c.logs = filepath.Join(logs, o.Name)
	}
	for _, folder := range []string{c.folder, c.logs} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, fmt.Errorf("lab: cluster %q: %w", c.Name, err)
		}
	}
	var addresses []netip.Addr
	if o.Form != ControlPlane {
		addresses = l.network.addresses(index)[:len(c.ServiceCIDRs)]
		c.machine = c.newMachine(addresses)
		for _, cidr := range c.ServiceCIDRs {
			addresses = append(addresses, cidr.Addr().Next()) // that of Service default/kubernetes
		}
	}
	var err error
	if c.credentials, err = writeCredentials(c.folder, addresses); err != nil {
		return nil, fmt.Errorf("lab: cluster %q: %w", c.Name, err)
	}
	c.Etcd = c.etcd()
	if o.Form == Complete {
		c.Node = &Node{cluster: c, network: l.network}
	}
	return c, nil
}

// Program returns a process beside the control plane, such as an agent, which ends and logs as the cluster's own do. It is
// ready when ready returns nil, and must be started.
func (c *Cluster) Program(path string, ready func(context.Context) error, args ...string) *Process {
	p := c.process(filepath.Base(path), ready, append([]string{path}, args...)...)
	c.programs = append(c.programs, p)
	return p
}

// Processes returns those that the cluster has, in the order in which they start.
func (c *Cluster) Processes() []*Process {
	all := append([]*Process{c.Etcd, c.APIServer, c.ControllerManager}, c.programs...)
	if c.machine != nil {
		all = slices.Insert(all, 0, c.machine.init)
	}
	if c.Node != nil {
		all = append(all, c.Node.processes()...)
	}
	return slices.DeleteFunc(all, func(p *Process) bool { return p == nil })
}

// Config returns the credentials of an administrator, a copy at each call. There is no limit on the rate of requests.
func (c *Cluster) Config() *rest.Config {
	return c.config(c.credentials.adminToken)
}

// Kubeconfig returns the path of a file with the credentials of an administrator.
func (c *Cluster) Kubeconfig() string {
	return filepath.Join(c.folder, "admin.kubeconfig")
}

func (c *Cluster) start(ctx context.Context) error {
	begin := time.Now()
	if err := c.Etcd.Start(ctx); err != nil {
		return err
	}
	if err := c.startAPIServer(ctx); err != nil {
		return err
	}
	if err := WriteKubeconfig(c.Kubeconfig(), c.Config()); err != nil {
		return err
	}
	c.log("cluster %s: API server %s ready after %.1f s", c.Name, c.address(), time.Since(begin).Seconds())
	if len(c.options.Controllers) > 0 {
		kubeconfig, err := c.componentKubeconfig("kube-controller-manager")
		if err != nil {
			return err
		}
		c.ControllerManager = c.controllerManager(kubeconfig)
	}
	if c.ControllerManager != nil && !c.options.ControllersLater {
		if err := c.startControllers(ctx); err != nil {
			return err
		}
		c.log("cluster %s: controllers ready after %.1f s", c.Name, time.Since(begin).Seconds())
	}
	if c.Node != nil {
		if err := c.Node.start(ctx); err != nil {
			return fmt.Errorf("cluster %s: %w", c.Name, err)
		}
		c.log("cluster %s: node ready after %.1f s", c.Name, time.Since(begin).Seconds())
	}
	return nil
}

// componentKubeconfig writes the credentials of a component, whose token the API server knows, and returns the path.
func (c *Cluster) componentKubeconfig(component string) (string, error) {
	path := c.kubeconfigOf(component)
	return path, WriteKubeconfig(path, c.config(c.credentials.tokens[component]))
}

// startAPIServer tries another port each time. On a machine there is none.
func (c *Cluster) startAPIServer(ctx context.Context) error {
	if c.machine != nil {
		c.APIServer = c.apiServer()
		return c.APIServer.Start(ctx)
	}
	var err error
	for range startAttempts {
		if c.port, err = claimPort(); err != nil {
			return fmt.Errorf("cluster %q: %w", c.Name, err)
		}
		c.APIServer = c.apiServer()
		if err = c.APIServer.Start(ctx); !errors.Is(err, errExited) {
			return err
		}
		c.releasePort()
	}
	return err
}

func (c *Cluster) releasePort() {
	if c.port != nil {
		c.port.release()
		c.port = nil
	}
}

func (c *Cluster) address() string {
	if c.machine != nil {
		return "https://" + net.JoinHostPort(c.machine.addresses[0].String(), machinePort)
	}
	return "https://127.0.0.1:" + strconv.Itoa(c.port.number)
}

func (c *Cluster) config(token string) *rest.Config {
	return &rest.Config{
		Host:            c.address(),
		BearerToken:     token,
		TLSClientConfig: rest.TLSClientConfig{CAData: slices.Clone(c.credentials.certificate)},
		QPS:             -1,
	}
}

// seldomGC has the programs collect garbage less often than by default: an API server takes a quarter less of the CPU until
// it is ready, for half as much memory again.
const seldomGC = "GOGC=400"

// process returns a process that is not running yet. It will run on the cluster's machine, if there is one.
func (c *Cluster) process(program string, ready func(context.Context) error, argv ...string) *Process {
	return &Process{
		name:    program + " of cluster " + c.Name,
		argv:    argv,
		env:     append([]string{seldomGC}, c.options.Env...),
		folder:  c.folder,
		pidFile: filepath.Join(c.folder, program+".pid"),
		logFile: filepath.Join(c.logs, program+".log"),
		ready:   ready,
		machine: c.machine,
	}
}

// Backup copies all that the cluster stores into a folder, which must not exist, as an administrator would who stops etcd
// for it. The API server is down meanwhile.
func (c *Cluster) Backup(ctx context.Context, into string) error {
	return c.whileStopped(ctx, func() error { return os.CopyFS(into, os.DirFS(c.data())) })
}

// Restore replaces the cluster's data by a backup and restarts the controllers, as etcd's documentation asks: their watches would wait
// for the revision at which the data was before. Programs that are not part of the control plane have to notice that by themselves.
func (c *Cluster) Restore(ctx context.Context, from string) error {
	return c.replaceData(ctx, func() error {
		return errors.Join(os.RemoveAll(c.data()), os.CopyFS(c.data(), os.DirFS(from)))
	})
}

// Wipe has the cluster lose all that it stores, but for what an API server makes for itself.
func (c *Cluster) Wipe(ctx context.Context) error {
	return c.replaceData(ctx, func() error { return os.RemoveAll(c.data()) })
}

func (c *Cluster) replaceData(ctx context.Context, replace func() error) error {
	if err := c.whileStopped(ctx, replace); err != nil {
		return err
	}
	if c.ControllerManager == nil || !c.ControllerManager.Running() {
		return nil
	}
	return c.RestartControllers(ctx)
}

// data is where etcd has the cluster's data.
func (c *Cluster) data() string { return filepath.Join(c.folder, dataFolder) }

// whileStopped stops the API server and etcd, does something, and returns when both are ready again.
func (c *Cluster) whileStopped(ctx context.Context, act func() error) error {
	if err := errors.Join(c.APIServer.Stop(ctx), c.Etcd.Stop(ctx)); err != nil {
		return err
	}
	if err := act(); err != nil {
		return fmt.Errorf("data of cluster %s: %w", c.Name, err)
	}
	if err := c.Etcd.Start(ctx); err != nil {
		return err
	}
	return c.APIServer.Start(ctx)
}
