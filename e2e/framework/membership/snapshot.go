// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/metadata"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

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
	var left []string
	var last error // a busy API server may refuse a list: the next round lists again
	err := wait.PollUntilContextTimeout(ctx, time.Second, longWaitLimit, true, func(ctx context.Context) (bool, error) {
		var found []string
		err := eachObject(ctx, s.cluster, func(kind metav1.APIResource, of metadata.Getter, o metav1.ObjectMeta) error {
			if s.objects.Has(objectName(kind, o)) || isAutomatic(kind, o) {
				return nil
			}
			found = append(found, objectName(kind, o))
			if o.DeletionTimestamp != nil && kind.Kind != "Pod" {
				return nil
			}
			return remove(ctx, of, o)
		})
		if ctx.Err() == nil { // a round that was cut off has no result
			left, last = found, err
		}
		return err == nil && len(found) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("restore %s, which still has %v: %w", s.cluster.Name, left, errors.Join(last, err))
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
