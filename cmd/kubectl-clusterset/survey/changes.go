// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
)

// Changes is what a newer Status says that an older did not. What merely passes, as the seconds of a silence, is no change.
type Changes struct {
	Time time.Time
	// Appeared and Solved are problems.
	Appeared, Solved []Problem
	// Members and Services are those that are new or have changed, as they are now.
	Members  []MemberStatus
	Services []ServiceStatus
	// MembersGone and ServicesGone are those that are no more, as they were.
	MembersGone  []MemberStatus
	ServicesGone []ServiceStatus
}

// IsEmpty reports whether nothing has changed.
func (c Changes) IsEmpty() bool {
	return len(c.Appeared)+len(c.Solved)+len(c.Members)+len(c.Services)+len(c.MembersGone)+len(c.ServicesGone) == 0
}

// ChangesBetween returns what has changed from one Status to another.
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

// problemKey returns what makes two problems the same. That of a silent member is, though its message tells for how long.
func problemKey(p Problem) string {
	key := string(p.Reason) + " " + string(p.Member) + " " + p.Service
	if p.Reason == ReasonMemberSilent {
		return key
	}
	return key + " " + p.Message
}

// difference returns what is new or not the same, in the order of after, and what is gone, in the order of before.
func difference[T any](before, after []T, key func(T) string, same func(a, b T) bool) (changed, gone []T) {
	old, there := map[string]T{}, map[string]bool{}
	for _, item := range before {
		old[key(item)] = item
	}
	for _, item := range after {
		there[key(item)] = true
		if was, ok := old[key(item)]; !ok || !same(was, item) {
			changed = append(changed, item)
		}
	}
	for _, item := range before {
		if !there[key(item)] {
			gone = append(gone, item)
		}
	}
	return changed, gone
}
