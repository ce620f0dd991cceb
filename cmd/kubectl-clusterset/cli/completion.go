// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// completionTimeout limits the requests for one completion: a user waits for it at the prompt.
const completionTimeout = 3 * time.Second

// completer completes arguments and flags with what the clusters of the kubeconfig have. If a cluster does not answer, it completes what
// the others have, and names that cluster in an active help, which a shell shows below the completions. The exit code is 0 then: a shell, and
// kubectl, ignore the completions of a command that fails.
type completer struct {
	usual *genericclioptions.ConfigFlags
}

type completion = func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective)

// proposals are values for a completion, and why some could not be read.
type proposals struct {
	values  []string
	failure error
}

// completeWith returns a completion of values that are read when the user asks for them, from several sources in parallel.
func completeWith(sources ...func(context.Context) ([]string, error)) completion {
	return func(cmd *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		answers := make(chan proposals, len(sources))
		for _, read := range sources {
			go func() {
				values, err := read(ctx)
				answers <- proposals{values, err}
			}()
		}
		var result []cobra.Completion
		var failures []string
		for range sources {
			answer := proposals{failure: errSlowCompletion}
			select {
			case answer = <-answers:
			case <-ctx.Done(): // discovery does not end with ctx
			}
			for _, value := range answer.values {
				if strings.HasPrefix(value, prefix) {
					result = append(result, value)
				}
			}
			if answer.failure != nil {
				failures = append(failures, answer.failure.Error())
			}
		}
		slices.Sort(result)
		result = slices.Compact(result)
		slices.Sort(failures)
		for _, text := range slices.Compact(failures) {
			result = cobra.AppendActiveHelp(result, "not complete: "+plain(text))
		}
		return result, cobra.ShellCompDirectiveNoFileComp
	}
}

// errSlowCompletion is the failure of a source that does not answer in time.
var errSlowCompletion = fmt.Errorf("a cluster has not answered within %s", completionTimeout)

// at returns a completion of the argument at a position, and none elsewhere.
func at(position int, complete completion) completion {
	return func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) != position {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd, args, prefix)
	}
}

// contexts returns the contexts of the kubeconfig.
func (c completer) contexts(context.Context) ([]string, error) {
	config, err := c.usual.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, err
	}
	return slices.Collect(maps.Keys(config.Contexts)), nil
}

// client returns a client of the current context's cluster, or of the hub if a flag of the command names it.
func (c completer) client(hub *hubFlags) (client.Client, error) {
	config, err := c.usual.ToRESTConfig()
	if hub != nil && (hub.context != "" || hub.kubeconfig != "") {
		config, err = hub.config(c.usual)
	}
	if err != nil {
		return nil, err
	}
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.Timeout = completionTimeout // discovery has no context
	return client.New(config, client.Options{Scheme: scheme})
}

// list lists objects of a cluster that is what. A kind that it does not have has no objects.
func (c completer) list(ctx context.Context, what string, hub *hubFlags, list client.ObjectList, options ...client.ListOption) error {
	reader, err := c.client(hub)
	if err == nil {
		err = reader.List(ctx, list, options...)
	}
	if err == nil || isAbsentKind(err) {
		return nil
	}
	return fmt.Errorf("%s could not be read: %s", what, survey.FailureOf(err, "").Message)
}

// names returns the names of the objects of a list in the namespace of -n, or of the context.
func (c completer) names(ctx context.Context, list client.ObjectList, namesOf func() []string) ([]string, error) {
	namespace, _, err := c.usual.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	if err := c.list(ctx, "this cluster", nil, list, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	return namesOf(), nil
}

// services returns the names of the Services that are not derived.
func (c completer) services(ctx context.Context) ([]string, error) {
	list := &corev1.ServiceList{}
	return c.names(ctx, list, func() (result []string) {
		for i := range list.Items {
			if isOwn(&list.Items[i]) {
				result = append(result, list.Items[i].Name)
			}
		}
		return result
	})
}

// exports returns the names of the ServiceExports.
func (c completer) exports(ctx context.Context) ([]string, error) {
	list := &mcsv1beta1.ServiceExportList{}
	return c.names(ctx, list, func() (result []string) {
		for i := range list.Items {
			result = append(result, list.Items[i].Name)
		}
		return result
	})
}

// keys completes NAMESPACE/SERVICE of all services that the cluster exports or imports, and those that the hub knows if this is the hub.
func (c completer) keys(hub *hubFlags) completion {
	exports := func(ctx context.Context) (result []string, err error) {
		list := &mcsv1beta1.ServiceExportList{}
		err = c.list(ctx, "this cluster", nil, list)
		for _, e := range list.Items {
			result = append(result, e.Namespace+"/"+e.Name)
		}
		return result, err
	}
	imports := func(ctx context.Context) (result []string, err error) {
		list := &mcsv1beta1.ServiceImportList{}
		err = c.list(ctx, "this cluster", nil, list)
		for _, i := range list.Items {
			result = append(result, i.Namespace+"/"+i.Name)
		}
		return result, err
	}
	published := func(ctx context.Context) (result []string, err error) {
		list := &hubv1alpha1.PublishedServiceList{}
		err = c.list(ctx, "the hub", hub, list)
		for _, p := range list.Items {
			result = append(result, string(p.Spec.Namespace)+"/"+string(p.Spec.Service))
		}
		return result, err
	}
	return completeWith(exports, imports, published)
}

// members completes the IDs of the members, if the cluster is the hub or a flag names the hub.
func (c completer) members(hub *hubFlags) completion {
	return completeWith(func(ctx context.Context) (result []string, err error) {
		list := &hubv1alpha1.MemberList{}
		err = c.list(ctx, "the hub", hub, list)
		for _, m := range list.Items {
			if id, ok := clusterset.ClusterIDOfHubNamespace(m.Namespace); ok {
				result = append(result, string(id))
			}
		}
		return result, err
	})
}

// addTo completes the flags that several commands have.
func (c completer) addTo(cmd *cobra.Command) {
	for _, flag := range []string{"context", "contexts", "hub-context"} {
		if cmd.Flag(flag) != nil {
			_ = cmd.RegisterFlagCompletionFunc(flag, completeWith(c.contexts)) // it fails only if there is no such flag, or twice
		}
	}
}

// completeFlag completes a flag of a command.
func completeFlag(cmd *cobra.Command, flag string, complete completion) {
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err) // a flag that the command does not define
	}
}

// completeValues returns a completion of fixed values.
func completeValues(values ...string) completion {
	return completeWith(func(context.Context) ([]string, error) { return values, nil })
}
