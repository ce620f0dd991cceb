// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import "strings"

// Limits of an Event in bytes (events.k8s.io/v1). The API server refuses an Event that exceeds them.
const (
	maxEventReason = 128
	maxEventNote   = 1024
)

// EventReason returns the reason of a condition in the form that an Event can have. If there are several reasons, joined by commas,
// it returns the first ones that fit into 128 bytes. The reason of a condition can be eight times as long (spec C3).
func EventReason(reason string) string {
	if len(reason) <= maxEventReason {
		return reason
	}
	if end := strings.LastIndexByte(reason[:maxEventReason+1], ','); end > 0 { // a comma may follow the last byte that fits
		return reason[:end]
	}
	return reason[:maxEventReason]
}

// EventNote returns the text of an Event, cut off at 1,024 bytes with an ellipsis.
func EventNote(text string) string {
	const ellipsis = "…"
	if len(text) <= maxEventNote {
		return text
	}
	return shortenTo(text, maxEventNote-len(ellipsis)) + ellipsis
}
