// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/pkg/plan"
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
// nothing. report is called for each write.
func (w Writer) DryRun(report func(DryRunWrite)) Writer {
	return Writer{client: client.NewDryRunClient(w.client), live: w.live, manages: w.manages, lostLabel: w.lostLabel, lastWrites: newWriteCache(), report: report}
}

func dryRunWrite[T client.Object](change plan.Change[T], written client.Object, err error) DryRunWrite {
	result := DryRunWrite{Verb: change.Verb, Object: written, Err: err}
	if change.Verb != plan.Create {
		result.Existing = change.Existing
	}
	return result
}
