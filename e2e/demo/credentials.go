// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/tombolo-mcs/tombolo/manifests"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// renewInterval is well below the hour for which a token of a ServiceAccount is valid.
const renewInterval = 20 * time.Minute

// writeHubKubeconfig writes the member's credentials for the hub and returns the path of the kubeconfig. The token is in a
// file of its own, which the agent reads anew every minute, as it would a Secret that is mounted.
func (m *member) writeHubKubeconfig() (string, error) {
	if err := m.writeHubToken(m.hub.BearerToken); err != nil {
		return "", err
	}
	const name = "hub"
	file := clientcmdapi.NewConfig()
	file.Clusters[name] = &clientcmdapi.Cluster{Server: m.hub.Host, CertificateAuthorityData: m.hub.CAData}
	file.AuthInfos[name] = &clientcmdapi.AuthInfo{TokenFile: m.hubTokenFile()}
	file.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	file.CurrentContext = name
	path := filepath.Join(m.folder(), "hub.kubeconfig")
	return path, clientcmd.WriteToFile(*file, path)
}

func (m *member) writeHubToken(token string) error {
	next := m.hubTokenFile() + ".new"
	if err := os.WriteFile(next, []byte(token), 0o600); err != nil {
		return err
	}
	return os.Rename(next, m.hubTokenFile())
}

func (m *member) hubTokenFile() string { return filepath.Join(m.folder(), "hub.token") }

// renewCredentials keeps the members' credentials for the hub valid until ctx ends, and returns why it ended.
func (s *stage) renewCredentials(ctx context.Context) error {
	ticker := time.NewTicker(renewInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
		for _, m := range s.members() {
			config, err := s.credentials(ctx, m)
			if err != nil {
				return err
			}
			if err := m.writeHubToken(config.BearerToken); err != nil {
				return err
			}
		}
	}
}

func (s *stage) credentials(ctx context.Context, m *member) (*rest.Config, error) {
	return s.hub.ServiceAccountConfig(ctx, clusterset.ClusterID(m.name).HubNamespace(), manifests.MemberServiceAccount)
}
