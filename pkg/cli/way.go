// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clientcmdlatest "k8s.io/client-go/tools/clientcmd/api/latest"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// wayToHub is how the member's agent reaches the hub.
type wayToHub struct {
	server string
	ca     []byte // PEM
}

// checkWay finds the hub's URL and its certificate authority, as the member's pods are to use them.
func (j *joining) checkWay(context.Context) error {
	config := rest.CopyConfig(j.hub.config)
	if err := rest.LoadTLSFiles(config); err != nil {
		return fmt.Errorf("the hub's kubeconfig: %w", err)
	}
	j.way = wayToHub{server: cmp.Or(j.hubServer, config.Host), ca: config.CAData}
	if j.hubCA != "" {
		j.way.ca = j.ca
	}
	at, err := url.Parse(j.way.server)
	switch {
	case err != nil || at.Scheme != "https" || at.Host == "":
		j.r.failf("the hub's URL %q is none that an agent can use: pass --hub-server https://<host>:<port>", j.way.server)
	case j.hubServer == "" && isLoopback(at.Hostname()):
		j.r.failf("the hub's URL %s means another machine inside this cluster's pods: pass --hub-server with the URL that they reach the hub at", j.way.server)
	case !x509.NewCertPool().AppendCertsFromPEM(j.way.ca):
		j.r.failf("the hub's kubeconfig has no certificate authority, by which agents could know the hub: pass --hub-ca with a PEM file")
	default:
		j.r.okf("agents will reach the hub at %s", j.way.server)
	}
	return nil
}

func isLoopback(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.IsLoopback()
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// kubeconfig returns that of the agent. It names the other keys of its Secret as files beside it, which client-go reads
// again when they change.
func (w wayToHub) kubeconfig() ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters["hub"] = &clientcmdapi.Cluster{Server: w.server, CertificateAuthority: clusterset.HubSecretCA}
	config.AuthInfos["agent"] = &clientcmdapi.AuthInfo{TokenFile: clusterset.HubSecretToken}
	config.Contexts["hub"] = &clientcmdapi.Context{Cluster: "hub", AuthInfo: "agent"}
	config.CurrentContext = "hub"
	text, err := runtime.Encode(clientcmdlatest.Codec, config)
	if err != nil {
		return nil, fmt.Errorf("write the agent's kubeconfig: %w", err)
	}
	return text, nil
}

// flags returns the agent's command line that looks whether the hub is there.
func (w wayToHub) flags() []string {
	return []string{"--check-hub=" + w.server, "--check-hub-ca=" + base64.StdEncoding.EncodeToString(w.ca)}
}
