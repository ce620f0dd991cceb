// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/pkg/conditions"
	"github.com/tombolo-mcs/tombolo/pkg/plan"
	"github.com/tombolo-mcs/tombolo/pkg/render"
)

// warn sends an Event of type Warning.
func (r *Reconciler) warn(regarding runtime.Object, reason, note string) {
	r.Events.Eventf(regarding, nil, corev1.EventTypeWarning, reason, "Import", "%s", note)
}

// announceObstruction sends an Event for an unmanaged ServiceImport with the name of an import (spec I7).
func (r *Reconciler) announceObstruction(unmanaged *mcsv1beta1.ServiceImport) {
	r.warn(unmanaged, "ServiceImportObstructed",
		"The clusterset exports a service of this name, but this ServiceImport is not managed by Tombolo and is left alone. Delete it to import the service.")
}

// announceRefusals sends an Event with the refused records of a service. It regards the ServiceImport, even if that does not exist.
func (r *Reconciler) announceRefusals(v view) {
	text := ""
	if err := errors.Join(v.sources.Hub.Refused...); err != nil {
		text = err.Error()
	}
	if !r.Refusals.isNew(v.sources.Key, text) {
		return
	}
	var regarding runtime.Object = &corev1.ObjectReference{
		APIVersion: mcsv1beta1.GroupVersion.String(), Kind: mcsv1beta1.ServiceImportKindName,
		Namespace: v.sources.Key.Namespace, Name: v.sources.Key.Name,
	}
	if v.serviceImport != nil {
		regarding = v.serviceImport
	}
	r.warn(regarding, "RecordRefused", conditions.EventNote(text))
}

// announceReplacement sends an Event if these changes replace a derived Service.
func (r *Reconciler) announceReplacement(v view, changes []plan.Change[*corev1.Service]) {
	if note := replacement(v, changes); note != "" {
		r.warn(v.serviceImport, "DerivedServiceReplaced", note)
	}
}

// replacement returns why these changes replace the derived Service, and what that means for its addresses; empty if they do not.
// The first check that applies decides.
func replacement(v view, changes []plan.Change[*corev1.Service]) string {
	if v.serviceImport == nil || len(changes) == 0 || changes[len(changes)-1].Verb != plan.Create {
		return ""
	}
	deleted, created := changes[0].Object, changes[len(changes)-1].Object
	for _, check := range []struct {
		applies bool
		note    string
	}{
		{
			len(changes) == 2 && len(deleted.Spec.Selector) > 0,
			"The derived Service %s must have no selector. It is replaced, with the same addresses, so that the endpoints of its selector are deleted.",
		},
		{len(changes) == 2, "The service has changed between headless and not, so the derived Service %s is replaced and its addresses change."},
		{v.derivedNameTaken(), "Another object has the name of this import's derived Service. It gets another, %s, and other addresses."},
	} {
		if check.applies {
			return fmt.Sprintf(check.note, created.Name)
		}
	}
	return ""
}

// announceLeftOut sends an Event for what the import leaves out, if its Ready condition did not report that before.
func (r *Reconciler) announceLeftOut(d decision, before, after *mcsv1beta1.ServiceImport) {
	for _, check := range []struct{ reason, note string }{
		{"SettingLeftOut", conditions.SettingsLeftOut(render.SettingsLeftOut(d.merged, d.site))},
		{"MetadataLeftOut", conditions.MetadataLeftOut(render.MetadataLeftOut(d.merged, d.site))},
	} {
		if check.note != "" && strings.Contains(readyMessage(after), check.note) && !strings.Contains(readyMessage(before), check.note) {
			r.warn(after, check.reason, check.note)
		}
	}
}

func readyMessage(serviceImport *mcsv1beta1.ServiceImport) string {
	if ready := meta.FindStatusCondition(serviceImport.Status.Conditions, string(mcsv1beta1.ServiceImportConditionReady)); ready != nil {
		return ready.Message
	}
	return ""
}
