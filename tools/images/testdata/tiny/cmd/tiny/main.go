// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Command tiny stands for the programs of the images in tests.
package main

import "os"

var version string

func main() {
	if version == "" {
		os.Exit(1)
	}
	os.Stdout.WriteString(version)
}
