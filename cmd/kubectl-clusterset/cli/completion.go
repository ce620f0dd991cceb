// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
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

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// completionTimeout limits the requests for one completion: a user waits for it at the prompt.
const completionTimeout = 3 * time.Second

// completer completes arguments and flags with what the clusters of the kubeconfig have. If a cluster does not answer, it completes
// nothing: a shell has no place for an error.
type completer struct {
	usual *genericclioptions.ConfigFlags
}

type completion = func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective)

// completeWith returns a completion of values that are read when the user asks for them.
func completeWith(values func(context.Context) []string) completion {
	return func(cmd *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		var result []cobra.Completion
		for _, value := range values(ctx) {
			if strings.HasPrefix(value, prefix) {
				result = append(result, value)
			}
		}
		slices.Sort(result)
		return slices.Compact(result), cobra.ShellCompDirectiveNoFileComp
	}
}

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
func (c completer) contexts(context.Context) []string {
	config, err := c.usual.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil
	}
	return slices.Collect(maps.Keys(config.Contexts))
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

// names returns the names of the objects of a list in the namespace of -n, or of the context.
func (c completer) names(ctx context.Context, list client.ObjectList, namesOf func() []string) []string {
	namespace, _, err := c.usual.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil
	}
	reader, err := c.client(nil)
	if err != nil || reader.List(ctx, list, client.InNamespace(namespace)) != nil {
		return nil
	}
	return namesOf()
}

// services returns the names of the Services that are not derived.
func (c completer) services(ctx context.Context) []string {
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
func (c completer) exports(ctx context.Context) []string {
	list := &mcsv1beta1.ServiceExportList{}
	return c.names(ctx, list, func() (result []string) {
		for i := range list.Items {
			result = append(result, list.Items[i].Name)
		}
		return result
	})
}

// keys returns NAMESPACE/SERVICE of all services that the cluster exports or imports, and those that the hub knows if this is the hub.
func (c completer) keys(hub *hubFlags) func(context.Context) []string {
	return func(ctx context.Context) []string {
		reader, err := c.client(nil)
		if err != nil {
			return nil
		}
		var result []string
		imports, exports := &mcsv1beta1.ServiceImportList{}, &mcsv1beta1.ServiceExportList{}
		if reader.List(ctx, imports) == nil {
			for _, i := range imports.Items {
				result = append(result, i.Namespace+"/"+i.Name)
			}
		}
		if reader.List(ctx, exports) == nil {
			for _, e := range exports.Items {
				result = append(result, e.Namespace+"/"+e.Name)
			}
		}
		published := &hubv1alpha1.PublishedServiceList{}
		if reader, err = c.client(hub); err == nil && reader.List(ctx, published) == nil {
			for _, p := range published.Items {
				result = append(result, string(p.Spec.Namespace)+"/"+string(p.Spec.Service))
			}
		}
		return result
	}
}

// members returns the IDs of the members, if the cluster is the hub or a flag names the hub.
func (c completer) members(hub *hubFlags) func(context.Context) []string {
	return func(ctx context.Context) []string {
		members := &hubv1alpha1.MemberList{}
		reader, err := c.client(hub)
		if err != nil || reader.List(ctx, members) != nil {
			return nil
		}
		var result []string
		for _, m := range members.Items {
			if id, ok := clusterset.ClusterIDOfHubNamespace(m.Namespace); ok {
				result = append(result, string(id))
			}
		}
		return result
	}
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
	return completeWith(func(context.Context) []string { return values })
}
