// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/credentials"
	"github.com/tombolo-mcs/tombolo/internal/check"
)

// TestChooseHubAddress: the address of the hub is from the flags, else as before, else from the kubeconfig.
func TestChooseHubAddress(t *testing.T) {
	kubeconfig := credentials.Address{Server: "https://kubeconfig", CA: []byte("kubeconfig")}
	before := &credentials.Address{Server: "https://before", CA: []byte("before")}
	for name, test := range map[string]struct {
		o          Options
		before     *credentials.Address
		want       credentials.Address
		server, ca AddressSource
	}{
		"first time":        {Options{}, nil, kubeconfig, FromKubeconfig, FromKubeconfig},
		"first, with flags": {Options{hubServer: "https://s", hubCA: "f", ca: []byte("c")}, nil, credentials.Address{Server: "https://s", CA: []byte("c")}, fromServerFlag, fromCAFlag},
		"again":             {Options{}, before, *before, asBefore, asBefore},
		"another URL":       {Options{hubServer: "https://s"}, before, credentials.Address{Server: "https://s", CA: []byte("before")}, fromServerFlag, asBefore},
		"another authority": {Options{hubCA: "f", ca: []byte("c")}, before, credentials.Address{Server: "https://before", CA: []byte("c")}, asBefore, fromCAFlag},
		"an empty file":     {Options{hubCA: "/dev/null"}, before, credentials.Address{Server: "https://before", CA: nil}, asBefore, fromCAFlag},
	} {
		t.Run(name, func(t *testing.T) {
			address, server, ca := test.o.ChooseHubAddress(kubeconfig, FromKubeconfig, test.before)
			check.Equal(t, "address", test.want, address, cmp.AllowUnexported(credentials.Address{}))
			if server != test.server || ca != test.ca {
				t.Errorf("the URL is %s, the certificate authority %s", server, ca)
			}
		})
	}
}
