// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package dns_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tombolo-mcs/tombolo/e2e/framework/audit"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/manifests"
)

// TestRights: CoreDNS uses each of the rights that the manifests grant, and none of its requests is refused.
func TestRights(t *testing.T) {
	options := lab.Member("a")
	options.Audit, options.APIServerArgs = true, []string{"--feature-gates=WatchList=false"} // so that clients list, and then watch
	c := lab.Start(t, options).Cluster("a")
	lab.Must(t, membership.InstallCRDs(t.Context(), c))
	objects, err := manifests.Render("overlays/dns-only")
	lab.Must(t, err)
	for _, o := range objects {
		text, err := o.MarshalJSON()
		lab.Must(t, err)
		lab.Must(t, c.Apply(t.Context(), text))
	}
	account := types.NamespacedName{Namespace: "tombolo-system", Name: "tombolo-dns"}
	kubeconfig, err := c.ServiceAccountKubeconfig(t.Context(), account.Namespace, account.Name)
	lab.Must(t, err)
	s := startCoreDNS(t, clustersetStanza("kubeconfig "+kubeconfig))
	s.await(t, "dns-version.clusterset.local. TXT", `NOERROR "1.0.0"`)
	s.stop() // a watch is logged when it ends
	rights, err := audit.Rights(objects, account)
	if err != nil || len(rights) == 0 {
		t.Fatalf("rights of %s: %v, %v", account, rights, err)
	}
	lab.Eventually(t, patience, func(context.Context) error {
		requests, err := audit.Requests(c.AuditLog(), account)
		if err != nil {
			return err
		}
		if problems := audit.Compare(account, rights, requests); len(problems) > 0 {
			return errors.New(strings.Join(problems, "\n"))
		}
		return nil
	})
}
