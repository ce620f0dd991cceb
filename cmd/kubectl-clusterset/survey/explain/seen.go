// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// SeenObject is a ServiceExport or a managed ServiceImport of a service.
type SeenObject struct {
	Cluster clusterset.ClusterID `json:"cluster"`
	// Object is its kind.
	Object string `json:"object"`
	// Conditions are the messages of its conditions, without the message of Conflict if there is none.
	Conditions []string `json:"conditions,omitempty"`
}

// Seen returns the objects of a service in the members that were read, in their order.
func Seen(key clusterset.ServiceKey, members []survey.MemberObjects) []SeenObject {
	var result []SeenObject
	for _, m := range members {
		for i := range m.Exports {
			if o := &m.Exports[i]; o.Namespace == key.Namespace && o.Name == key.Name {
				result = append(result, SeenObject{m.ID, "ServiceExport", messages(o.Status.Conditions)})
			}
		}
		for i := range m.Imports {
			if o := &m.Imports[i]; o.Namespace == key.Namespace && o.Name == key.Name && clusterset.IsManaged(o.Labels) {
				result = append(result, SeenObject{m.ID, "ServiceImport", messages(o.Status.Conditions)})
			}
		}
	}
	return result
}

func messages(all []metav1.Condition) []string {
	var result []string
	for _, c := range all {
		if c.Reason != string(mcsv1beta1.ServiceExportReasonNoConflicts) {
			result = append(result, c.Message)
		}
	}
	return result
}

// Preferences returns which sources serve a service in each of the members whose import has a ServiceImportRoutingPolicy, in their order.
func Preferences(key clusterset.ServiceKey, members []survey.MemberObjects) []Preference {
	var result []Preference
	for _, m := range members {
		for i := range m.Imports {
			object := &m.Imports[i]
			if object.Namespace != key.Namespace || object.Name != key.Name || !clusterset.IsManaged(object.Labels) {
				continue
			}
			if preferred := meta.FindStatusCondition(object.Status.Conditions, conditions.TypePreferred); preferred != nil {
				result = append(result, Preference{m.ID, preferred.Reason, preferred.Message})
			}
		}
	}
	return result
}
