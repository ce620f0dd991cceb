// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"fmt"
	"runtime"
	"strconv"
	"time"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/coremain"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnsutil"
	"github.com/coredns/coredns/plugin/pkg/fall"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/tombolo-mcs/tombolo/coredns-plugin/clusterset/internal/zone"
)

const (
	defaultTTL            = 5
	maxTTL                = 3600
	defaultStartupTimeout = 5 * time.Second
)

// options are the settings in a Corefile.
type options struct {
	zones          []string
	api            api
	ttl            uint32
	namespaces     map[string]struct{}
	fall           fall.F
	kinds          []kind
	empty          zone.EmptyServices
	startupTimeout time.Duration
}

// api is the address of the API server. If it is empty, that is the cluster in which CoreDNS runs.
type api struct {
	kubeconfig, context string
	endpoint            string
	cert, key, ca       string
}

// config returns the client configuration.
func (a api) config() (*rest.Config, error) {
	config, err := a.load()
	if err != nil {
		return nil, err
	}
	config.UserAgent = fmt.Sprintf("%s/%s %s (%s/%s)", coremain.CoreName, coremain.CoreVersion, name, runtime.GOOS, runtime.GOARCH)
	return config, nil
}

func (a api) load() (*rest.Config, error) {
	if a.kubeconfig == "" && a.endpoint == "" {
		return rest.InClusterConfig()
	}
	rules, overrides := &clientcmd.ClientConfigLoadingRules{ExplicitPath: a.kubeconfig}, &clientcmd.ConfigOverrides{CurrentContext: a.context}
	if a.endpoint != "" {
		overrides.ClusterInfo = clientcmdapi.Cluster{Server: a.endpoint, CertificateAuthority: a.ca}
		overrides.AuthInfo = clientcmdapi.AuthInfo{ClientCertificate: a.cert, ClientKey: a.key}
	}
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
}

// parse reads the plugin's stanza.
func parse(c *caddy.Controller) (options, error) {
	o := options{
		ttl: defaultTTL, namespaces: map[string]struct{}{}, kinds: []kind{kindImport, kindSlice},
		empty: zone.ServeEmpty, startupTimeout: defaultStartupTimeout,
	}
	stanzas := 0
	for c.Next() {
		stanzas++
		if stanzas > 1 {
			return options{}, c.Errf("the plugin is already in this server block: name all zones in one place")
		}
		if err := o.parseZones(c, c.RemainingArgs()); err != nil {
			return options{}, err
		}
		for c.NextBlock() {
			property := c.Val()
			read, ok := properties[property]
			if !ok {
				return options{}, c.Errf("unknown property %q: write one of endpoint, fallthrough, ignore, kubeconfig, namespaces, "+
					"noendpoints, startup_timeout, tls, ttl", property)
			}
			if err := read(&o, c, c.RemainingArgs()); err != nil {
				return options{}, err
			}
		}
	}
	err := o.check(c)
	return o, err
}

// parseZones reads the zones, by default those of the server block.
func (o *options) parseZones(c *caddy.Controller, args []string) error {
	for _, z := range plugin.OriginsFromArgsOrServerBlock(args, c.ServerBlockKeys) {
		switch {
		case z == ".":
			return c.Errf("the plugin would own every name there is: name its zone, as in \"%s clusterset.local\"", name)
		case dnsutil.IsReverse(z) > 0 && len(args) > 0:
			return c.Errf("%q is a reverse zone, and multi-cluster services have no reverse names: remove it", z)
		case dnsutil.IsReverse(z) == 0:
			o.zones = append(o.zones, z)
		}
	}
	if len(o.zones) == 0 {
		return c.Errf("no zone: name one, as in \"%s clusterset.local\"", name)
	}
	if zone.NewNames(o.zones).Octets < len("a.b.svc.") {
		return c.Errf("the zone is so long that no service has a name in it: choose a shorter one")
	}
	return nil
}

// check finds options that contradict each other.
func (o *options) check(c *caddy.Controller) error {
	a := o.api
	switch {
	case a.kubeconfig != "" && (a.endpoint != "" || a.ca != ""):
		return c.Errf("kubeconfig already says where the API server is: remove endpoint and tls, or kubeconfig")
	case a.endpoint == "" && a.ca != "":
		return c.Errf("tls goes with endpoint: add it, or remove tls")
	case len(o.kinds) == 1 && o.empty == zone.IgnoreEmpty:
		return c.Errf("ignore empty_service needs the endpoints: remove it, or noendpoints")
	}
	return nil
}

// properties are the options of the stanza.
var properties = map[string]func(o *options, c *caddy.Controller, args []string) error{
	"kubeconfig": func(o *options, c *caddy.Controller, args []string) error {
		if len(args) < 1 || len(args) > 2 {
			return c.Errf("kubeconfig wants a file, and perhaps a context: \"kubeconfig FILE [CONTEXT]\"")
		}
		o.api.kubeconfig = args[0]
		if len(args) == 2 {
			o.api.context = args[1]
		}
		return nil
	},
	"endpoint": func(o *options, c *caddy.Controller, args []string) error {
		if len(args) != 1 {
			return c.Errf("endpoint wants one URL: \"endpoint https://10.0.0.1:6443\"")
		}
		o.api.endpoint = args[0]
		return nil
	},
	"tls": func(o *options, c *caddy.Controller, args []string) error {
		if len(args) != 3 {
			return c.Errf("tls wants three files: \"tls CERT KEY CACERT\"")
		}
		o.api.cert, o.api.key, o.api.ca = args[0], args[1], args[2]
		return nil
	},
	"ttl": func(o *options, c *caddy.Controller, args []string) error {
		if len(args) != 1 {
			return c.Errf("ttl wants a number of seconds: \"ttl %d\"", defaultTTL)
		}
		ttl, err := strconv.ParseUint(args[0], 10, 32)
		if err != nil || ttl > maxTTL {
			return c.Errf("ttl %q is no number of seconds from 0 to %d", args[0], maxTTL)
		}
		o.ttl = uint32(ttl)
		return nil
	},
	"namespaces": func(o *options, c *caddy.Controller, args []string) error {
		if len(args) == 0 {
			return c.Errf("namespaces wants at least one: \"namespaces NAMESPACE...\"; leave it out to serve all")
		}
		for _, namespace := range args {
			o.namespaces[namespace] = struct{}{}
		}
		return nil
	},
	"fallthrough": func(o *options, _ *caddy.Controller, args []string) error {
		o.fall.SetZonesFromArgs(args)
		return nil
	},
	"noendpoints": func(o *options, c *caddy.Controller, args []string) error {
		if len(args) != 0 {
			return c.Errf("noendpoints takes no arguments: remove %q", args[0])
		}
		o.kinds = []kind{kindImport}
		return nil
	},
	"ignore": func(o *options, c *caddy.Controller, args []string) error {
		if len(args) != 1 || args[0] != "empty_service" {
			return c.Errf("the only thing to ignore is an empty service: \"ignore empty_service\"")
		}
		o.empty = zone.IgnoreEmpty
		return nil
	},
	"startup_timeout": func(o *options, c *caddy.Controller, args []string) error {
		if len(args) != 1 {
			return c.Errf("startup_timeout wants a duration: \"startup_timeout %s\"", defaultStartupTimeout)
		}
		timeout, err := time.ParseDuration(args[0])
		if err != nil || timeout < 0 {
			return c.Errf("startup_timeout %q is no duration: write it as in \"startup_timeout %s\"", args[0], defaultStartupTimeout)
		}
		o.startupTimeout = timeout
		return nil
	},
}
