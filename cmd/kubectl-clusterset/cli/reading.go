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

// answerTime is how long a cluster that is merely asked who it is may take.
const answerTime = 5 * time.Second

// errNoContexts says that there is nobody to ask.
var errNoContexts = errors.New("the kubeconfig has no contexts: pass --kubeconfig, or set KUBECONFIG")

// reading are the flags of the verbs that look at the whole clusterset.
type reading struct {
	at       hubFlags
	contexts []string
}

func (o *reading) addFlags(flags *pflag.FlagSet) {
	o.at.add(flags)
	flags.Lookup("hub-context").Usage = "context of the hub; defaults to the one of --contexts that is a hub"
	flags.Lookup("hub-kubeconfig").Usage = "kubeconfig of the hub; defaults to --kubeconfig"
	flags.StringSliceVar(&o.contexts, "contexts", nil, "comma-separated contexts of the members to read; defaults to all of the kubeconfig")
}

// find returns what can be seen of the clusterset. Places that do not answer are told on warnings.
func (o *reading) find(ctx context.Context, usual *genericclioptions.ConfigFlags, warnings io.Writer) (*survey.Clusterset, error) {
	if *usual.Context != "" {
		return nil, usageError{fmt.Errorf("--context=%s: this command reads the whole clusterset; pass --contexts for the members to read, and --hub-context for the hub", *usual.Context)}
	}
	places, err := o.places(usual)
	if err != nil {
		return nil, usageError{err}
	}
	var hub *survey.Place
	if o.at.kubeconfig != "" || o.at.context != "" {
		config, err := o.at.config(usual)
		if err != nil {
			return nil, usageError{err}
		}
		hub = &survey.Place{Name: o.hubName(), Config: config}
	}
	found, err := survey.Find(ctx, places, hub, answerTime)
	if err != nil {
		return nil, err
	}
	for _, u := range found.Unreached {
		fmt.Fprintf(warnings, "note: context %s is left out: %v\n", u.Place, u.Err)
	}
	return found, nil
}

func (o *reading) hubName() string {
	if o.at.context != "" {
		return o.at.context
	}
	return o.at.kubeconfig
}

// places returns where to look, in the order of their names.
func (o *reading) places(usual *genericclioptions.ConfigFlags) ([]survey.Place, error) {
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
	var places []survey.Place
	for _, name := range names {
		config, err := contextConfig(usual, name)
		if err != nil {
			return nil, fmt.Errorf("context %q: %w", name, err)
		}
		places = append(places, survey.Place{Name: name, Config: config})
	}
	return places, nil
}

func contextConfig(usual *genericclioptions.ConfigFlags, name string) (*rest.Config, error) {
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig, flags.Context = usual.KubeConfig, &name
	return flags.ToRESTConfig()
}

// serviceKey reads NAMESPACE/SERVICE; a name alone is in the namespace of -n, or of the context.
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
