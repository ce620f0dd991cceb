// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/controllers/metricsauth"
	aboutv1beta1 "github.com/tombolo-mcs/tombolo/pkg/api/about/v1beta1"
	gatewayv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/gateway/v1alpha1"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
)

// name is the agent's name in Events, leases and requests.
const name = "tombolo-agent"

// shutdownTimeout is how long the manager waits for its runnables when the agent stops. It is shorter than the 30 s after which a
// kubelet kills the pod, so the lease is released in any case. An agent that stops while it adds its controllers may need all of
// it: the manager can deadlock then, because it adds a runnable and stops the group under one RWMutex.
const shutdownTimeout = 10 * time.Second

// Run runs an agent until ctx ends; then it returns nil. It returns an error if the options are invalid, the lease is lost, or the
// cluster ID changes. It waits for whatever is missing or unreachable.
func Run(ctx context.Context, options Options) error {
	if err := options.Validate(); err != nil {
		return err
	}
	ctx = log.IntoContext(ctx, options.Log)
	scheme, err := Scheme()
	if err != nil {
		return err
	}
	member := rest.CopyConfig(options.Member)
	member.QPS = -1 // the API server's Priority and Fairness protects it
	// Large lists take longer to compress than to send within a cluster. An agent that runs in the hub's cluster is far from its member.
	member.DisableCompression = options.AgentCluster == nil
	member.UserAgent = name
	metrics := metricsserver.Options{BindAddress: options.MetricsAddress}
	if options.MetricsAuth {
		metrics = metricsauth.Options(options.MetricsAddress)
	}
	own, err := newHolder(options.Pod)
	if err != nil {
		return err
	}
	lock, err := newLease(cmp.Or(options.AgentCluster, member), options.Namespace, own)
	if err != nil {
		return err
	}
	defer lock.stop()
	read := informers{options.Log, member, make(kindChanges, 1), &retainedRules{log: options.Log}}
	mgr, err := manager.New(member, manager.Options{
		Scheme:                 scheme,
		Logger:                 options.Log,
		Cache:                  cache.Options{DefaultTransform: caches.Compact, NewInformer: read.indexed()},
		Metrics:                metrics,
		HealthProbeBindAddress: options.ProbeAddress,
		PprofBindAddress:       options.ProfileAddress,
		LeaderElection:         options.Election == ElectLeader,
		LeaderElectionID:       name,

		LeaderElectionResourceLockInterface: lock,
		LeaderElectionReleaseOnCancel:       true,
		GracefulShutdownTimeout:             new(shutdownTimeout),
		Controller:                          config.Controller{SkipNameValidation: new(true)}, // several agents may share a process
	})
	if err != nil {
		return fmt.Errorf("set up the agent: %w", err)
	}
	start := &starter{manager: mgr, options: options, since: time.Now(), own: own, informers: read}
	if options.Election == ElectLeader {
		start.lease = lock
	}
	if err := errors.Join(
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("started", func(*http.Request) error { return start.check() }),
		mgr.Add(start),
	); err != nil {
		return fmt.Errorf("set up the agent: %w", err)
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run the agent: %w", err)
	}
	return nil
}

// Scheme returns the kinds that an agent uses in its own cluster.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(
		clientgoscheme.AddToScheme(scheme),
		mcsv1beta1.Install(scheme),
		aboutv1beta1.AddToScheme(scheme),
		gatewayv1alpha1.AddToScheme(scheme),
		policyv1alpha1.AddToScheme(scheme),
	); err != nil {
		return nil, fmt.Errorf("build the scheme: %w", err)
	}
	return scheme, nil
}
