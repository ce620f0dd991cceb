// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bytes"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/cli"
)

// printsExport: a dry run of the client prints exactly what would be applied, and sends no request that writes.
func (s *surveyed) printsExport(t *testing.T) {
	t.Helper()
	var out, errs bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errs}
	args := append(strings.Fields("export --context east -n shop web --dry-run=client -o yaml --kubeconfig"), s.kubeconfig)
	code := cli.Run(t.Context(), release, args, streams)
	const want = "---\n# In this cluster (dry run: nothing is changed)\n" +
		"apiVersion: multicluster.x-k8s.io/v1beta1\nkind: ServiceExport\nmetadata:\n  name: web\n  namespace: shop\n"
	if code != cli.ExitOK || out.String() != want || !strings.Contains(errs.String(), "serviceexport.multicluster.x-k8s.io/web created (dry run)\n") {
		t.Errorf("exit code %d\n%s\nand as an error is\n%s", code, &out, &errs)
	}
}

// completes fails the test unless the shell is offered exactly these lines for the last word of a command.
func (s *surveyed) completes(t *testing.T, command, want string) {
	t.Helper()
	var out bytes.Buffer
	verb, rest, _ := strings.Cut(command, " ")
	args := append([]string{"__complete", verb, "--kubeconfig", s.kubeconfig}, strings.Fields(rest)...)
	code := cli.Run(t.Context(), release, args, genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &bytes.Buffer{}})
	if code != cli.ExitOK || out.String() != want+":4\n" { // ShellCompDirectiveNoFileComp
		t.Errorf("%s: exit code %d\n%s", command, code, &out)
	}
}
