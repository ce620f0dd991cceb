// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/pkg/plan"
)

// Act is one write of a rehearsal.
type Act struct {
	Verb plan.Verb
	// Object is what was to be written, as the API server would have it; Observed what stands, nil where nothing does.
	Object, Observed client.Object
	// Err is why the write would fail; nil where it would not.
	Err error
}

// Rehearse returns a Writer that has the API server judge each write as if it were meant, by its rights, its admission
// and its validation, but changes nothing. note is told of each of them.
func (w Writer) Rehearse(note func(Act)) Writer {
	return Writer{client: client.NewDryRunClient(w.client), live: w.live, owns: w.owns, lost: w.lost, memory: newMemory(), note: note}
}

func act[T client.Object](change plan.Change[T], written client.Object, err error) Act {
	result := Act{Verb: change.Verb, Object: written, Err: err}
	if change.Verb != plan.Create {
		result.Observed = change.Observed
	}
	return result
}
