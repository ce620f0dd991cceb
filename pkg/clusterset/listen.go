// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// FormatListen returns listening ports as text, sorted: "80=10000,443=10001" means that port 10000 leads to Service port 80.
func FormatListen(listen map[int32]int32) string {
	var parts []string
	for _, port := range slices.Sorted(maps.Keys(listen)) {
		parts = append(parts, fmt.Sprintf("%d=%d", port, listen[port]))
	}
	return strings.Join(parts, ",")
}

// ParseListen returns the listening ports of a text that FormatListen has returned. It returns an error if the text has another form.
func ParseListen(text string) (map[int32]int32, error) {
	listen := map[int32]int32{}
	if text == "" {
		return listen, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		from, to, _ := strings.Cut(part, "=")
		port, errPort := strconv.ParseUint(from, 10, 16)
		number, errNumber := strconv.ParseUint(to, 10, 16)
		if errPort != nil || errNumber != nil || port == 0 || number == 0 {
			return nil, fmt.Errorf("%.50q are no listening ports such as 80=10000", part)
		}
		listen[int32(port)] = int32(number)
	}
	if FormatListen(listen) != text {
		return nil, fmt.Errorf("the listening ports %.100q are not sorted, or one is there twice", text)
	}
	return listen, nil
}
