// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/internal/plan"
)

// DryRunWrite is one write of a dry run.
type DryRunWrite struct {
	Verb plan.Verb
	// Object is the object to write, as the API server would store it. Existing is the existing object; nil if there is none.
	Object, Existing client.Object
	// Err is the reason why the write would fail; nil if it would succeed.
	Err error
}

// DryRun returns a Writer whose writes are dry runs: the API server applies its authorization, admission and validation, but stores
// nothing. report is called for each write that would change something.
func (w Writer) DryRun(report func(DryRunWrite)) Writer {
	return Writer{client: client.NewDryRunClient(w.client), live: w.live, manages: w.manages, lostLabel: w.lostLabel, lastWrites: newWriteCache(), report: report}
}

// isWithoutEffect reports whether an API server would store an object as it is: an admission policy adds again what the update removes.
func isWithoutEffect(verb plan.Verb, answer, existing client.Object, err error) bool {
	if err != nil || verb != plan.Update && verb != plan.UpdateStatus {
		return false
	}
	before, after := existing.DeepCopyObject().(client.Object), answer.DeepCopyObject().(client.Object)
	for _, object := range []client.Object{before, after} {
		object.SetManagedFields(nil)
		object.SetResourceVersion("")
	}
	return equality.Semantic.DeepEqual(before, after)
}

func dryRunWrite[T client.Object](change plan.Change[T], written client.Object, err error) DryRunWrite {
	result := DryRunWrite{Verb: change.Verb, Object: written, Err: err}
	if change.Verb != plan.Create {
		result.Existing = change.Existing
	}
	return result
}
