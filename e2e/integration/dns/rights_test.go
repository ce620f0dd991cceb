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
	c := lab.Start(t, lab.Member("a").Audited()).Cluster("a")
	lab.Must(t, membership.InstallCRDs(t.Context(), c))
	objects, err := manifests.Render("overlays/dns-only")
	lab.Must(t, err)
	lab.Must(t, membership.Apply(t.Context(), c, objects...))
	account := types.NamespacedName{Namespace: "tombolo-system", Name: "tombolo-dns"}
	kubeconfig, err := c.ServiceAccountKubeconfig(t.Context(), account.Namespace, account.Name)
	lab.Must(t, err)
	s := startCoreDNS(t, clustersetStanza("kubeconfig "+kubeconfig))
	s.await(t, "dns-version.clusterset.local. TXT", `NOERROR "1.0.0"`)
	s.stop() // a watch is logged when it ends
	lab.Eventually(t, waitLimit, func(context.Context) error {
		problems, err := audit.Misfits(account, objects, c.AuditLog())
		if err == nil && len(problems) > 0 {
			err = errors.New(strings.Join(problems, "\n"))
		}
		return err
	})
}
