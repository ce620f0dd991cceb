// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"regexp"
)

// blockStart is where a covered block begins in a coverage profile: "file.go:LINE.COLUMN,LINE.COLUMN STATEMENTS COUNT".
var blockStart = regexp.MustCompile(`(?m)^(.*\.go:\d+)\.\d+(,\d+\.\d+ \d+ [1-9]\d*)$`)

// widen lets every covered block of a profile begin at the first column of its line. The expression of a case clause
// belongs to no block of its own, so gremlins would never mutate what a switch decides on.
func widen(profile string) error {
	text, err := os.ReadFile(profile)
	if err != nil {
		return err
	}
	return os.WriteFile(profile, blockStart.ReplaceAll(text, []byte("$1.1$2")), 0o600)
}
