// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Command tombolo-agent makes a cluster a member of a clusterset: it publishes the exports of the cluster and imports the
// exports of the other members.
package main

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/tombolo-mcs/tombolo/controllers/agent"
	"github.com/tombolo-mcs/tombolo/controllers/autoexport"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// version is set in a release build.
var version string

func main() {
	options, checks, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	switch {
	case err != nil:
	case checks.hub.server != "":
		err = checks.hub.run(ctrl.SetupSignalHandler())
	case checks.network != (networkCheck{}):
		err = checks.network.run(ctrl.SetupSignalHandler(), os.Stdout)
	default:
		saveMemory()
		err = agent.Run(ctrl.SetupSignalHandler(), options)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "tombolo-agent:", err)
		os.Exit(1)
	}
}

// saveMemory makes Go collect garbage earlier from 30 seconds after the start on, unless GOGC is set. That saves about a quarter of the
// memory of imports. Before, while the heap grows, it would make the start slower.
func saveMemory() {
	const afterStart, percent = 30 * time.Second, 50
	if os.Getenv("GOGC") == "" {
		time.AfterFunc(afterStart, func() { debug.SetGCPercent(percent) })
	}
}

// parse returns the options of the command line and the environment, or the checks to run instead of the agent.
func parse(args []string) (agent.Options, checks, error) {
	flags := flag.NewFlagSet("tombolo-agent", flag.ContinueOnError)
	options := agent.Options{Registry: metrics.Registry, Version: versionOf(version), Pod: agent.Pod{Name: os.Getenv("POD_NAME"), UID: os.Getenv("POD_UID")}}
	var to clusters
	flags.StringVar(&to.kubeconfig, "kubeconfig", "", "kubeconfig of the member cluster; empty if the agent runs in it")
	flags.StringVar(&to.hubKubeconfig, "hub-kubeconfig", "", "kubeconfig of the hub, with the member's own credentials")
	flags.BoolVar(&to.hubInCluster, "hub-in-cluster", false, "the agent runs on the hub, in the member's namespace and with the member's ServiceAccount, and keeps its lease there; replaces --hub-kubeconfig")
	hubSecret := flags.String("hub-secret", "", "name of the Secret in the agent's namespace from which --hub-kubeconfig is mounted; the agent renews its token")
	flags.DurationVar(&options.TokenLifetime, "hub-token-lifetime", clusterset.TokenLifetime, "lifetime of a token for the hub, at most 72h; the agent renews it after a third of the lifetime, so the hub may be down for the rest")
	serviceCIDRs := flags.String("service-cidrs", "", "comma-separated ranges of the cluster's Services; defaults to the cluster's ServiceCIDRs (Kubernetes 1.33 and later)")
	allow := flags.String("allow-namespaces", "", "comma-separated namespaces of imports; defaults to all")
	deny := flags.String("deny-namespaces", "", "comma-separated namespaces without imports, besides kube-system, kube-public, kube-node-lease, tombolo-system, member-* and the agent's own")
	domains := flags.String("allow-metadata-domains", "", "comma-separated domains, such as example.com, whose exported labels and annotations are imported, besides keys without a domain. A domain does not include its subdomains")
	defaultSources := flags.String("default-sources", "", "comma-separated sources, the preferred ones first, of imports without a ServiceImportRoutingPolicy: SameCluster, SameProperty=NAME, and Any as the last one, such as SameCluster,SameProperty=region,Any; defaults to all exporters together")
	autoExport := flags.Bool("auto-export", false, "export each Service with the label tombolo-mcs.io/auto-export=true, or whose Namespace has the label, if the Service has no other value. This needs the rights of manifests/autoexport")
	flags.IntVar(&options.AutoExportLimit, "auto-export-limit", autoexport.DefaultLimit, "number of Services of a namespace that are exported by label")
	gateways := flags.String("gateway-address", "", "comma-separated addresses at which other members reach the gateways of this cluster, such as gateway.example.com or 198.51.100.1:8443; the port defaults to 443. Defaults to the addresses of the Service tombolo-gateway")
	selector := flags.String("derived-selector", string(clusterset.NoSelector), "none, or oldest: derived Services get the selector of the oldest export, "+
		"so that matching pods of this cluster serve them, also without an export. This is not part of the Multi-Cluster Services API")
	elect := flags.Bool("leader-elect", true, "elect a leader among replicas")
	logFormat := flags.String("log-format", "json", "json or text")
	logLevel := flags.Int("v", 0, "log verbosity: 0 for operators, 1 logs every write, 2 and more for debugging")
	flags.StringVar(&options.ClusterID, "cluster-id", "", "the cluster's ID, if it has no ClusterProperty cluster.clusterset.k8s.io")
	flags.StringVar(&options.Namespace, "namespace", os.Getenv("POD_NAMESPACE"), "the agent's own namespace (default $POD_NAMESPACE)")
	var check checks
	check.addFlags(flags)
	flags.IntVar(&options.Workers, "workers", 8, "number of services that each controller reconciles at a time")
	flags.DurationVar(&options.HeartbeatInterval, "heartbeat-interval", 10*time.Second, "time between heartbeats on the hub, with up to 100 members. With more, it is longer in proportion, at most 5m. A member is silent after four intervals")
	flags.DurationVar(&options.AbsentTimeout, "absent-member-timeout", time.Hour, "time after which the imports from a member without a Member on the hub are deleted, if its deletion was not watched")
	flags.StringVar(&options.MetricsAddress, "metrics-bind-address", ":8080", "address of the Prometheus metrics; 0 disables them")
	flags.BoolVar(&options.MetricsAuth, "metrics-auth", false, "serve the metrics by HTTPS, and only to accounts that may get /metrics. This needs the rights of manifests/metrics-auth")
	flags.StringVar(&options.ProbeAddress, "health-probe-bind-address", ":8081", "address of /healthz and /readyz; 0 disables them")
	flags.StringVar(&options.ClusterDNS, "cluster-dns", "", "HOST:PORT of the DNS server that is queried for names of the clusterset, for a metric and an alert; none for no queries. Defaults to the DNS of the agent's pod, if it is the DNS of the cluster's pods")
	flags.StringVar(&options.ProfileAddress, "pprof-address", "0", "address of Go's profiles, such as 127.0.0.1:6060; 0 disables them. They show the agent's memory")
	if err := flags.Parse(args); err != nil {
		return options, check, err
	}
	if flags.NArg() > 0 {
		return options, check, fmt.Errorf("unexpected argument %q: see --help", flags.Arg(0))
	}
	options.Selector = clusterset.DerivedSelector(*selector)
	if *hubSecret != "" {
		options.HubSecret = types.NamespacedName{Namespace: options.Namespace, Name: *hubSecret}
	}
	options.Election = agent.RunAlone
	if *elect {
		options.Election = agent.ElectLeader
	}
	if *autoExport {
		options.AutoExport = agent.AutoExportLabel
	}
	options.ServiceCIDRs, options.AllowNamespaces, options.DenyNamespaces = list(*serviceCIDRs), list(*allow), list(*deny)
	options.MetadataDomains, options.GatewayAddresses, options.DefaultSources = list(*domains), list(*gateways), list(*defaultSources)
	var err error
	if options.Log, err = newLogger(*logFormat, *logLevel); err != nil {
		return options, check, err
	}
	if check != (checks{}) {
		return options, check, nil // the pod has no rights on its own API server
	}
	err = to.connect(&options)
	return options, check, err
}

// checks are what a pod of "kubectl clusterset" checks, instead of running the agent.
type checks struct {
	hub     hubCheck
	network networkCheck
}

func (c *checks) addFlags(flags *flag.FlagSet) {
	flags.StringVar(&c.hub.server, "check-hub", "", "check that the hub at this URL can be reached, and exit")
	flags.StringVar(&c.hub.ca, "check-hub-ca", "", "certificate authority of that URL, PEM in base64")
	flags.StringVar(&c.network.listen, "check-network-listen", "", "echo the data that is sent to this address, and do nothing else")
	flags.StringVar(&c.network.reach, "check-network-reach", "", "check that these comma-separated addresses echo data, and exit")
}

// clusters are the flags that select the member and the hub.
type clusters struct {
	kubeconfig, hubKubeconfig string
	hubInCluster              bool
}

// connect sets the client configurations. Validate reports missing ones.
func (c clusters) connect(options *agent.Options) error {
	var err error
	if c.hubInCluster {
		if c.kubeconfig == "" || c.hubKubeconfig != "" {
			return errors.New("--hub-in-cluster: pass --kubeconfig, which leads to the member, and no --hub-kubeconfig")
		}
		if options.Hub, err = config(""); err != nil {
			return fmt.Errorf("--hub-in-cluster: %w", err)
		}
		if options.Hub == nil {
			return errors.New("--hub-in-cluster: this is no pod of a cluster")
		}
		options.AgentCluster = options.Hub
	}
	if options.Member, err = config(c.kubeconfig); err != nil {
		return fmt.Errorf("--kubeconfig: %w", err)
	}
	if c.hubKubeconfig == "" {
		return nil
	}
	if options.Hub, err = config(c.hubKubeconfig); err != nil {
		return fmt.Errorf("--hub-kubeconfig: %w", err)
	}
	return nil
}

// list returns the parts of a comma-separated list, nil for the empty one.
func list(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// config returns the client configuration of a kubeconfig, or of the cluster in which the process runs; nil outside of a cluster.
func config(kubeconfig string) (*rest.Config, error) {
	if kubeconfig != "" {
		return clientcmd.BuildConfigFromFlags("", kubeconfig)
	}
	inCluster, err := rest.InClusterConfig()
	if errors.Is(err, rest.ErrNotInCluster) {
		return nil, nil
	}
	return inCluster, err
}

// newLogger returns the logger of the process, which the libraries use too.
func newLogger(format string, verbosity int) (logr.Logger, error) {
	options := &slog.HandlerOptions{Level: slog.Level(-verbosity), ReplaceAttr: showHidden}
	var handler slog.Handler
	switch format {
	case "json":
		handler = slog.NewJSONHandler(os.Stderr, options)
	case "text":
		handler = slog.NewTextHandler(os.Stderr, options)
	default:
		return logr.Logger{}, fmt.Errorf("--log-format=%s: must be json or text", format)
	}
	logger := logr.FromSlogHandler(handler)
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	return logger, nil
}

// versionOf returns the release, or the commit of the build.
func versionOf(release string) string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				return "dev-" + setting.Value[:min(12, len(setting.Value))]
			}
		}
	}
	return "dev"
}
