// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package assess

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/phrase"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
)

// FixUnexplained is what to do about something that this program does not know.
const FixUnexplained = "this version of kubectl-clusterset does not know what that means: see the object and the documentation of the agent's version"

// UnexplainedImport returns what the conditions of an import say that this program does not know; empty if it knows all.
func UnexplainedImport(object *mcsv1beta1.ServiceImport) string {
	all := object.Status.Conditions
	if meta.FindStatusCondition(all, conditions.TypeDeletionPending) != nil {
		return ""
	}
	return unexplained(all, string(mcsv1beta1.ServiceImportConditionReady), conditions.TypeSourceUnusable, conditions.TypePreferred)
}

// unexplainedExport returns what the conditions of an export say that this program does not know; empty if it knows all. A pending
// export is known: its agent has not finished, or is silent.
func unexplainedExport(object *mcsv1beta1.ServiceExport) string {
	all := object.Status.Conditions
	ready := meta.FindStatusCondition(all, string(mcsv1beta1.ServiceExportConditionReady))
	if ready != nil && ready.Status == metav1.ConditionFalse && ready.Reason != string(mcsv1beta1.ServiceExportReasonPending) && !conditions.IsRefused(*ready) {
		return describeCondition(*ready)
	}
	return unexplained(all, string(mcsv1beta1.ServiceExportConditionReady), string(mcsv1beta1.ServiceExportConditionValid), string(mcsv1beta1.ServiceExportConditionConflict), conditions.TypeOutdated,
		conditions.TypeProxyProtocol)
}

// SeenOfExport returns what the conditions of an export say if no step explains why it is not Ready; empty if it is, or is nil.
func SeenOfExport(object *mcsv1beta1.ServiceExport) string {
	if object == nil {
		return ""
	}
	ready := meta.FindStatusCondition(object.Status.Conditions, string(mcsv1beta1.ServiceExportConditionReady))
	if ready != nil && ready.Status != metav1.ConditionTrue {
		return describeCondition(*ready)
	}
	return unexplainedExport(object)
}

// unexplained returns the first condition whose type is not one of those that are known, or whose status is neither True nor False.
// The first of the known types must be there.
func unexplained(all []metav1.Condition, known ...string) string {
	for _, c := range all {
		if !slices.Contains(known, c.Type) || c.Status != metav1.ConditionTrue && c.Status != metav1.ConditionFalse {
			return describeCondition(c)
		}
	}
	if meta.FindStatusCondition(all, known[0]) == nil {
		return fmt.Sprintf("it has no condition %s", known[0])
	}
	return ""
}

func describeCondition(c metav1.Condition) string {
	return phrase.Shortened(fmt.Sprintf("condition %s is %s, reason %s", c.Type, c.Status, c.Reason)) + ": " + c.Message
}
