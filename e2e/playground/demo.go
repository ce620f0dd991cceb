// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"text/template"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// demo is a clusterset of a hub and two members: control planes with an agent and CoreDNS each. A third member is in another network.
type demo struct {
	host  string // an address of this machine for gateways; empty: there is no third member
	out   io.Writer
	mu    sync.Mutex // for out
	begin time.Time
	step  time.Time // when the cause of what is checked next was written

	lab       *lab.Lab
	logs      string // a folder
	hub       *lab.Cluster
	hubClient client.Client
	a, b, c   *member // c may be nil
	web       string  // UID and addresses of the derived Service of web in cluster-b
}

// runDemo runs all steps and cleans up.
func runDemo(ctx context.Context, out io.Writer, plugin string) error {
	d := &demo{out: out, begin: time.Now(), host: lab.HostAddress()}
	err := d.run(ctx, plugin, d.exportWeb, d.exportDB, d.conflict, d.withdraw, d.acrossNetworks)
	if err := d.stop(err); err != nil {
		return err
	}
	d.printf("\nEvery answer was as it should be. All is stopped and removed.\n")
	d.printf("  %5.1f s in all. Now try \"make demo-up\", which leaves the clusters running for you.\n", time.Since(d.begin).Seconds())
	return nil
}

// demoUp runs the first steps and leaves everything running.
func demoUp(plugin string) start {
	return func(ctx context.Context, out io.Writer) (state, func(error) error, error) {
		d := &demo{out: out, begin: time.Now()}
		if err := d.run(ctx, plugin, d.exportWeb, d.exportDB); err != nil {
			return state{}, d.stop, err
		}
		guide, err := d.guide()
		return state{Guide: guide, Variables: map[string]string{
			"HUB": d.hub.Kubeconfig(), "A": d.a.Kubeconfig(), "B": d.b.Kubeconfig(), "DNS": d.b.dns,
		}}, d.stop, err
	}
}

// run starts the clusters and runs steps.
func (d *demo) run(ctx context.Context, plugin string, steps ...func(context.Context) error) error {
	d.printf("\nTwo clusters and a hub, on this machine\n")
	for _, name := range []string{"tombolo-agent", "coredns", "tombolo-gateway"} {
		if _, err := findProgram(name); err != nil {
			return err
		}
	}
	start := func(ctx context.Context) error { return d.startPrograms(ctx, plugin) }
	for _, step := range append([]func(context.Context) error{d.startClusters, d.join, start}, steps...) {
		if err := step(ctx); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return err
		}
	}
	return nil
}

func (d *demo) startClusters(ctx context.Context) error {
	clusters := []lab.ClusterOptions{membership.Hub(), lab.Member("cluster-a"), lab.Member("cluster-b")}
	if d.host != "" {
		clusters = append(clusters, lab.Member("cluster-c"))
		for i := range clusters {
			clusters[i].Env = []string{ // what a gateway reads from the environment of its pod
				"POD_NAMESPACE=" + manifests.AgentNamespace, "POD_NAME=gateway-" + clusters[i].Name,
				"POD_UID=00000000-0000-0000-0000-000000000001", "POD_IPS=" + d.host,
			}
		}
	}
	d.progressf("%d API servers start: a hub and the members", len(clusters))
	var err error
	if d.logs, err = os.MkdirTemp("", "tombolo-demo-logs-"); err != nil {
		return err
	}
	if d.lab, err = lab.New(ctx, lab.Options{Clusters: clusters, Logs: d.logs, Log: d.progressf}); err != nil {
		return err
	}
	d.hub = d.lab.Cluster("hub")
	scheme, err := membership.Scheme()
	if err != nil {
		return err
	}
	if d.hubClient, err = d.hub.Client(scheme); err != nil {
		return err
	}
	if d.a, err = newMember(d.lab.Cluster("cluster-a")); err != nil {
		return err
	}
	if d.b, err = newMember(d.lab.Cluster("cluster-b")); err != nil || d.host == "" {
		return err
	}
	d.c, err = newMember(d.lab.Cluster("cluster-c"))
	return err
}

// members returns the members that there are.
func (d *demo) members() []*member {
	return slices.DeleteFunc([]*member{d.a, d.b, d.c}, func(m *member) bool { return m == nil })
}

// join makes one cluster the hub and the others its members.
func (d *demo) join(ctx context.Context) error {
	d.progressf("the hub is set up, and the clusters join it")
	if err := membership.InitHub(ctx, d.hub); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	for i, m := range d.members() {
		o := manifests.MemberOptions{ClusterID: clusterset.ClusterID(m.Name), PodCIDRs: membership.PodCIDRs(i + 1), ServiceCIDRs: m.ServiceCIDRs}
		if d.host != "" {
			o.GatewayCIDRs = []hubv1alpha1.CIDR{hubv1alpha1.CIDR(d.host + "/32")}
		}
		if m == d.c {
			o.PodCIDRs, o.Network, o.Publish = membership.PodCIDRs(1), "cloud", hubv1alpha1.PublishAvailability // as cluster-a's
		}
		g.Go(func() (err error) {
			m.hub, err = membership.Join(ctx, d.hub, m.Cluster, o)
			return err
		})
	}
	return g.Wait()
}

func (d *demo) startPrograms(ctx context.Context, plugin string) error {
	d.progressf("tombolo-agent and CoreDNS start in the clusters, and gateways in cluster-a and cluster-c")
	g, ctx := errgroup.WithContext(ctx)
	for _, m := range d.members() {
		g.Go(func() error {
			if m == d.b || d.c == nil {
				return m.start(ctx, d.hubClient, plugin)
			}
			return m.startWithGateway(ctx, d.hubClient, plugin, d.host)
		})
	}
	return g.Wait()
}

// stop ends all processes and removes all files. If the demo failed, the error says so, and the logs are kept.
func (d *demo) stop(failed error) error {
	switch {
	case d.logs == "":
	case failed == nil || errors.Is(failed, errInterrupted):
		failed = errors.Join(failed, os.RemoveAll(d.logs))
	default:
		for _, m := range d.members() {
			for _, p := range m.Processes() {
				failed = fmt.Errorf("%w\n\nThe log of %s ends:\n%s", failed, p, p.LogTail())
			}
		}
		failed = fmt.Errorf("%w\n\nAll logs are in %s", failed, d.logs)
	}
	if d.lab == nil {
		return failed
	}
	return errors.Join(failed, d.lab.Close())
}

// progressf prints a step of the start and the time since the begin.
func (d *demo) progressf(format string, args ...any) {
	d.printf("  %5.1f s  %s\n", time.Since(d.begin).Seconds(), fmt.Sprintf(format, args...))
}

// afterf prints what was found, and the time since its cause.
func (d *demo) afterf(format string, args ...any) {
	d.printf("  %4d ms  %s\n", time.Since(d.step).Milliseconds(), fmt.Sprintf(format, args...))
}

// linef prints a line below.
func (d *demo) linef(format string, args ...any) { d.printf("           "+format+"\n", args...) }

func (d *demo) printf(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	fmt.Fprintf(d.out, format, args...)
}

// guide returns what there is to try.
func (d *demo) guide() (string, error) {
	export := serviceExport("web")
	export.APIVersion, export.Kind = "multicluster.x-k8s.io/v1beta1", "ServiceExport"
	manifest, err := yaml.Marshal(export)
	if err != nil {
		return "", err
	}
	file := filepath.Join(d.lab.Folder(), "export-web.yaml")
	if err := os.WriteFile(file, manifest, 0o600); err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(d.b.dns)
	if err != nil {
		return "", err
	}
	kubectl := "kubectl"
	if path, err := findProgram(kubectl); err == nil {
		if _, err := exec.LookPath(kubectl); err != nil {
			kubectl = path
		}
	}
	var text strings.Builder
	err = demoGuide.Execute(&text, map[string]string{
		"Hub": d.hub.Kubeconfig(), "A": d.a.Kubeconfig(), "B": d.b.Kubeconfig(),
		"Port": port, "Export": file, "Kubectl": kubectl, "Logs": filepath.Join(d.logs, "cluster-*", "*.log"),
	})
	return text.String(), err
}

var demoGuide = template.Must(template.New("guide").Parse(`
All of this goes on running until "make demo-down". To look around:

  export HUB={{.Hub}}
  export A={{.A}}
  export B={{.B}}

  {{.Kubectl}} --kubeconfig $B -n demo get serviceimports,services,endpointslices
  {{.Kubectl}} --kubeconfig $HUB get members,heartbeats,publishedservices --all-namespaces
  dig @127.0.0.1 -p {{.Port}} +short web.demo.svc.clusterset.local
  dig @127.0.0.1 -p {{.Port}} +short db-0.cluster-a.db.demo.svc.clusterset.local AAAA
  dig @127.0.0.1 -p {{.Port}} +short _sql._tcp.db.demo.svc.clusterset.local SRV

Let cluster-b export its own web as well, whose ports differ, and read what both clusters say about it:

  {{.Kubectl}} --kubeconfig $B apply -f {{.Export}}
  {{.Kubectl}} --kubeconfig $A -n demo get serviceexport web -o yaml

Withdraw it in cluster-a, and see what stays:

  {{.Kubectl}} --kubeconfig $A -n demo delete serviceexport web
  {{.Kubectl}} --kubeconfig $B -n demo get endpointslices

The logs of the agents and of CoreDNS are in {{.Logs}}
`))
