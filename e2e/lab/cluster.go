// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"k8s.io/client-go/rest"
)

// portAttempts bounds the search for a port that no foreign program grabs in the moment before the API server does.
const portAttempts = 5

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

	options     ClusterOptions
	binaries    binaries
	index       int
	labFolder   string
	folder      string
	logs        string
	credentials credentials
	port        *portClaim
	log         func(format string, args ...any)
}

func newCluster(labFolder string, index int, o ClusterOptions, b binaries, logs string) (*Cluster, error) {
	c := &Cluster{
		Name:         o.Name,
		ServiceCIDRs: o.serviceCIDRs(index),
		options:      o,
		binaries:     b,
		index:        index,
		labFolder:    labFolder,
		folder:       filepath.Join(labFolder, o.Name),
		logs:         filepath.Join(labFolder, o.Name),
	}
	if logs != "" {
		c.logs = filepath.Join(logs, o.Name)
	}
	for _, folder := range []string{c.folder, c.logs} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, fmt.Errorf("lab: cluster %q: %w", c.Name, err)
		}
	}
	var err error
	if c.credentials, err = writeCredentials(c.folder); err != nil {
		return nil, fmt.Errorf("lab: cluster %q: %w", c.Name, err)
	}
	c.Etcd = c.etcd()
	return c, nil
}

// Processes returns those that the cluster has, in the order in which they start.
func (c *Cluster) Processes() []*Process {
	all := []*Process{c.Etcd, c.APIServer, c.ControllerManager}
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
	if len(c.options.Controllers) == 0 {
		return nil
	}
	kubeconfig := filepath.Join(c.folder, "controller-manager.kubeconfig")
	if err := WriteKubeconfig(kubeconfig, c.config(c.credentials.controllerManagerToken)); err != nil {
		return err
	}
	c.ControllerManager = c.controllerManager(kubeconfig)
	if err := c.ControllerManager.Start(ctx); err != nil {
		return err
	}
	c.log("cluster %s: controllers ready after %.1f s", c.Name, time.Since(begin).Seconds())
	return nil
}

// startAPIServer tries another port when a foreign program has taken the first.
func (c *Cluster) startAPIServer(ctx context.Context) error {
	var err error
	for range portAttempts {
		if c.port, err = claimPort(); err != nil {
			return fmt.Errorf("cluster %q: %w", c.Name, err)
		}
		c.APIServer = c.apiServer()
		if err = c.APIServer.Start(ctx); !errors.Is(err, errExited) || c.port.free() {
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

// process returns a process that is not running yet.
func (c *Cluster) process(program string, ready func(context.Context) error, argv ...string) *Process {
	return &Process{
		name:    program + " of cluster " + c.Name,
		argv:    argv,
		folder:  c.folder,
		pidFile: filepath.Join(c.folder, program+".pid"),
		logFile: filepath.Join(c.logs, program+".log"),
		ready:   ready,
	}
}
