// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"errors"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tombolo-mcs/tombolo/internal/apply"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/internal/plan"
	"github.com/tombolo-mcs/tombolo/internal/record"
	"github.com/tombolo-mcs/tombolo/internal/sources"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// loss says whether the hub has lost the record of an export.
type loss string

const (
	notLost loss = ""
	lost    loss = "lost"
)

// lossOf returns whether the hub has no record of an export although it has stored one, as the status of the ServiceExport says. For
// slices, no status says so.
func lossOf(known sources.Sources) loss {
	if known.Local != nil && known.Hub.Local == nil && conditions.WasStored(known.Export.Status.Conditions) {
		return lost
	}
	return notLost
}

// isSettled reports whether the hub stores all records of a service that can exist, after writes that have returned err (E3). A
// refused change leaves it so in these cases:
//   - a deletion: no record is missing
//   - an update that can never be stored: the older record stays
//   - a new record that can never be stored, unless the hub has lost an older version of the export: importers keep what they have of it
//
// Refusals by a quota, a right, a webhook or a policy that lacks the Member are not among them: the hub may store the record later.
func isSettled(err error, member *hubv1alpha1.Member, export loss) bool {
	return err == nil || apply.EveryFailure(err, func(f apply.WriteError) bool {
		_, isExport := f.Object.(*hubv1alpha1.PublishedService)
		switch {
		case !apply.IsRefused(f):
			return false
		case f.Verb == plan.Delete:
			return true
		case f.Verb == plan.Create && isExport && export == lost:
			return false
		}
		return apply.IsFinal(f) || !canExist(f.Object, member)
	})
}

// canExist reports whether other members would accept a record. The hub never stores one that they would not, but while it starts, its
// answer does not say so.
func canExist(object client.Object, member *hubv1alpha1.Member) bool {
	p, err := record.NewPolicy(member, clusterset.AddressRanges{})
	if err != nil { // the hub's admission policies prevent this
		return true
	}
	switch o := object.(type) {
	case *hubv1alpha1.PublishedService:
		_, err := record.DecodeService(o, p)
		return err == nil
	case *hubv1alpha1.PublishedEndpoints:
		slice, _ := record.DecodeEndpoints(o, p)
		return slice != nil
	}
	return true
}

// setFailure stores why the hub refused a record, and returns the error. If the schema refuses a record, no retry follows until the
// export or the Member changes. An API server that has just started refuses every record as Invalid, until its policies have found the
// Member.
func (r *Reconciler) setFailure(key clusterset.ServiceKey, err error, outcome Outcome) error {
	if errors.Is(err, apply.ErrStale) {
		return err
	}
	if !apply.IsRefused(err) {
		outcome.Failure, outcome.Unanswered = r.Outcomes.Of(key).Failure, true
		r.Outcomes.Set(key, outcome)
		return err
	}
	outcome.Failure = apply.Reason(err)
	r.Outcomes.Set(key, outcome)
	if apply.IsFinal(err) {
		return reconcile.TerminalError(err)
	}
	return err
}

// texts returns the texts of errors, sorted, each once.
func texts(errs []error) []string {
	var result []string
	for _, err := range errs {
		if err != nil {
			result = append(result, err.Error())
		}
	}
	slices.Sort(result)
	return slices.Compact(result)
}
