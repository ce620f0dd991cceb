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

// wayToHub is how the member's agent reaches the hub.
type wayToHub struct {
	server string
	ca     []byte // PEM
}

// wayOrigin says where a part of the way to the hub is from.
type wayOrigin string

const (
	asBefore     wayOrigin = "as before"
	inKubeconfig wayOrigin = "as in the hub's kubeconfig"
	byServerFlag wayOrigin = "--hub-server"
	byCAFlag     wayOrigin = "--hub-ca"
)

// checkWay finds the hub's URL and its certificate authority, as the member's pods are to use them.
func (j *joining) checkWay(ctx context.Context) error {
	config := rest.CopyConfig(j.hub.config)
	if err := rest.LoadTLSFiles(config); err != nil {
		return fmt.Errorf("the hub's kubeconfig: %w", err)
	}
	before, isHere, err := j.wayBefore(ctx)
	if err != nil {
		return err
	}
	kept := before
	if !isHere {
		kept = nil
	}
	way, server, ca := j.choose(wayToHub{server: config.Host, ca: config.CAData}, kept)
	if kept == nil && before != nil && before.server != way.server {
		j.r.notef("the agent's Secret leads to %s with a token for no account of this hub, as if that were another hub: %s takes its place; pass --hub-server for another URL", before.server, way.server)
	}
	j.way = way
	at, err := url.Parse(way.server)
	switch {
	case err != nil || at.Scheme != "https" || at.Host == "":
		j.r.failf("the hub's URL %q is none that an agent can use: pass --hub-server https://<host>:<port>", way.server)
	case server == inKubeconfig && isLoopback(at.Hostname()):
		j.r.failf("the hub's URL %s means another machine inside this cluster's pods: pass --hub-server with the URL that they reach the hub at", way.server)
	case !x509.NewCertPool().AppendCertsFromPEM(way.ca):
		j.r.failf("there is no certificate authority by which agents could know the hub (%s): pass --hub-ca with a PEM file", ca)
	default:
		j.r.okf("agents will reach the hub at %s (%s), and know it by its certificate authority (%s)", way.server, server, ca)
	}
	return nil
}

// choose returns the way as the flags say, else as before, else as in the hub's kubeconfig; and where its URL and its
// certificate authority are from. before is nil where nothing is to be kept.
func (o *joinOptions) choose(kubeconfig wayToHub, before *wayToHub) (way wayToHub, server, ca wayOrigin) {
	way, server, ca = kubeconfig, inKubeconfig, inKubeconfig
	if before != nil {
		way, server, ca = *before, asBefore, asBefore
	}
	if o.hubServer != "" {
		way.server, server = o.hubServer, byServerFlag
	}
	if o.hubCA != "" {
		way.ca, ca = o.ca, byCAFlag
	}
	return way, server, ca
}

// wayBefore returns the way in the agent's Secret, nil where there is none, and whether it leads to this hub. The URL does not
// tell: one hub has several, and another may have taken its place. So what counts is whether this hub has the account that
// the token is for, and a token that has expired still says which that is.
func (j *joining) wayBefore(ctx context.Context) (before *wayToHub, isHere bool, err error) {
	if j.id == "" {
		return nil, false, nil
	}
	secret, err := j.hubSecret(ctx)
	if err != nil || secret == nil {
		return nil, false, err
	}
	if before = wayIn(secret); before == nil {
		return nil, false, nil
	}
	isHere, err = j.isIssuedHere(ctx, secret)
	return before, isHere, err
}

// wayIn returns where the agent's Secret leads, nil where it does not say so as join writes it.
func wayIn(secret *corev1.Secret) *wayToHub {
	config, err := clientcmd.Load(secret.Data[clusterset.HubSecretKubeconfig])
	ca := secret.Data[clusterset.HubSecretCA]
	if err != nil || len(ca) == 0 {
		return nil
	}
	current := config.Contexts[config.CurrentContext]
	if current == nil || config.Clusters[current.Cluster] == nil {
		return nil
	}
	return &wayToHub{server: config.Clusters[current.Cluster].Server, ca: ca}
}

// hubSecretKey returns where the agent's Secret lies in the member.
func hubSecretKey() client.ObjectKey {
	return client.ObjectKey{Namespace: manifests.AgentNamespace, Name: manifests.HubSecret}
}

// hubSecret returns the agent's Secret, nil where there is none.
func (j *joining) hubSecret(ctx context.Context) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := j.member.client.Get(ctx, hubSecretKey(), secret)
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
