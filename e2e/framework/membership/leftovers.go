// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
)

// Traces returns the objects of a cluster, of any kind, that could be Tombolo's: by their name, their namespace or their
// labels. A cluster that has left, or was never a member, has none.
func Traces(ctx context.Context, cluster *lab.Cluster) ([]string, error) {
	var result []string
	err := eachObject(ctx, cluster, func(kind metav1.APIResource, _ metadata.Getter, o metav1.ObjectMeta) error {
		isOfUsers := kind.Kind == "CustomResourceDefinition" && strings.HasSuffix(o.Name, "."+policyv1alpha1.GroupVersion.Group)
		if isTrace(o) && !isOfUsers {
			result = append(result, fmt.Sprintf("%s %s/%s", kind.Kind, o.Namespace, o.Name))
		}
		return nil
	})
	slices.Sort(result)
	return result, err
}

// eachObject calls do with each object of a cluster, of any kind that stays, and with a client for its kind.
func eachObject(ctx context.Context, cluster *lab.Cluster, do func(metav1.APIResource, metadata.Getter, metav1.ObjectMeta) error) error {
	d, err := discovery.NewDiscoveryClientForConfig(cluster.Config())
	if err != nil {
		return err
	}
	c, err := metadata.NewForConfig(cluster.Config())
	if err != nil {
		return err
	}
	lists, err := d.ServerPreferredResources()
	if err != nil {
		return fmt.Errorf("kinds of %s: %w", cluster.Name, err)
	}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return err
		}
		for _, kind := range list.APIResources {
			if !slices.Contains(kind.Verbs, "list") || kind.Kind == "Event" || kind.Kind == "APIService" {
				continue
			}
			of := c.Resource(version.WithResource(kind.Name))
			objects, err := of.List(ctx, metav1.ListOptions{})
			if apierrors.IsNotFound(err) {
				continue // its definition is being deleted
			}
			if err != nil {
				return fmt.Errorf("list %s of %s: %w", kind.Name, cluster.Name, err)
			}
			for _, o := range objects.Items {
				if err := do(kind, of, o.ObjectMeta); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func isTrace(o metav1.ObjectMeta) bool {
	for _, text := range []string{o.Name, o.Namespace} {
		if strings.Contains(text, "tombolo") || strings.Contains(text, "member-") {
			return true
		}
	}
	for key, value := range o.Labels {
		if strings.Contains(key+value, "tombolo") {
			return true
		}
	}
	return false
}
