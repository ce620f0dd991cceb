// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package dns_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/tombolo-mcs/tombolo/e2e/framework/audit"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/manifests"
)

// TestRights: the DNS with the rights that the manifests give uses each of them, and is refused nothing.
func TestRights(t *testing.T) {
	options := lab.Member("a")
	options.Audit, options.APIServerArgs = true, []string{"--feature-gates=WatchList=false"} // so that clients list, and then watch
	cluster := lab.Start(t, options).Cluster("a")
	if err := membership.InstallCRDs(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	objects, err := manifests.Render("overlays/dns-only")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		text, err := o.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if err := cluster.Apply(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	account := types.NamespacedName{Namespace: "tombolo-system", Name: "tombolo-dns"}
	kubeconfig, err := cluster.ServiceAccountKubeconfig(t.Context(), account.Namespace, account.Name)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("serve", func(t *testing.T) { // until the subtest ends
		s := startServer(t, "clusterset clusterset.local {\nkubeconfig "+kubeconfig+"\n}")
		await(t, s, "dns-version.clusterset.local. TXT", `NOERROR "1.0.0"`)
	})
	rights, err := audit.Rights(objects, account)
	if err != nil || len(rights) == 0 {
		t.Fatalf("rights of %s: %v, %v", account, rights, err)
	}
	awaitFit(t, cluster, account, rights)
}

// awaitFit waits until rights and requests fit. A watch is logged when it has ended.
func awaitFit(t *testing.T, cluster *lab.Cluster, account types.NamespacedName, rights []audit.Right) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		requests, err := audit.Requests(cluster.AuditLog(), account)
		if err == nil {
			if problems := audit.Compare(account, rights, requests); len(problems) > 0 {
				err = errors.New(strings.Join(problems, "\n"))
			}
		}
		last = err
		return err == nil, nil
	})
	if err != nil {
		t.Errorf("rights and requests do not fit:\n%v", last)
	}
}
