// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// stuckAfter is the time after which the deletion of a CustomResourceDefinition counts as stuck.
const stuckAfter = 10 * time.Second

// TouchDeletedCRDs sets an annotation of CustomResourceDefinitions whose deletion is stuck, until the test ends. If two controllers of an
// API server write one at once, the one that finalizes it tries again at its next resync, every 5 minutes, or when it is changed.
func TouchDeletedCRDs(t *testing.T, cl client.Client) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	t.Cleanup(func() {
		cancel()
		<-done
	})
	go func() {
		defer close(done)
		_ = wait.PollUntilContextCancel(ctx, stuckAfter/2, false, func(ctx context.Context) (bool, error) {
			touchStuck(ctx, cl)
			return false, nil
		})
	}()
}

// touchStuck ignores errors: the test finds an API server that does not answer, and a CRD may be deleted meanwhile.
func touchStuck(ctx context.Context, cl client.Client) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinitionList"))
	_ = cl.List(ctx, list)
	for i := range list.Items {
		crd := &list.Items[i]
		if crd.DeletionTimestamp == nil || time.Since(crd.DeletionTimestamp.Time) < stuckAfter {
			continue
		}
		patch := client.MergeFrom(crd.DeepCopy())
		metav1.SetMetaDataAnnotation(&crd.ObjectMeta, "tombolo-mcs.io/touched", time.Now().String())
		_ = cl.Patch(ctx, crd, patch)
	}
}
