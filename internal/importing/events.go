// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/internal/plan"
	"github.com/tombolo-mcs/tombolo/internal/render"
)

// Event is an Event of type Warning about an import.
type Event struct {
	// Regarding is the ServiceImport, or a reference to it if it does not exist.
	Regarding    runtime.Object
	Reason, Note string
	// IsState is set if the Event reports a state. It is sent when the Note changes.
	IsState bool
}

// reference returns the ServiceImport of an import, or a reference to it if it does not exist.
func (o Observed) reference() runtime.Object {
	if o.ServiceImport != nil {
		return o.ServiceImport
	}
	return &corev1.ObjectReference{
		APIVersion: mcsv1beta1.GroupVersion.String(), Kind: mcsv1beta1.ServiceImportKindName,
		Namespace: o.Sources.Key.Namespace, Name: o.Sources.Key.Name,
	}
}

// obstructed returns the Event for an unmanaged ServiceImport with the name of an import (spec I7).
func obstructed(unmanaged *mcsv1beta1.ServiceImport) Event {
	return Event{
		Regarding: unmanaged, Reason: "ServiceImportObstructed",
		Note: "The clusterset exports a service of this name, but this ServiceImport is not managed by Tombolo and is left alone. Delete it to import the service.",
	}
}

// RefusedRecords returns the Event for the refused records of the service; its Note is empty if none is refused.
func (o Observed) RefusedRecords() Event {
	result := Event{Regarding: o.reference(), Reason: "RecordRefused", IsState: true}
	if err := errors.Join(o.Sources.Hub.Refused...); err != nil {
		result.Note = conditions.EventNote(err.Error())
	}
	return result
}

// refusedEvent returns the Event for what is refused of an import; its Note is empty if nothing is.
func (o Observed) refusedEvent(refused []Refused) Event {
	result := Event{Regarding: o.reference(), Reason: "ImportRefused", IsState: true}
	if len(refused) > 0 {
		result.Note = conditions.EventNote(conditions.ImportPending(refusalsOf(refused)).Message)
	}
	return result
}

// replaced returns the Event for changes that replace a derived Service.
func replaced(v view, changes []plan.Change[*corev1.Service]) []Event {
	var result []Event
	if note := replacement(v, changes); note != "" {
		result = append(result, Event{Regarding: v.ServiceImport, Reason: "DerivedServiceReplaced", Note: note})
	}
	lost := v.Retained
	if v.ServiceImport != nil {
		lost = v.ServiceImport.Spec.IPs
	}
	if v.AddressesLost && len(lost) > 0 {
		result = append(result, Event{Regarding: v.reference(), Reason: "AddressReplaced", Note: fmt.Sprintf(
			"The address %s of this import cannot be given to it again: another Service has it, or no ServiceCIDR contains it. It gets another address, and clients must resolve its name again.",
			strings.Join(lost, ", "))})
	}
	return result
}

// replacement returns why these changes replace the derived Service, and what that means for its addresses; empty if they do not.
// The first check that applies decides.
func replacement(v view, changes []plan.Change[*corev1.Service]) string {
	if v.ServiceImport == nil || len(changes) == 0 || changes[len(changes)-1].Verb != plan.Create {
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

// leftOut returns the Events for what the import leaves out, if its Ready condition did not report that before.
func leftOut(d decision, before, after *mcsv1beta1.ServiceImport) []Event {
	var result []Event
	for _, check := range []struct{ reason, note string }{
		{"SettingLeftOut", conditions.SettingsLeftOut(render.SettingsLeftOut(d.merged, d.site))},
		{"MetadataLeftOut", conditions.MetadataLeftOut(render.MetadataLeftOut(d.merged, d.site))},
	} {
		if check.note != "" && strings.Contains(readyMessage(after), check.note) && !strings.Contains(readyMessage(before), check.note) {
			result = append(result, Event{Regarding: after, Reason: check.reason, Note: check.note})
		}
	}
	return result
}

func readyMessage(serviceImport *mcsv1beta1.ServiceImport) string {
	if ready := meta.FindStatusCondition(serviceImport.Status.Conditions, string(mcsv1beta1.ServiceImportConditionReady)); ready != nil {
		return ready.Message
	}
	return ""
}
