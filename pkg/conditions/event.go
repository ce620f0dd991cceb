// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import "strings"

// Bounds of an Event, in bytes (events.k8s.io/v1). The API server refuses one that exceeds them.
const (
	maxEventReason = 128
	maxEventNote   = 1024
)

// EventReason returns the reason of a condition as an Event can have it: of several reasons, joined by commas, the first
// ones that fit into 128 bytes. A condition's reason has room for eight times as many (spec C3).
func EventReason(reason string) string {
	if len(reason) <= maxEventReason {
		return reason
	}
	if end := strings.LastIndexByte(reason[:maxEventReason+1], ','); end > 0 { // one behind the last byte ends what fits
		return reason[:end]
	}
	return reason[:maxEventReason]
}

// EventNote returns the text of an Event, at most 1,024 bytes of it; an ellipsis stands for the rest.
func EventNote(text string) string {
	const ellipsis = "…"
	if len(text) <= maxEventNote {
		return text
	}
	return shortenTo(text, maxEventNote-len(ellipsis)) + ellipsis
}
