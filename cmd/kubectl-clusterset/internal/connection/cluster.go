// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package connection connects to the API servers of a command: the hub, and the cluster of the kubeconfig flags.
package connection

import (
	"context"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/install"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/output"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/apiserver"
	"github.com/tombolo-mcs/tombolo/internal/apply"
	aboutv1beta1 "github.com/tombolo-mcs/tombolo/pkg/api/about/v1beta1"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// RequestTimeout is the timeout of a request to an API server.
const RequestTimeout = 30 * time.Second

// IdentifyTimeout limits the time to identify a cluster.
const IdentifyTimeout = 5 * time.Second

// Cluster is an API server that a command uses.
type Cluster struct {
	What    string // "the hub" or "this cluster"
	Config  *rest.Config
	Client  client.Client
	Install install.Installer
	Version *version.Version
}

// NewScheme returns a scheme with the kinds that the commands read and write.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientscheme.AddToScheme, apiextensionsv1.AddToScheme, mcsv1beta1.Install, aboutv1beta1.AddToScheme, hubv1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
}

// explainedError is an error with the text of apiserver.FailureOf.
type explainedError struct {
	error
	text string
}

func (e explainedError) Error() string { return e.text }

func (e explainedError) Unwrap() error { return e.error }

// Explained returns an error with the text of apiserver.FailureOf.
func Explained(err error) error { return explainedError{err, apiserver.FailureOf(err, "").Message} }

// IsAbsent reports whether an object or its kind does not exist.
func IsAbsent(err error) bool { return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) }

// Open returns a cluster whose API server answers. what is its name in messages, flags are the flags that select it.
func Open(what, flags string, config *rest.Config, o WriteFlags) (*Cluster, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.Timeout = RequestTimeout
	config.QPS, config.Burst = -1, -1 // a user waits, and the API server has its own limits
	config.UserAgent = "kubectl-clusterset"
	if !o.IsDryRun() {
		config.Wrap(noted)
	}
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	soon := rest.CopyConfig(config)
	soon.Timeout = IdentifyTimeout // a request of discovery has no context
	d, err := discovery.NewDiscoveryClientForConfig(soon)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	info, err := d.ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("%s at %s does not answer: %w: check %s", what, config.Host, Explained(err), flags)
	}
	served, err := version.ParseGeneric(info.String())
	if err != nil {
		return nil, fmt.Errorf("%s: version %q: %w", what, info.String(), err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return &Cluster{what, config, c, o.installer(c), served}, nil
}

// OpenMember connects to the cluster of the kubeconfig flags, which is a member or is to become one.
func OpenMember(usual *genericclioptions.ConfigFlags, o WriteFlags) (*Cluster, error) {
	return openUsual("this cluster", usual, o)
}

// OpenHub connects to the cluster of the kubeconfig flags, which is a hub or is to become one.
func OpenHub(usual *genericclioptions.ConfigFlags, o WriteFlags) (*Cluster, error) {
	return openUsual("the hub", usual, o)
}

func openUsual(what string, usual *genericclioptions.ConfigFlags, o WriteFlags) (*Cluster, error) {
	config, err := usual.ToRESTConfig()
	if err != nil {
		return nil, output.Usage(err)
	}
	return Open(what, "--kubeconfig and --context", config, o)
}

// OpenBoth connects to the hub and to the cluster of the kubeconfig flags.
func OpenBoth(usual *genericclioptions.ConfigFlags, flags *HubFlags, o WriteFlags) (hub, member *Cluster, err error) {
	hubConfig, err := flags.Config(usual)
	if err != nil {
		return nil, nil, err
	}
	config, err := usual.ToRESTConfig()
	if err != nil {
		return nil, nil, output.Usage(err)
	}
	if hub, err = Open("the hub", "--hub-kubeconfig and --hub-context", hubConfig, o); err != nil {
		return nil, nil, err
	}
	if member, err = Open("this cluster", "--kubeconfig and --context", config, o); err != nil {
		return nil, nil, err
	}
	return hub, member, nil
}

// pollTimeout limits the time until a cluster has processed a write, which usually takes seconds.
const pollTimeout = 2 * time.Minute

// Poll calls done until it returns true or an error, or until pollTimeout.
func Poll(ctx context.Context, done wait.ConditionWithContextFunc) error {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	return PollUntilEnd(ctx, done)
}

// PollUntilEnd calls done until it returns true or an error, or until the context ends.
func PollUntilEnd(ctx context.Context, done wait.ConditionWithContextFunc) error {
	return wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, done)
}

// IgnoreTransient returns nil for errors that may not occur again. An API server that is starting refuses some objects as invalid.
func IgnoreTransient(err error) error {
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apply.IsFinal(err) {
		return err
	}
	return nil
}
