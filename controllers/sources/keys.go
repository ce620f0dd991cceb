// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package sources

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// ExportKeys returns the services that this cluster has ServiceExports for.
func (r Reader) ExportKeys(ctx context.Context) ([]clusterset.ServiceKey, error) {
	list := &mcsv1beta1.ServiceExportList{}
	if err := r.Member.List(ctx, list); err != nil {
		return nil, fmt.Errorf("list ServiceExports: %w", err)
	}
	return keys(pointers(list.Items)), nil
}

// ImportKeys returns the services that this cluster has ServiceImports for.
func (r Reader) ImportKeys(ctx context.Context) ([]clusterset.ServiceKey, error) {
	list := &mcsv1beta1.ServiceImportList{}
	if err := r.Member.List(ctx, list); err != nil {
		return nil, fmt.Errorf("list ServiceImports: %w", err)
	}
	return keys(pointers(list.Items)), nil
}

func keys[T client.Object](objects []T) []clusterset.ServiceKey {
	result := make([]clusterset.ServiceKey, len(objects))
	for i, object := range objects {
		result[i] = client.ObjectKeyFromObject(object)
	}
	return result
}
