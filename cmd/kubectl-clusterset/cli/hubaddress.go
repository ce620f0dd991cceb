// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clientcmdlatest "k8s.io/client-go/tools/clientcmd/api/latest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/manifests"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// hubAddress is the address at which the member's agent reaches the hub.
type hubAddress struct {
	server string
	ca     []byte // PEM
}

// hubAddressSource is the source of the URL or the certificate authority.
type hubAddressSource string

const (
	asBefore       hubAddressSource = "as before"
	fromKubeconfig hubAddressSource = "as in the hub's kubeconfig"
	fromInvitation hubAddressSource = "as in the invitation"
	fromServerFlag hubAddressSource = "--hub-server"
	fromCAFlag     hubAddressSource = "--hub-ca"
)

// checkHubAddress selects the hub's URL and its certificate authority for the member's pods.
func (j *joinCommand) checkHubAddress(ctx context.Context) error {
	config := rest.CopyConfig(j.hub.config)
	if err := rest.LoadTLSFiles(config); err != nil {
		return fmt.Errorf("the hub's kubeconfig: %w", err)
	}
	var before *hubAddress
	var isHere bool
	if j.invited == nil {
		var err error
		if before, isHere, err = j.existingHubAddress(ctx); err != nil {
			return err
		}
	}
	kept := before
	if !isHere {
		kept = nil
	}
	address, server, ca := j.chooseHubAddress(hubAddress{server: config.Host, ca: config.CAData}, kept)
	if kept == nil && before != nil && before.server != address.server {
		j.r.notef("the agent's Secret leads to %s with a token for no account of this hub, as if that were another hub: %s takes its place; pass --hub-server for another URL", before.server, address.server)
	}
	j.useHubAddress(address, server, ca)
	return nil
}

// useHubAddress sets the hub's address, and checks that agents can use it.
func (j *joinCommand) useHubAddress(address hubAddress, server, ca hubAddressSource) {
	j.hubAddress = address
	at, err := url.Parse(address.server)
	switch {
	case err != nil || at.Scheme != "https" || at.Host == "":
		j.r.failf("the hub's URL %q is none that an agent can use: pass --hub-server https://<host>:<port>", address.server)
	case server == fromKubeconfig && isLoopback(at.Hostname()):
		j.r.failf("the hub's URL %s means another machine inside this cluster's pods: pass --hub-server with the URL that they reach the hub at", address.server)
	case !x509.NewCertPool().AppendCertsFromPEM(address.ca):
		j.r.failf("there is no certificate authority by which agents could know the hub (%s): pass --hub-ca with a PEM file", ca)
	default:
		j.r.okf("agents will reach the hub at %s (%s), and know it by its certificate authority (%s)", address.server, server, ca)
	}
}

// chooseHubAddress returns the address with its two sources: from the flags, else as before, else from the hub's kubeconfig.
// before is nil if the existing address is not to be kept.
func (o *joinOptions) chooseHubAddress(kubeconfig hubAddress, before *hubAddress) (address hubAddress, server, ca hubAddressSource) {
	address, server, ca = kubeconfig, fromKubeconfig, fromKubeconfig
	if o.invited != nil {
		server, ca = fromInvitation, fromInvitation
	}
	if before != nil {
		address, server, ca = *before, asBefore, asBefore
	}
	if o.hubServer != "" {
		address.server, server = o.hubServer, fromServerFlag
	}
	if o.hubCA != "" {
		address.ca, ca = o.ca, fromCAFlag
	}
	return address, server, ca
}

// existingHubAddress returns the address in the agent's Secret, nil if there is none, and whether it is of this hub. URLs cannot
// be compared: one hub may have several, and another hub may use the same one. So it compares the ServiceAccount of the token,
// even if that has expired.
func (j *joinCommand) existingHubAddress(ctx context.Context) (before *hubAddress, isHere bool, err error) {
	if j.id == "" {
		return nil, false, nil
	}
	secret, err := hubSecret(ctx, j.member)
	if err != nil || secret == nil {
		return nil, false, err
	}
	if before = hubAddressIn(secret); before == nil {
		return nil, false, nil
	}
	isHere, err = j.isIssuedByHub(ctx, secret)
	return before, isHere, err
}

// hubAddressIn returns the address in the agent's Secret, nil if join did not write it.
func hubAddressIn(secret *corev1.Secret) *hubAddress {
	config, err := clientcmd.Load(secret.Data[clusterset.HubSecretKubeconfig])
	ca := secret.Data[clusterset.HubSecretCA]
	if err != nil || len(ca) == 0 {
		return nil
	}
	current := config.Contexts[config.CurrentContext]
	if current == nil || config.Clusters[current.Cluster] == nil {
		return nil
	}
	return &hubAddress{server: config.Clusters[current.Cluster].Server, ca: ca}
}

// hubSecretKey returns the key of the agent's Secret in the member.
func hubSecretKey() client.ObjectKey {
	return client.ObjectKey{Namespace: manifests.AgentNamespace, Name: manifests.HubSecret}
}

// hubSecret returns the agent's Secret in a member, nil if there is none.
func hubSecret(ctx context.Context, member *cluster) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := member.client.Get(ctx, hubSecretKey(), secret)
	if isAbsentKind(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get Secret %s: %w", hubSecretKey(), err)
	}
	return secret, nil
}

func isLoopback(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.IsLoopback()
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// kubeconfig returns the agent's kubeconfig. It refers to the other keys of the Secret as files, which client-go reads again when
// they change.
func (w hubAddress) kubeconfig() ([]byte, error) {
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

// flags returns the arguments with which the agent checks that it can reach the hub.
func (w hubAddress) flags() []string {
	return []string{"--check-hub=" + w.server, "--check-hub-ca=" + base64.StdEncoding.EncodeToString(w.ca)}
}
