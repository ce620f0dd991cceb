// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package assess

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
)

// Changes are the differences between two statuses. The age of a heartbeat is not a change.
type Changes struct {
	Time time.Time
	// Appeared and Solved are new problems, and problems that no longer exist.
	Appeared, Solved []Problem
	// Members and Services are new or changed, with their new values.
	Members  []MemberStatus
	Services []ServiceStatus
	// MembersGone and ServicesGone no longer exist; they have their old values.
	MembersGone  []MemberStatus
	ServicesGone []ServiceStatus
}

// IsEmpty reports whether nothing has changed.
func (c Changes) IsEmpty() bool {
	return len(c.Appeared)+len(c.Solved)+len(c.Members)+len(c.Services)+len(c.MembersGone)+len(c.ServicesGone) == 0
}

// ChangesBetween compares two statuses.
func ChangesBetween(before, after Status) Changes {
	result := Changes{Time: after.Time.Time}
	result.Appeared, result.Solved = difference(before.Problems, after.Problems, problemKey, func(_, _ Problem) bool { return true })
	result.Members, result.MembersGone = difference(before.Members, after.Members,
		func(m MemberStatus) string { return string(m.ID) },
		func(a, b MemberStatus) bool {
			a.SilentSeconds, b.SilentSeconds = nil, nil
			return equality.Semantic.DeepEqual(a, b)
		})
	result.Services, result.ServicesGone = difference(before.Services, after.Services, ServiceStatus.Key,
		func(a, b ServiceStatus) bool { return equality.Semantic.DeepEqual(a, b) })
	return result
}

// problemKey returns the identity of a problem. It leaves out the message of a silent member, which contains the age of the
// heartbeat.
func problemKey(p Problem) string {
	key := string(p.Reason) + " " + string(p.Member) + " " + p.Service
	if p.Reason == ReasonMemberSilent {
		return key
	}
	return key + " " + p.Message
}

// difference returns the items of after that are new or differ, and the items of before that are not in after, in their order.
func difference[T any](before, after []T, key func(T) string, same func(a, b T) bool) (changed, gone []T) {
	old, present := map[string]T{}, map[string]bool{}
	for _, item := range before {
		old[key(item)] = item
	}
	for _, item := range after {
		present[key(item)] = true
		if was, ok := old[key(item)]; !ok || !same(was, item) {
			changed = append(changed, item)
		}
	}
	for _, item := range before {
		if !present[key(item)] {
			gone = append(gone, item)
		}
	}
	return changed, gone
}
