// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package caches

import (
	"context"
	"fmt"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
)

// OnlyRoutingDefinition is a filter for the CRD of ServiceImportRoutingPolicy, the only one that the agent may read.
var OnlyRoutingDefinition = fields.OneTermEqualSelector(metav1.ObjectNameField, policyv1alpha1.RoutingDefinition)

// DefinitionMetadata returns an empty CustomResourceDefinition of which only the metadata is read.
func DefinitionMetadata() *metav1.PartialObjectMetadata {
	definition := &metav1.PartialObjectMetadata{}
	definition.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	return definition
}

// ListRoutingPolicies returns the ServiceImportRoutingPolicies of a namespace, or all if it is empty. They must not be changed.
func ListRoutingPolicies(ctx context.Context, from client.Reader, namespace string) ([]*policyv1alpha1.ServiceImportRoutingPolicy, error) {
	list := &policyv1alpha1.ServiceImportRoutingPolicyList{}
	if err := from.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list ServiceImportRoutingPolicies: %w", err)
	}
	result := make([]*policyv1alpha1.ServiceImportRoutingPolicy, len(list.Items))
	for i := range list.Items {
		result[i] = &list.Items[i]
	}
	return result, nil
}

// RoutingPolicies are the ServiceImportRoutingPolicies of this cluster. Their CRD may be installed after the agent has started.
type RoutingPolicies struct {
	cache cache.Cache

	mu          sync.Mutex
	watched     bool
	subscribers []func(namespace string)
}

// NewRoutingPolicies returns RoutingPolicies that are empty until Watch is called.
func NewRoutingPolicies(from cache.Cache) *RoutingPolicies { return &RoutingPolicies{cache: from} }

// Subscribe calls notify with the namespace of each policy that is read, created, deleted, or whose spec is changed. notify must not block.
func (p *RoutingPolicies) Subscribe(notify func(namespace string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.subscribers = append(p.subscribers, notify)
}

// In returns the policies of a namespace, or all if it is empty. They must not be changed.
func (p *RoutingPolicies) In(ctx context.Context, namespace string) ([]*policyv1alpha1.ServiceImportRoutingPolicy, error) {
	p.mu.Lock()
	watched := p.watched
	p.mu.Unlock()
	if !watched {
		return nil, nil
	}
	return ListRoutingPolicies(ctx, p.cache, namespace)
}

// Watch starts the watch of the policies and waits until they are read. It returns an error if the cluster does not serve the kind yet.
func (p *RoutingPolicies) Watch(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.watched {
		return nil
	}
	informer, err := p.cache.GetInformer(ctx, &policyv1alpha1.ServiceImportRoutingPolicy{})
	if err != nil {
		return fmt.Errorf("watch ServiceImportRoutingPolicies: %w", err)
	}
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: p.notify,
		UpdateFunc: func(before, after any) {
			if before.(client.Object).GetGeneration() != after.(client.Object).GetGeneration() {
				p.notify(after)
			}
		},
		DeleteFunc: func(object any) {
			if last, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
				object = last.Obj
			}
			p.notify(object)
		},
	}); err != nil {
		return fmt.Errorf("watch ServiceImportRoutingPolicies: %w", err)
	}
	p.watched = true
	return nil
}

func (p *RoutingPolicies) notify(object any) {
	policy, ok := object.(client.Object)
	if !ok {
		return
	}
	p.mu.Lock()
	subscribers := p.subscribers
	p.mu.Unlock()
	for _, notify := range subscribers {
		notify(policy.GetNamespace())
	}
}
