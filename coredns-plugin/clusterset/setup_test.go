// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	certutil "k8s.io/client-go/util/cert"

	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/file"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/loadbalance"
	_ "github.com/coredns/coredns/plugin/loop"
	_ "github.com/coredns/coredns/plugin/metadata"
	_ "github.com/coredns/coredns/plugin/metrics"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/reload"
	_ "github.com/coredns/coredns/plugin/transfer"

	"github.com/tombolo-mcs/tombolo/coredns-plugin/clusterset/internal/zone"
	"github.com/tombolo-mcs/tombolo/internal/check"
)

func TestParse(t *testing.T) {
	for corefile, change := range map[string]func(*options){
		"clusterset":               func(*options) {},
		"clusterset {\n}":          func(*options) {},
		"clusterset A.test b.test": func(o *options) { o.zones = []string{"a.test.", "b.test."} },
		"clusterset {\n ttl 0\n noendpoints\n startup_timeout 2m\n namespaces a b\n namespaces c\n}": func(o *options) {
			o.ttl, o.kinds, o.startupTimeout = 0, []kind{kindImport}, 2*time.Minute
			o.namespaces = map[string]struct{}{"a": {}, "b": {}, "c": {}}
		},
		"clusterset {\n ttl 3600\n kubeconfig f\n ignore empty_service\n}": func(o *options) {
			o.ttl, o.api, o.empty = 3600, api{kubeconfig: "f"}, zone.IgnoreEmpty
		},
		"clusterset {\n kubeconfig f c\n}": func(o *options) { o.api = api{kubeconfig: "f", context: "c"} },
		"clusterset {\n endpoint https://e\n tls a b c\n}": func(o *options) {
			o.api = api{endpoint: "https://e", cert: "a", key: "b", ca: "c"}
		},
	} {
		c := caddy.NewTestController("dns", corefile)
		c.ServerBlockKeys = []string{"dns://block.test.:53", "0.10.in-addr.arpa."}
		want := options{zones: []string{"block.test."}, ttl: 5, kinds: []kind{kindImport, kindSlice}, empty: zone.ServeEmpty, startupTimeout: 5 * time.Second}
		change(&want)
		got, err := parse(c)
		if err != nil {
			t.Errorf("%s: %v", corefile, err)
			continue
		}
		check.Equal(t, corefile, want, got, cmp.AllowUnexported(options{}, api{}), cmpopts.EquateEmpty())
	}
	for args, want := range map[string][]string{"": {"."}, "a.test B.test": {"a.test.", "b.test."}} {
		got, err := parse(caddy.NewTestController("dns", "clusterset clusterset.local {\n fallthrough "+args+"\n}"))
		if err != nil || !slices.Equal(got.fall.Zones, want) {
			t.Errorf("fallthrough %s: %v, %v", args, got.fall.Zones, err)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for corefile, want := range map[string]string{
		"clusterset .":               `Testfile:1 - Error during parsing: the plugin would own every name there is: name its zone, as in "clusterset clusterset.local"`,
		"clusterset":                 `Testfile:1 - Error during parsing: no zone: name one, as in "clusterset clusterset.local"`,
		"clusterset 10.in-addr.arpa": `Testfile:1 - Error during parsing: "10.in-addr.arpa." is a reverse zone, and multi-cluster services have no reverse names: remove it`,
		"clusterset " + strings.Repeat("long-label.", 23):        `Testfile:1 - Error during parsing: the zone is so long that no service has a name in it: choose a shorter one`,
		"clusterset a\nclusterset b":                             `Testfile:2 - Error during parsing: the plugin is already in this server block: name all zones in one place`,
		"clusterset a {\n pods verified\n}":                      `Testfile:2 - Error during parsing: unknown property "pods": write one of endpoint, fallthrough, ignore, kubeconfig, namespaces, noendpoints, startup_timeout, tls, ttl`,
		"clusterset a {\n kubeconfig\n}":                         `Testfile:2 - Error during parsing: kubeconfig wants a file, and perhaps a context: "kubeconfig FILE [CONTEXT]"`,
		"clusterset a {\n kubeconfig a b c\n}":                   `Testfile:2 - Error during parsing: kubeconfig wants a file, and perhaps a context: "kubeconfig FILE [CONTEXT]"`,
		"clusterset a {\n endpoint a b\n}":                       `Testfile:2 - Error during parsing: endpoint wants one URL: "endpoint https://10.0.0.1:6443"`,
		"clusterset a {\n tls a b\n}":                            `Testfile:2 - Error during parsing: tls wants three files: "tls CERT KEY CACERT"`,
		"clusterset a {\n ttl\n}":                                `Testfile:2 - Error during parsing: ttl wants a number of seconds: "ttl 5"`,
		"clusterset a {\n ttl 3601\n}":                           `Testfile:2 - Error during parsing: ttl "3601" is no number of seconds from 0 to 3600`,
		"clusterset a {\n ttl -1\n}":                             `Testfile:2 - Error during parsing: ttl "-1" is no number of seconds from 0 to 3600`,
		"clusterset a {\n namespaces\n}":                         `Testfile:2 - Error during parsing: namespaces wants at least one: "namespaces NAMESPACE..."; leave it out to serve all`,
		"clusterset a {\n noendpoints x\n}":                      `Testfile:2 - Error during parsing: noendpoints takes no arguments: remove "x"`,
		"clusterset a {\n ignore\n}":                             `Testfile:2 - Error during parsing: the only thing to ignore is an empty service: "ignore empty_service"`,
		"clusterset a {\n ignore all\n}":                         `Testfile:2 - Error during parsing: the only thing to ignore is an empty service: "ignore empty_service"`,
		"clusterset a {\n startup_timeout\n}":                    `Testfile:2 - Error during parsing: startup_timeout wants a duration: "startup_timeout 5s"`,
		"clusterset a {\n startup_timeout 5\n}":                  `Testfile:2 - Error during parsing: startup_timeout "5" is no duration: write it as in "startup_timeout 5s"`,
		"clusterset a {\n startup_timeout -5s\n}":                `Testfile:2 - Error during parsing: startup_timeout "-5s" is no duration: write it as in "startup_timeout 5s"`,
		"clusterset a {\n kubeconfig f\n endpoint e\n}":          `Testfile:4 - Error during parsing: kubeconfig already says where the API server is: remove endpoint and tls, or kubeconfig`,
		"clusterset a {\n tls a b c\n}":                          `Testfile:3 - Error during parsing: tls goes with endpoint: add it, or remove tls`,
		"clusterset a {\n noendpoints\n ignore empty_service\n}": `Testfile:4 - Error during parsing: ignore empty_service needs the endpoints: remove it, or noendpoints`,
	} {
		_, err := parse(caddy.NewTestController("dns", corefile))
		if err == nil {
			t.Errorf("%s: no error", corefile)
			continue
		}
		check.Equal(t, corefile, want, err.Error())
	}
}

func TestSetupWithoutAPIServer(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	err := setup(caddy.NewTestController("dns", "clusterset clusterset.local"))
	if err == nil || !strings.Contains(err.Error(), "no way to the API server (name one by kubeconfig or endpoint, or run in a cluster)") {
		t.Errorf("error %v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"clusterset", "clusterset a b {\n ttl 5\n}", "clusterset a {\n tls a b c\n endpoint x\n fallthrough a\n}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, corefile string) {
		c := caddy.NewTestController("dns", corefile)
		c.ServerBlockKeys = []string{"block.test."}
		o, err := parse(c)
		if err != nil || len(o.zones) == 0 { // without zones, the plugin was not in the file
			return
		}
		for _, z := range o.zones {
			if z == "." || z != strings.ToLower(z) || !strings.HasSuffix(z, ".") {
				t.Errorf("zone %q", z)
			}
		}
		if o.ttl > maxTTL || o.startupTimeout < 0 || zone.NewNames(o.zones).Octets < len("a.b.svc.") {
			t.Errorf("%+v", o)
		}
	})
}

// corefiles returns the Corefiles in the README.
func corefiles(t *testing.T) []string {
	text, err := os.ReadFile("README.md")
	check.Must(t, err)
	var found []string
	for _, m := range regexp.MustCompile("(?s)\n~~~ corefile\n(.*?)\n~~~").FindAllStringSubmatch(string(text), -1) {
		found = append(found, m[1])
	}
	return found
}

// CoreDNS can load each Corefile of the README if the files exist. An endpoint replaces the cluster in which it runs.
func TestReadmeCorefiles(t *testing.T) {
	found := corefiles(t)
	if len(found) < 4 {
		t.Fatalf("%d Corefiles in the README", len(found))
	}
	dir := t.TempDir()
	t.Chdir(dir)
	cert, key, err := certutil.GenerateSelfSignedCertKey("test", nil, nil)
	check.Must(t, err)
	for file, text := range map[string]string{
		"kubeconfig": kubeconfig, "db.clusterset.local": "$TTL 5\n@ SOA a b 1 2 3 4 5\n",
		"cert.pem": string(cert), "key.pem": string(key), "ca.pem": string(cert),
	} {
		check.Must(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
	}
	dnsserver.SetDirectives([]string{
		"reload", "metadata", "ready", "health", "prometheus", "errors", "loadbalance", "cache", "transfer", "clusterset", "kubernetes", "file", "loop", "forward",
	})
	for _, corefile := range found {
		if !strings.Contains(corefile, "clusterset") {
			t.Errorf("it does not have this plugin:\n%s", corefile)
		}
		local := strings.NewReplacer(
			"/etc/coredns/kubeconfig", "kubeconfig",
			"kubernetes cluster.local in-addr.arpa ip6.arpa {", "kubernetes cluster.local in-addr.arpa ip6.arpa {\n endpoint http://127.0.0.1:1",
			"clusterset clusterset.local\n", "clusterset clusterset.local {\n endpoint http://127.0.0.1:1\n}\n",
			"noendpoints\n", "noendpoints\n endpoint http://127.0.0.1:1\n",
		).Replace(corefile)
		err := caddy.ValidateAndExecuteDirectives(caddy.CaddyfileInput{Contents: []byte(local), Filepath: "Corefile", ServerTypeName: "dns"}, nil, true)
		if err != nil {
			t.Errorf("%v\n%s", err, local)
		}
	}
}

const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: east, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: east, context: {cluster: east}}]
`
