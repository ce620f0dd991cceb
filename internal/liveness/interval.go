// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package liveness

import "time"

// MaxInterval is the longest heartbeat interval that the hub's schema allows.
const MaxInterval = 5 * time.Minute

// fullRateMembers is the number of members up to which all renew their heartbeats at the configured interval.
const fullRateMembers = 100

// Interval returns the time between heartbeats in a clusterset with a number of members. Beyond 100 it is longer in proportion, at most
// MaxInterval. Each heartbeat is sent to every member, so the events on the hub grow with the number of members and not with its
// square.
func Interval(configured time.Duration, members int) time.Duration {
	return max(configured, min(configured/fullRateMembers*time.Duration(members), MaxInterval))
}
