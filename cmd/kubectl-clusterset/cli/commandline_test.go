// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/cli"
	"github.com/tombolo-mcs/tombolo/internal/check"
)

// run runs a command line with a kubeconfig that has no contexts, and returns its output and exit code.
func run(t *testing.T, command string) (string, int) {
	t.Helper()
	var out bytes.Buffer
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	check.Must(t, os.WriteFile(kubeconfig, []byte("apiVersion: v1\nkind: Config\n"), 0o600))
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out}
	args := append(strings.Fields(command), "--kubeconfig", kubeconfig)
	code := cli.Run(t.Context(), cli.Build{Version: "v0.0.0-test"}, args, streams)
	return out.String(), code
}

// TestUsageErrors: errors in the command line are reported before any API server is contacted.
func TestUsageErrors(t *testing.T) {
	for command, text := range map[string]string{
		"jion":                               "unknown command",
		"join --cluster-idd a":               "unknown flag",
		"join extra":                         "unknown command",
		"join":                               "--hub-context",
		"join --profile huge":                "agent, production, quickstart",
		"join --pod-cidrs 10.1.0.0":          `--pod-cidrs: "10.1.0.0" is no CIDR such as`,
		"join --node-cidrs 10.1/16":          `--node-cidrs: "10.1/16" is no CIDR such as`,
		"join --service-cidrs a,b":           `--service-cidrs: "a" is no CIDR such as`,
		"join --hub-ca /none":                "--hub-ca: open /none",
		"dns --by magic":                     "--by=magic: must be tombolo, kubernetes or none",
		"dns --configmap coredns":            "<namespace>/<name>",
		"leave":                              "--from",
		"leave --from nowhere":               "both, hub or member",
		"leave --from hub":                   "--cluster-id",
		"upgrade --profile nothing":          "agent, production, quickstart",
		"trace":                              "the argument NAMESPACE/SERVICE is missing: kubectl clusterset trace NAMESPACE/SERVICE",
		"explain":                            "the argument NAMESPACE/SERVICE is missing: kubectl clusterset explain NAMESPACE/SERVICE",
		"explain a/b/c":                      "is no service",
		"trace shop/web cart":                "2 arguments are too many: kubectl clusterset trace NAMESPACE/SERVICE",
		"diff shop/web shop/cart":            "2 arguments are too many: kubectl clusterset diff [NAMESPACE/SERVICE]",
		"status -o table":                    "must be one of wide, json, yaml",
		"status --services none":             "must be some or all",
		"graph -o png":                       "must be one of svg, dot, json, yaml",
		"export -n shop":                     "which Services?",
		"export -n shop web --all":           "which Services?",
		"status":                             "the kubeconfig has no current context: pass --context, --contexts, --all-contexts or --hub-context",
		"status --all-contexts":              "the kubeconfig has no current context",
		"status --context ghost":             `context "ghost" does not exist`,
		"status --contexts nope":             "error: context \"nope\" does not exist: pass one of \n",
		"explain shop/T11":                   `no Service can have the name "T11": it must consist of`,
		"status --contexts a --all-contexts": "--context, --contexts and --all-contexts exclude each other",
		"trace a/b --contexts a --context b": "--context, --contexts and --all-contexts exclude each other",
		"diff -o table":                      "must be one of json, yaml",
		"check-network -o wide":              "must be one of json, yaml",
		"invite":                             "--cluster-id: ",
		"invite --cluster-id east":           "pass -o with the file for the invitation",
		"invite --cluster-id east -o east.yaml --ttl 1m":  "--ttl=1m0s: must be from 10m0s to 72h0m0s",
		"invite --cluster-id east -o east.yaml --ttl 73h": "--ttl=73h0m0s: must be from 10m0s to 72h0m0s",
		"invite revoke":                               "the argument CLUSTERID is missing: kubectl clusterset invite revoke CLUSTERID",
		"invite revoke East":                          "cluster ID",
		"join --invite /none":                         "--invite: open /none",
		"join --invite /none --hub-context hub":       "--invite and --hub-context exclude each other",
		"join --invite /none --pod-cidrs 10.1.0.0/16": "--invite and --pod-cidrs exclude each other",
		"join --invite /none --network cloud":         "--invite and --network exclude each other",
		"export web --dry-run=maybe":                  "--dry-run=maybe: must be none, server or client",
		"export web --dry-run=":                       "must be none, server or client",
		"leave -o yaml":                               "unknown shorthand flag: 'o'",
		"export web -o yaml":                          "-o prints what would be applied: pass --dry-run=client too",
		"export web -o yaml --dry-run":                "-o prints what would be applied: pass --dry-run=client too",
		"export web -o json --dry-run=client":         "must be one of yaml",
		"version -o wide":                             "must be one of json, yaml",
		"bundle -f bug.tar.gz":                        "unknown shorthand flag: 'f'",
		"graph -f set.svg":                            "unknown shorthand flag: 'f'",
		"trace shop/web -n other":                     "shop/web is in namespace shop, and --namespace=other: leave out one of the two",
		"diff shop/web -n other":                      "shop/web is in namespace shop, and --namespace=other: leave out one of the two",
	} {
		if out, code := run(t, command); code != cli.ExitUsage || !strings.Contains(out, text) {
			t.Errorf("$ kubectl clusterset %s\n%sexit code %d, want %d with %q", command, out, code, cli.ExitUsage, text)
		}
	}
}

func TestHelp(t *testing.T) {
	for command, text := range map[string]string{"join --help": "--cluster-id", "completion bash": "bash completion", "version": "kubectl clusterset v0.0.0-test\n", "version -o yaml": "version: v0.0.0-test"} {
		if out, code := run(t, command); code != cli.ExitOK || !strings.Contains(out, text) {
			t.Errorf("$ kubectl clusterset %s\n%sexit code %d, want %d with %q", command, out, code, cli.ExitOK, text)
		}
	}
}

// TestServiceArguments: each verb that takes a service takes NAMESPACE/SERVICE, and SERVICE with -n. A verb that has taken its arguments
// finds no cluster.
func TestServiceArguments(t *testing.T) {
	const taken = "ghost"
	clients := map[string]string{"can-connect": "east/shop/default "}
	verbs := 0
	for _, verb := range cli.NewCommand(cli.Build{}, genericiooptions.NewTestIOStreamsDiscard()).Commands() {
		if !strings.Contains(verb.Use, "SERVICE") {
			continue
		}
		verbs++
		for service, text := range map[string]string{
			"shop/web --context ghost":         taken,
			"web -n shop --context ghost":      taken,
			"shop/web -n shop --context ghost": taken,
			"shop/web -n other":                "shop/web is in namespace shop, and --namespace=other: leave out one of the two",
			"a/b/c":                            `"a/b/c" is no service: pass NAMESPACE/SERVICE`,
			"shop/":                            `"shop/" is no service: pass NAMESPACE/SERVICE`,
			"shop/T11":                         `no Service can have the name "T11"`,
		} {
			command := verb.Name() + " " + clients[verb.Name()] + service
			if out, code := run(t, command); code != cli.ExitUsage || !strings.Contains(out, text) {
				t.Errorf("$ kubectl clusterset %s\n%sexit code %d, want %d with %q", command, out, code, cli.ExitUsage, text)
			}
		}
	}
	if verbs != 6 {
		t.Errorf("%d verbs take a service", verbs)
	}
	const want = "shop/web is in namespace shop, and bank/cart in bank: run the command once for each namespace"
	if out, code := run(t, "export shop/web bank/cart"); code != cli.ExitUsage || !strings.Contains(out, want) {
		t.Errorf("two namespaces: exit code %d\n%s", code, out)
	}
}
