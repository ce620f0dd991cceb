// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// identifyTimeout limits the time to identify a cluster.
const identifyTimeout = 5 * time.Second

// errNoContexts is returned if there is no cluster to read.
var errNoContexts = errors.New("the kubeconfig has no contexts: pass --kubeconfig, or set KUBECONFIG")

// clustersetFlags are the flags of the commands that read the whole clusterset.
type clustersetFlags struct {
	hubFlags hubFlags
	contexts []string
}

func (o *clustersetFlags) addFlags(flags *pflag.FlagSet) {
	o.hubFlags.add(flags)
	flags.Lookup("hub-context").Usage = "context of the hub; defaults to the one of --contexts that is a hub"
	flags.Lookup("hub-kubeconfig").Usage = "kubeconfig of the hub; defaults to --kubeconfig"
	flags.StringSliceVar(&o.contexts, "contexts", nil, "comma-separated contexts of the members to read; defaults to all of the kubeconfig")
}

// find returns the reachable part of the clusterset. It reports the contexts that are left out on warnings.
func (o *clustersetFlags) find(ctx context.Context, usual *genericclioptions.ConfigFlags, warnings io.Writer) (*survey.Clusterset, error) {
	if *usual.Context != "" {
		return nil, usageError{fmt.Errorf("--context=%s: this command reads the whole clusterset; pass --contexts for the members to read, and --hub-context for the hub", *usual.Context)}
	}
	contexts, err := o.kubeContexts(usual)
	if err != nil {
		return nil, usageError{err}
	}
	var hub *survey.KubeContext
	if o.hubFlags.kubeconfig != "" || o.hubFlags.context != "" {
		config, err := o.hubFlags.config(usual)
		if err != nil {
			return nil, usageError{err}
		}
		hub = &survey.KubeContext{Name: o.hubName(), Config: config}
	}
	found, err := survey.Find(ctx, contexts, hub, identifyTimeout)
	if err != nil {
		return nil, err
	}
	for _, u := range found.Unreached {
		fmt.Fprintf(warnings, "note: context %s is left out: %v\n", u.Context, u.Err)
	}
	return found, nil
}

func (o *clustersetFlags) hubName() string {
	if o.hubFlags.context != "" {
		return o.hubFlags.context
	}
	return o.hubFlags.kubeconfig
}

// kubeContexts returns the contexts to read, sorted by name unless --contexts is given.
func (o *clustersetFlags) kubeContexts(usual *genericclioptions.ConfigFlags) ([]survey.KubeContext, error) {
	known, err := usual.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, err
	}
	names := o.contexts
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(known.Contexts))
	}
	if len(names) == 0 {
		return nil, errNoContexts
	}
	var contexts []survey.KubeContext
	for _, name := range names {
		config, err := contextConfig(usual, name)
		if err != nil {
			return nil, fmt.Errorf("context %q: %w", name, err)
		}
		contexts = append(contexts, survey.KubeContext{Name: name, Config: config})
	}
	return contexts, nil
}

func contextConfig(usual *genericclioptions.ConfigFlags, name string) (*rest.Config, error) {
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig, flags.Context = usual.KubeConfig, &name
	return flags.ToRESTConfig()
}

// serviceKey parses NAMESPACE/SERVICE. The default namespace is that of -n, or of the context.
func serviceKey(usual *genericclioptions.ConfigFlags, text string) (clusterset.ServiceKey, error) {
	namespace, name, found := strings.Cut(text, "/")
	if !found {
		name = text
		var err error
		if namespace, _, err = usual.ToRawKubeConfigLoader().Namespace(); err != nil {
			return clusterset.ServiceKey{}, usageError{err}
		}
	}
	if namespace == "" || name == "" || strings.Contains(name, "/") {
		return clusterset.ServiceKey{}, usageError{fmt.Errorf("%q is no service: pass NAMESPACE/SERVICE", text)}
	}
	if given := *usual.Namespace; given != "" && given != namespace {
		return clusterset.ServiceKey{}, usageError{fmt.Errorf("%s is in namespace %s, and --namespace=%s: leave out one of the two", text, namespace, given)}
	}
	return clusterset.ServiceKey{Namespace: namespace, Name: name}, nil
}
