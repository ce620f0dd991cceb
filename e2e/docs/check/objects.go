// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/conditions"
	"github.com/tombolo-mcs/tombolo/pkg/export"
)

// seen are the words on objects that users meet, each of which is explained.
func seen() []string {
	words := []string{
		clusterset.ManagedBy, clusterset.LabelManagedBy, clusterset.LabelServiceImported, clusterset.AnnotationDerivedService,
		clusterset.AnnotationTokenExpires, discoveryv1.LabelManagedBy, mcsv1beta1.LabelServiceName, mcsv1beta1.LabelSourceCluster,
		conditions.TypeDeletionPending, conditions.ReasonAwaitingConfirmation, string(export.ReasonNamespaceReserved), string(export.ReasonServiceReserved),
	}
	for _, reason := range []mcsv1beta1.ServiceExportConditionReason{
		mcsv1beta1.ServiceExportReasonValid, mcsv1beta1.ServiceExportReasonNoService, mcsv1beta1.ServiceExportReasonInvalidServiceType,
		mcsv1beta1.ServiceExportReasonExported, mcsv1beta1.ServiceExportReasonPending, mcsv1beta1.ServiceExportReasonFailed,
		mcsv1beta1.ServiceExportReasonPortConflict, mcsv1beta1.ServiceExportReasonTypeConflict,
		mcsv1beta1.ServiceExportReasonSessionAffinityConflict, mcsv1beta1.ServiceExportReasonSessionAffinityConfigConflict,
		mcsv1beta1.ServiceExportReasonLabelsConflict, mcsv1beta1.ServiceExportReasonAnnotationsConflict,
		mcsv1beta1.ServiceExportReasonInternalTrafficPolicyConflict, mcsv1beta1.ServiceExportReasonTrafficDistributionConflict,
		mcsv1beta1.ServiceExportReasonIPFamilyConflict, mcsv1beta1.ServiceExportReasonNoConflicts,
	} {
		words = append(words, string(reason))
	}
	for _, reason := range []mcsv1beta1.ServiceImportConditionReason{
		mcsv1beta1.ServiceImportReasonReady, mcsv1beta1.ServiceImportReasonPending, mcsv1beta1.ServiceImportReasonIPFamilyNotSupported,
	} {
		words = append(words, string(reason))
	}
	return words
}

// checkObjects finds words that the document about them does not explain.
func (c *checker) checkObjects() {
	d := c.documents["docs/objects.md"]
	if d == nil {
		return
	}
	for _, word := range seen() {
		if !slices.ContainsFunc(d.spans, func(span part) bool { return span.text == word || strings.HasPrefix(span.text, word+": ") }) {
			c.reportf(d, 1, "%s is not explained here", word)
		}
	}
}
