// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TestExportedBy: what trace says of a label and a ServiceExport.
//
// spec: P3
func TestExportedBy(t *testing.T) {
	t.Parallel()
	type labels = map[string]string
	users, ours := &mcsv1beta1.ServiceExport{}, &mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{
		Labels: labels{clusterset.LabelManagedBy: clusterset.ManagedBy}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: clusterset.FieldManager}},
	}}
	taken := ours.DeepCopy()
	taken.ManagedFields = append(taken.ManagedFields, metav1.ManagedFieldsEntry{Manager: "kubectl-edit"})
	label, excluded := labels{clusterset.LabelAutoExport: "true"}, labels{clusterset.LabelAutoExport: "false"}
	const byLabel, byUser = ", because of the label tombolo-mcs.io/auto-export", ", by a user's ServiceExport: the label tombolo-mcs.io/auto-export has no effect"
	for name, tc := range map[string]struct {
		export             *mcsv1beta1.ServiceExport
		service, namespace labels
		want               string
	}{
		"no label":                         {export: users},
		"automatic":                        {export: ours, service: label, want: byLabel},
		"automatic, of the Namespace":      {export: ours, namespace: label, want: byLabel},
		"a user's own":                     {export: users, service: label, want: byUser},
		"a user's own, of the Namespace":   {export: users, namespace: label, want: byUser},
		"a user's own, although excluded":  {export: users, service: excluded, namespace: label, want: byUser},
		"a user's own, and another reason": {export: users, namespace: excluded},
		"automatic, and edited":            {export: taken, service: label, want: byUser},
	} {
		check.Equal(t, name, tc.want, exportedBy(tc.export, tc.service, tc.namespace))
	}
}
