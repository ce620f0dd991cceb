// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
)

// Traces returns the objects of a cluster, of any kind, that could be Tombolo's: by their name, their namespace or their
// labels. A cluster that has left, or was never a member, has none.
func Traces(t testing.TB, cluster *lab.Cluster) []string {
	t.Helper()
	var result []string
	lab.Must(t, eachObject(t.Context(), cluster, func(kind metav1.APIResource, _ metadata.Getter, o metav1.ObjectMeta) error {
		isOfUsers := kind.Kind == "CustomResourceDefinition" && strings.HasSuffix(o.Name, "."+policyv1alpha1.GroupVersion.Group)
		if isTrace(o) && !isOfUsers {
			result = append(result, fmt.Sprintf("%s %s/%s", kind.Kind, o.Namespace, o.Name))
		}
		return nil
	}))
	slices.Sort(result)
	return result
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

// longWaitLimit is how long a cluster may take to delete what is left in it. It takes some seconds. But a definition of a
// kind that was changed just before it was deleted has been seen to take between three and four minutes to go.
const longWaitLimit = 2 * waitLimit

// Snapshot says which objects a cluster has at a time, so that tests can share it, one after the other.
type Snapshot struct {
	cluster *lab.Cluster
	objects sets.Set[string]
}

// TakeSnapshot returns one of a cluster that has settled.
func TakeSnapshot(ctx context.Context, cluster *lab.Cluster) (*Snapshot, error) {
	s := &Snapshot{cluster: cluster, objects: sets.New[string]()}
	return s, eachObject(ctx, cluster, func(kind metav1.APIResource, _ metadata.Getter, o metav1.ObjectMeta) error {
		s.objects.Insert(objectName(kind, o))
		return nil
	})
}

// Restore deletes what the cluster has beyond the snapshot and returns when it is gone. What has been changed or deleted
// since stays so.
func (s *Snapshot) Restore(ctx context.Context) error {
	err := lab.Await(ctx, time.Second, longWaitLimit, func(ctx context.Context) error { // a busy API server may refuse a list
		var left []string
		err := eachObject(ctx, s.cluster, func(kind metav1.APIResource, of metadata.Getter, o metav1.ObjectMeta) error {
			if s.objects.Has(objectName(kind, o)) || isAutomatic(kind, o) {
				return nil
			}
			left = append(left, objectName(kind, o))
			if o.DeletionTimestamp != nil && kind.Kind != "Pod" {
				return nil
			}
			return remove(ctx, of, o)
		})
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("it still has %v", left)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("restore %s: %w", s.cluster.Name, err)
	}
	return nil
}

// remove deletes an object at once: there are no nodes on which pods could end first.
func remove(ctx context.Context, of metadata.Getter, o metav1.ObjectMeta) error {
	err := of.Namespace(o.Namespace).Delete(ctx, o.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0)), Preconditions: &metav1.Preconditions{UID: &o.UID}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

func objectName(kind metav1.APIResource, o metav1.ObjectMeta) string {
	return fmt.Sprintf("%s %s/%s", kind.Name, o.Namespace, o.Name)
}

// isAutomatic reports whether the cluster itself makes such an object and deletes it.
func isAutomatic(kind metav1.APIResource, o metav1.ObjectMeta) bool {
	return !slices.Contains(kind.Verbs, "delete") || kind.Kind == "Lease" || kind.Kind == "IPAddress" ||
		kind.Kind == "ServiceAccount" && o.Name == "default" || kind.Kind == "ConfigMap" && o.Name == "kube-root-ca.crt"
}
