// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/internal/hub"
	"github.com/tombolo-mcs/tombolo/internal/reach"
	aboutv1beta1 "github.com/tombolo-mcs/tombolo/pkg/api/about/v1beta1"
	gatewayv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/gateway/v1alpha1"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// nodesTimeout is how long the controller waits until the nodes are read.
const nodesTimeout = 10 * time.Second

// view is what the controller decides on, except for the Secrets.
type view struct {
	// service is the Service of the gateways; nil if there is none. During the grace it is the last one.
	service *corev1.Service
	// grace is when it is to be decided again whether the Service and the addresses are gone; zero if that is decided.
	grace time.Time
	// addresses are those of the gateways.
	addresses []hubv1alpha1.GatewayAddress
	// remote are the existing RemoteGateways.
	remote []*gatewayv1alpha1.RemoteGateway
	hub    hub.Gateways
	// synced is set if the hub was listed and has the local Member.
	synced bool
}

func (r *Reconciler) gather(ctx context.Context) (view, error) {
	v := view{synced: r.Sources.Hub.Synced(), hub: r.Sources.Hub.Gateways()}
	existing := &corev1.Service{}
	switch err := r.Sources.Member.Get(ctx, r.Sources.GatewayService(), existing); {
	case apierrors.IsNotFound(err):
		existing = nil
	case err != nil:
		return view{}, fmt.Errorf("get Service %s: %w", r.Sources.GatewayService(), err)
	}
	var err error
	v.service, v.grace = r.presence.withService(existing, r.Clock.Now())
	if v.remote, err = r.remoteGateways(ctx); err != nil {
		if isMissing := meta.IsNoMatchError(err) || apierrors.IsNotFound(err); isMissing && v.service == nil {
			return v, nil
		}
		return view{}, fmt.Errorf("list RemoteGateways: %w: apply manifests/gateway, which has their CRD", err)
	}
	if v.service == nil {
		return v, nil
	}
	if v.addresses = reach.Bounded(r.Addresses); len(v.addresses) > 0 {
		return v, nil
	}
	nodes, err := r.nodes(ctx, v.service)
	if err != nil {
		return view{}, err
	}
	addresses := reach.Addresses(v.service, nodes)
	if existing == nil { // the nodes of its slices are gone too
		addresses = nil
	}
	var until time.Time
	v.addresses, until = r.presence.withAddresses(addresses, r.Clock.Now())
	if v.grace.IsZero() {
		v.grace = until
	}
	return v, nil
}

func (r *Reconciler) remoteGateways(ctx context.Context) ([]*gatewayv1alpha1.RemoteGateway, error) {
	list := &gatewayv1alpha1.RemoteGatewayList{}
	err := r.Live.List(ctx, list, client.InNamespace(r.Sources.AgentNamespace))
	var result []*gatewayv1alpha1.RemoteGateway
	for i := range list.Items {
		result = append(result, &list.Items[i])
	}
	return result, err
}

// nodes returns the nodes of the gateways, sorted by name, if other members reach them at the addresses of nodes. Only then, the nodes are
// watched.
func (r *Reconciler) nodes(ctx context.Context, service *corev1.Service) ([]*corev1.Node, error) {
	if service.Spec.Type != corev1.ServiceTypeNodePort {
		return nil, nil
	}
	r.watchNodes()
	ctx, cancel := context.WithTimeout(ctx, nodesTimeout) // the cache waits until it may list nodes
	defer cancel()
	local, err := r.Sources.LocalSlices(ctx, r.Sources.GatewayService())
	if err != nil {
		return nil, err
	}
	names := sets.New[string]()
	for _, slice := range local {
		for _, endpoint := range slice.Endpoints {
			names.Insert(endpoint.NodeName)
		}
	}
	names.Delete("")
	sorted := sets.List(names)
	var result []*corev1.Node
	for _, name := range slices.Clone(sorted[:min(len(sorted), hubv1alpha1.MaxGatewayAddresses)]) {
		node := &corev1.Node{}
		err := r.Remote.Get(ctx, client.ObjectKey{Name: name}, node)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("get Node %s: %w", name, err)
		}
		if err == nil {
			result = append(result, node)
		}
	}
	return result, nil
}

// clusterSet returns the name of the clusterset, which is a part of the name of the gateways.
func (r *Reconciler) clusterSet(ctx context.Context) (string, error) {
	property := &aboutv1beta1.ClusterProperty{}
	if err := r.Live.Get(ctx, client.ObjectKey{Name: aboutv1beta1.ClusterSetProperty}, property); err != nil {
		return "", fmt.Errorf("get ClusterProperty %s: %w: create it; its value is the name of the clusterset, the same in all members",
			aboutv1beta1.ClusterSetProperty, err)
	}
	if len(validation.IsDNS1123Subdomain(property.Spec.Value)) > 0 {
		return "", fmt.Errorf("ClusterProperty %s: %q cannot be a part of the certificates of gateways: set the name of the clusterset to a DNS name, in all members",
			aboutv1beta1.ClusterSetProperty, property.Spec.Value)
	}
	return property.Spec.Value, nil
}
