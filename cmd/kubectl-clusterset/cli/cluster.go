// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/install"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	aboutv1beta1 "github.com/tombolo-mcs/tombolo/pkg/api/about/v1beta1"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// requestTimeout is the timeout of a request to an API server.
const requestTimeout = 30 * time.Second

// cluster is an API server that a command uses.
type cluster struct {
	what    string // "the hub" or "this cluster"
	config  *rest.Config
	client  client.Client
	install install.Installer
	version *version.Version
}

// hubFlags select the hub. All other connection flags are those of kubectl, and select the cluster of the command.
type hubFlags struct{ kubeconfig, context string }

func (f *hubFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.kubeconfig, "hub-kubeconfig", "", "kubeconfig of the hub, with an administrator's rights; defaults to --kubeconfig")
	flags.StringVar(&f.context, "hub-context", "", "context of the hub; defaults to the current context of --hub-kubeconfig, which is then required")
}

// errNoHub is returned if neither flag is given: the current context is that of the member.
var errNoHub = errors.New("which API server is the hub? Pass --hub-context, --hub-kubeconfig, or both")

// config returns the client configuration of the hub.
func (f *hubFlags) config(usual *genericclioptions.ConfigFlags) (*rest.Config, error) {
	if f.kubeconfig == "" && f.context == "" {
		return nil, usageError{errNoHub}
	}
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig, flags.Context = &f.kubeconfig, &f.context
	if f.kubeconfig == "" {
		flags.KubeConfig = usual.KubeConfig
	}
	return flags.ToRESTConfig()
}

// newScheme returns a scheme with the kinds that the commands read and write.
func newScheme() (*runtime.Scheme, error) {
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

// explained is an error with the text of survey.FailureOf.
type explained struct {
	error
	text string
}

func (e explained) Error() string { return e.text }

func (e explained) Unwrap() error { return e.error }

// connect returns a cluster whose API server answers. what is its name in messages, flags are the flags that select it.
func connect(what, flags string, config *rest.Config, o writeFlags) (*cluster, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.Timeout = requestTimeout
	config.QPS, config.Burst = -1, -1 // a user waits, and the API server has its own limits
	config.UserAgent = "kubectl-clusterset"
	if !o.isDryRun() {
		config.Wrap(noted)
	}
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	soon := rest.CopyConfig(config)
	soon.Timeout = identifyTimeout // a request of discovery has no context
	d, err := discovery.NewDiscoveryClientForConfig(soon)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	info, err := d.ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("%s at %s does not answer: %w: check %s", what, config.Host, explained{err, survey.FailureOf(err, "").Message}, flags)
	}
	served, err := version.ParseGeneric(info.String())
	if err != nil {
		return nil, fmt.Errorf("%s: version %q: %w", what, info.String(), err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return &cluster{what, config, c, o.installer(c), served}, nil
}

// writeFlags are the flags of all commands that write.
type writeFlags struct {
	dryRunFlags
	force bool
}

func (o *writeFlags) addFlags(cmd *cobra.Command) {
	o.dryRunFlags.addFlags(cmd)
	cmd.Flags().BoolVar(&o.force, "force-conflicts", false, "overwrite changes that others have made to objects of this command, and list them; replicas, resources and scheduling stay")
}

func (o writeFlags) installer(c client.Client) install.Installer {
	i := install.New(c).DryRun(o.dryRun)
	if o.force {
		i = i.Force()
	}
	return i
}
