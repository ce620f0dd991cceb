// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TestHubKubeconfig: the address that join writes into the agent's Secret can be read, and an invalid one is ignored.
func TestHubKubeconfig(t *testing.T) {
	address := Address{"https://192.0.2.1:6443", []byte("PEM")}
	kubeconfig, err := address.Kubeconfig()
	check.Must(t, err)
	for name, test := range map[string]struct {
		kubeconfig, ca string
		want           *Address
	}{
		"as join writes it":        {string(kubeconfig), "PEM", &address},
		"no certificate authority": {string(kubeconfig), "", nil},
		"nothing":                  {"", "", nil},
		"no kubeconfig":            {"{", "PEM", nil},
		"no current context":       {strings.Replace(string(kubeconfig), "current-context: hub", "", 1), "PEM", nil},
		"no cluster":               {strings.Replace(string(kubeconfig), "cluster: hub", "cluster: other", 1), "PEM", nil},
	} {
		t.Run(name, func(t *testing.T) {
			secret := &corev1.Secret{Data: map[string][]byte{clusterset.HubSecretKubeconfig: []byte(test.kubeconfig), clusterset.HubSecretCA: []byte(test.ca)}}
			check.Equal(t, "address", test.want, AddressIn(secret), cmp.AllowUnexported(Address{}))
		})
	}
}
