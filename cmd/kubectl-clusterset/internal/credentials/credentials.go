// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package credentials reads and writes the Secret with which the agent of a member reaches the hub.
package credentials

import (
	"context"
	"encoding/base64"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clientcmdlatest "k8s.io/client-go/tools/clientcmd/api/latest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/connection"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	"github.com/tombolo-mcs/tombolo/manifests"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Address is the address at which the member's agent reaches the hub.
type Address struct {
	Server string
	CA     []byte // PEM
}

// AddressIn returns the address in the agent's Secret, nil if join did not write it.
func AddressIn(secret *corev1.Secret) *Address {
	config, err := clientcmd.Load(secret.Data[clusterset.HubSecretKubeconfig])
	ca := secret.Data[clusterset.HubSecretCA]
	if err != nil || len(ca) == 0 {
		return nil
	}
	current := config.Contexts[config.CurrentContext]
	if current == nil || config.Clusters[current.Cluster] == nil {
		return nil
	}
	return &Address{Server: config.Clusters[current.Cluster].Server, CA: ca}
}

// SecretKey returns the key of the agent's Secret in the member.
func SecretKey() client.ObjectKey {
	return client.ObjectKey{Namespace: manifests.AgentNamespace, Name: manifests.HubSecret}
}

// ReadSecret returns the agent's Secret in a member, nil if there is none.
func ReadSecret(ctx context.Context, member *connection.Cluster) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := member.Client.Get(ctx, SecretKey(), secret)
	if connection.IsAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get Secret %s: %w", SecretKey(), err)
	}
	return secret, nil
}

// Kubeconfig returns the agent's kubeconfig. It refers to the other keys of the Secret as files, which client-go reads again when
// they change.
func (w Address) Kubeconfig() ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters["hub"] = &clientcmdapi.Cluster{Server: w.Server, CertificateAuthority: clusterset.HubSecretCA}
	config.AuthInfos["agent"] = &clientcmdapi.AuthInfo{TokenFile: clusterset.HubSecretToken}
	config.Contexts["hub"] = &clientcmdapi.Context{Cluster: "hub", AuthInfo: "agent"}
	config.CurrentContext = "hub"
	text, err := runtime.Encode(clientcmdlatest.Codec, config)
	if err != nil {
		return nil, fmt.Errorf("write the agent's kubeconfig: %w", err)
	}
	return text, nil
}

// CheckFlags returns the arguments with which the agent checks that it can reach the hub.
func (w Address) CheckFlags() []string {
	return []string{"--check-hub=" + w.Server, "--check-hub-ca=" + base64.StdEncoding.EncodeToString(w.CA)}
}

// errNoCredentials is returned if a member has no credentials for its hub that this command can use.
var errNoCredentials = fmt.Errorf("the Secret %s has no credentials that this command can use: pass --hub-context", SecretKey())

// HubOfAgent returns a client of the hub with the credentials of a member's agent.
func HubOfAgent(ctx context.Context, member *connection.Cluster) (client.Reader, error) {
	secret := &corev1.Secret{}
	if err := member.Client.Get(ctx, SecretKey(), secret); err != nil {
		return nil, fmt.Errorf("get Secret %s: %w", SecretKey(), err)
	}
	address, token := AddressIn(secret), string(secret.Data[clusterset.HubSecretToken])
	if address == nil || token == "" {
		return nil, errNoCredentials
	}
	return hub.Client(&rest.Config{
		Host: address.Server, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: address.CA}, Timeout: connection.IdentifyTimeout, UserAgent: "kubectl-clusterset",
	})
}
