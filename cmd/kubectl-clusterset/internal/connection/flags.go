// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/install"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/output"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// HubFlags select the hub. All other connection flags are those of kubectl, and select the cluster of the command.
type HubFlags struct{ Kubeconfig, Context string }

// AddFlags adds the flags that select the hub.
func (f *HubFlags) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&f.Kubeconfig, "hub-kubeconfig", "", "kubeconfig of the hub, with an administrator's rights; defaults to --kubeconfig")
	flags.StringVar(&f.Context, "hub-context", "", "context of the hub; defaults to the current context of --hub-kubeconfig, which is then required")
}

// errNoHub is returned if neither flag is given: the current context is the context of the member.
var errNoHub = errors.New("which API server is the hub? Pass --hub-context, --hub-kubeconfig, or both")

// Config returns the client configuration of the hub.
func (f *HubFlags) Config(usual *genericclioptions.ConfigFlags) (*rest.Config, error) {
	if f.Kubeconfig == "" && f.Context == "" {
		return nil, output.Usage(errNoHub)
	}
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig, flags.Context = &f.Kubeconfig, &f.Context
	if f.Kubeconfig == "" {
		flags.KubeConfig = usual.KubeConfig
	}
	return flags.ToRESTConfig()
}

// WriteFlags are the flags of all commands that write.
type WriteFlags struct {
	output.DryRunFlags
	force bool
}

// AddFlags adds the flags for a dry run and for conflicts.
func (o *WriteFlags) AddFlags(cmd *cobra.Command) {
	o.DryRunFlags.AddFlags(cmd)
	cmd.Flags().BoolVar(&o.force, "force-conflicts", false, "overwrite changes that others have made to objects of this command, and list them; replicas, resources and scheduling stay")
}

func (o WriteFlags) installer(c client.Client) install.Installer {
	i := install.New(c).DryRun(o.DryRun)
	if o.force {
		i = i.Force()
	}
	return i
}

// ServiceKey parses NAMESPACE/SERVICE. The namespace defaults to -n, then to the context.
func ServiceKey(usual *genericclioptions.ConfigFlags, text string) (clusterset.ServiceKey, error) {
	namespace, name, found := strings.Cut(text, "/")
	if !found {
		name = text
		var err error
		if namespace, _, err = usual.ToRawKubeConfigLoader().Namespace(); err != nil {
			return clusterset.ServiceKey{}, output.Usage(err)
		}
	}
	if namespace == "" || name == "" || strings.Contains(name, "/") {
		return clusterset.ServiceKey{}, output.Usage(fmt.Errorf("%q is no service: pass NAMESPACE/SERVICE", text))
	}
	if given := *usual.Namespace; given != "" && given != namespace {
		return clusterset.ServiceKey{}, output.Usage(fmt.Errorf("%s is in namespace %s, and --namespace=%s: leave out one of the two", text, namespace, given))
	}
	if err := checkName(name); err != nil {
		return clusterset.ServiceKey{}, output.Usage(err)
	}
	return clusterset.ServiceKey{Namespace: namespace, Name: name}, nil
}

// checkName returns an error if no Service can have a name.
func checkName(name string) error {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return fmt.Errorf("no Service can have the name %q: it must consist of at most 63 lower case letters, digits and hyphens; see kubectl get services", name)
	}
	return nil
}
