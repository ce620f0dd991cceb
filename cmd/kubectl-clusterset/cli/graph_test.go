// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// TestSVGOnTerminal: graph writes no image to a terminal, before it contacts a cluster.
func TestSVGOnTerminal(t *testing.T) {
	t.Parallel()
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no terminal can be opened here: %v", err)
	}
	defer terminal.Close()
	var errs bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: terminal, ErrOut: &errs}
	if code := Run(t.Context(), Build{}, []string{"graph"}, streams); code != ExitUsage || !strings.Contains(errs.String(), "a terminal cannot show SVG: pass --file clusterset.svg, or -o dot") {
		t.Errorf("exit code %d: %s", code, &errs)
	}
}
