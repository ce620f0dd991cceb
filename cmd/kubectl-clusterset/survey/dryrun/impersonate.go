// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/apiserver"
)

// impersonate returns a client with the rights of a ServiceAccount, so that an API server admits or refuses its writes as it does
// those of the agent. If the ServiceAccount does not exist or must not be impersonated, it returns a client with the user's own
// rights.
func impersonate(ctx context.Context, config *rest.Config, kinds *runtime.Scheme, namespace, name string) (client.Client, error) {
	own, err := client.New(apiserver.Config(config), client.Options{Scheme: kinds})
	if err != nil {
		return nil, err
	}
	account := &corev1.ServiceAccount{}
	if err := own.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, account); err != nil {
		return own, client.IgnoreNotFound(err)
	}
	as := apiserver.Config(config)
	as.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + namespace + ":" + name,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}
	result, err := client.New(as, client.Options{Scheme: kinds, Mapper: own.RESTMapper()})
	if err != nil {
		return nil, err
	}
	d, err := discovery.NewDiscoveryClientForConfig(as)
	if err != nil {
		return nil, err
	}
	if _, err := d.ServerVersion(); apierrors.IsForbidden(err) {
		return own, nil
	} else if err != nil {
		return nil, err
	}
	return result, nil
}
