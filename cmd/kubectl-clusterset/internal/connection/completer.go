// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/output"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/apiserver"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Completer completes arguments and flags with what the clusters of the kubeconfig have. If a cluster does not answer, it completes what
// the others have, and names that cluster in an active help, which a shell shows below the completions. The exit code is 0 then: a shell, and
// kubectl, ignore the completions of a command that fails.
type Completer struct {
	Usual *genericclioptions.ConfigFlags
}

// contexts returns the contexts of the kubeconfig.
func (c Completer) contexts(context.Context) ([]string, error) {
	config, err := c.Usual.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, err
	}
	return slices.Collect(maps.Keys(config.Contexts)), nil
}

// client returns a client of the current context's cluster, or of the hub if a flag of the command names it.
func (c Completer) client(hub *HubFlags) (client.Client, error) {
	config, err := c.Usual.ToRESTConfig()
	if hub != nil && (hub.Context != "" || hub.Kubeconfig != "") {
		config, err = hub.Config(c.Usual)
	}
	if err != nil {
		return nil, err
	}
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.Timeout = output.CompletionTimeout // discovery has no context
	return client.New(config, client.Options{Scheme: scheme})
}

// list lists objects of a cluster that is what. A kind that it does not have has no objects.
func (c Completer) list(ctx context.Context, what string, hub *HubFlags, list client.ObjectList, options ...client.ListOption) error {
	reader, err := c.client(hub)
	if err == nil {
		err = reader.List(ctx, list, options...)
	}
	if err == nil || IsAbsent(err) {
		return nil
	}
	return fmt.Errorf("%s could not be read: %s", what, apiserver.FailureOf(err, "").Message)
}

// names returns the names of the objects of a list in the namespace of -n, or of the context.
func (c Completer) names(ctx context.Context, list client.ObjectList, namesOf func() []string) ([]string, error) {
	namespace, _, err := c.Usual.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	if err := c.list(ctx, "this cluster", nil, list, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	return namesOf(), nil
}

// Services returns the names of the Services that are not derived.
func (c Completer) Services(ctx context.Context) ([]string, error) {
	list := &corev1.ServiceList{}
	return c.names(ctx, list, func() (result []string) {
		for i := range list.Items {
			if !clusterset.IsManaged(list.Items[i].Labels) {
				result = append(result, list.Items[i].Name)
			}
		}
		return result
	})
}

// Exports returns the names of the ServiceExports.
func (c Completer) Exports(ctx context.Context) ([]string, error) {
	list := &mcsv1beta1.ServiceExportList{}
	return c.names(ctx, list, func() (result []string) {
		for i := range list.Items {
			result = append(result, list.Items[i].Name)
		}
		return result
	})
}

// Keys completes NAMESPACE/SERVICE of all services that the cluster exports or imports, and those that the hub knows if this is the hub.
func (c Completer) Keys(hub *HubFlags) output.Completion {
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
	return output.CompleteWith(exports, imports, published)
}

// Members completes the IDs of the members, if the cluster is the hub or a flag names the hub.
func (c Completer) Members(hub *HubFlags) output.Completion {
	return output.CompleteWith(func(ctx context.Context) (result []string, err error) {
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

// AddTo completes the flags that several commands have.
func (c Completer) AddTo(cmd *cobra.Command) {
	for _, flag := range []string{"context", "contexts", "hub-context"} {
		if cmd.Flag(flag) != nil {
			_ = cmd.RegisterFlagCompletionFunc(flag, output.CompleteWith(c.contexts)) // it fails only if there is no such flag, or twice
		}
	}
}
