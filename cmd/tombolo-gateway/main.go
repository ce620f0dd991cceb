// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Command tombolo-gateway forwards connections between this cluster and the gateways of other clusters.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/tombolo-mcs/tombolo/cmd/tombolo-gateway/gateway"
	"github.com/tombolo-mcs/tombolo/internal/gateway/budget"
	"github.com/tombolo-mcs/tombolo/internal/gateway/tunnel"
)

// version is set in a release build.
var version string

func main() {
	// If all processors are busy with streams, Go serves the network only every 10 ms: spare ones let small requests pass.
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(4 * runtime.GOMAXPROCS(0))
	}
	options, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		err = gateway.Run(ctrl.SetupSignalHandler(), options)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "tombolo-gateway:", err)
		os.Exit(1)
	}
}

// parse returns the options of the command line and the environment.
func parse(args []string) (gateway.Options, error) {
	flags := flag.NewFlagSet("tombolo-gateway", flag.ContinueOnError)
	options := gateway.Options{
		Namespace: os.Getenv("POD_NAMESPACE"), PodName: os.Getenv("POD_NAME"), PodUID: os.Getenv("POD_UID"), Registry: metrics.Registry,
	}
	if ips := os.Getenv("POD_IPS"); ips != "" {
		options.PodIPs = strings.Split(ips, ",")
	}
	kubeconfig := flags.String("kubeconfig", "", "kubeconfig of the cluster; empty if the gateway runs in it")
	verbosity := flags.Int("v", 0, "log verbosity: 0 for operators, 1 logs each connection of another gateway that ends")
	flags.StringVar(&options.Listen, "bind-address", ":8443", "address for the gateways of other clusters")
	flags.StringVar(&options.MetricsAddress, "metrics-bind-address", ":8080", "address of the Prometheus metrics; 0 disables them")
	flags.BoolVar(&options.MetricsAuth, "metrics-auth", false, "serve the metrics by HTTPS, and only to clients with a token of an account that may get /metrics. The gateway needs the rights of manifests/metrics-auth for it")
	flags.StringVar(&options.ProbeAddress, "health-probe-bind-address", ":8081", "address of /healthz and /readyz; 0 disables them")
	flags.DurationVar(&options.DrainTimeout, "drain-timeout", 50*time.Second, "how long a gateway that stops waits for its streams. It must be less than the pod's terminationGracePeriodSeconds")
	flags.IntVar(&options.MaxStreams, "max-streams", 20_000, "largest number of streams in each direction. Of those to other clusters, the last quarter is for clusters with less than an eighth of this number")
	flags.IntVar(&options.MaxStreamsEach, "max-streams-each", 5_000, "largest number of streams of one client address, and of one other cluster")
	flags.IntVar(&options.LargeBuffers, "large-buffers", 0, "largest number of buffers of 256 KiB; 0 for 5 % of the memory limit of the container. If all are in use, streams use buffers of 20 KiB, of as much memory, and then of 5 KiB, of which each stream has enough")
	streamMemory := flags.Int64("stream-memory", 0, "memory of the streams of both directions in MiB, of which one client address or other cluster can use half; 0 for 55 % of the memory limit of the container. If it is used up, new streams are refused. The limit is the environment variable GOMEMLIMIT, otherwise that of the cgroup, otherwise 1 GiB")
	access := flags.Bool("access-log", false, "write a line as JSON to the standard output for each stream that has ended")
	if err := flags.Parse(args); err != nil {
		return options, err
	}
	streams, buffers := budget.SetLimit()
	options.StreamMemory = cmp.Or(*streamMemory<<20, streams)
	options.LargeBuffers = cmp.Or(options.LargeBuffers, int(buffers/tunnel.LargeSize))
	if flags.NArg() > 0 {
		return options, fmt.Errorf("unexpected argument %q: see --help", flags.Arg(0))
	}
	options.Log = logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.Level(-*verbosity)}))
	if *access {
		options.AccessLog = slog.New(slog.NewJSONHandler(os.Stdout, nil))
	}
	ctrl.SetLogger(options.Log)
	klog.SetLogger(options.Log)
	options.Log.Info("starting", "version", version)
	var err error
	options.Cluster, err = clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if *kubeconfig == "" && errors.Is(err, rest.ErrNotInCluster) {
		err = nil // Validate says what to do
	}
	return options, err
}
