// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/conditions"
)

// Preferences returns which sources serve a service in each of the members whose import has a ServiceImportRoutingPolicy, in their order.
func Preferences(key clusterset.ServiceKey, members []MemberObjects) []ExplainedPreference {
	var result []ExplainedPreference
	for _, m := range members {
		for i := range m.Imports {
			object := &m.Imports[i]
			if object.Namespace != key.Namespace || object.Name != key.Name || !clusterset.IsManaged(object.Labels) {
				continue
			}
			if preferred := meta.FindStatusCondition(object.Status.Conditions, conditions.TypePreferred); preferred != nil {
				result = append(result, ExplainedPreference{m.ID, preferred.Reason, preferred.Message})
			}
		}
	}
	return result
}
