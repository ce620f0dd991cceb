// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/controllers/gateway"
)

// addGateway adds the controller of gateways, with a cache of its own, which reads one namespace and nodes, and the probes. r may be nil.
func (s *starter) addGateway(r *gateway.Reconciler) error {
	if r == nil {
		return nil
	}
	remote, err := cache.New(s.manager.GetConfig(), cache.Options{
		HTTPClient: s.manager.GetHTTPClient(), Scheme: s.manager.GetScheme(), Mapper: s.manager.GetRESTMapper(),
		NewInformer: s.informers.indexed(), DefaultNamespaces: map[string]cache.Config{s.options.Namespace: {}},
		ByObject: map[client.Object]cache.ByObject{&corev1.Node{}: {Transform: gateway.CompactNode}},
	})
	if err != nil {
		return err
	}
	r.Remote = remote
	return errors.Join(
		s.manager.Add(remote), s.manager.Add(&gateway.Prober{Sources: r.Sources, Reach: r.Reach}),
		r.Add(s.manager, s.members(), s.controllerOptions()),
	)
}
