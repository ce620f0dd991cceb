// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

func TestFailedStart(t *testing.T) {
	logs := t.TempDir()
	folder, err := os.MkdirTemp("/tmp", "lab-test-")
	lab.Must(t, err)
	defer os.RemoveAll(folder)
	t.Setenv("TMPDIR", folder)
	bad := lab.ClusterOptions{Name: "bad", APIServerArgs: []string{"--no-such-flag"}}
	_, err = lab.New(t.Context(), lab.Options{Clusters: []lab.ClusterOptions{lab.Member("good"), bad}, Logs: logs})
	if err == nil {
		t.Fatal("a lab with a bad flag started")
	}
	for _, want := range []string{
		"starting kube-apiserver of cluster bad: the process ended: exit status 1",
		"Its log " + filepath.Join(logs, "bad", "kube-apiserver.log") + " ends:",
		"unknown flag: --no-such-flag",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q:\n%v", want, err)
		}
	}
	if left, err := leftovers(context.Background(), folder); left != "" || err != nil {
		t.Errorf("left behind: %s, %v", left, err)
	}
}

func TestBadOptions(t *testing.T) {
	v4 := netip.MustParsePrefix("10.0.0.0/16")
	for name, tc := range map[string]struct {
		clusters []lab.ClusterOptions
		want     string
	}{
		"no cluster":  {nil, "lab: 0 clusters are asked for; it takes 1 to 100"},
		"equal names": {[]lab.ClusterOptions{lab.Member("a"), lab.Member("a")}, `lab: two clusters are named "a"`},
		"unknown family": {
			[]lab.ClusterOptions{{Name: "a", IPFamilies: []corev1.IPFamily{"IPv5"}}},
			`lab: cluster "a": bad IP family "IPv5": it is IPv4 or IPv6`,
		},
		"families and CIDRs": {
			[]lab.ClusterOptions{{Name: "a", IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}, ServiceCIDRs: []netip.Prefix{v4}}},
			`lab: cluster "a": set IPFamilies or ServiceCIDRs, not both`,
		},
		"one family twice": {
			[]lab.ClusterOptions{{Name: "a", ServiceCIDRs: []netip.Prefix{v4, v4}}},
			`lab: cluster "a": bad service CIDRs [10.0.0.0/16 10.0.0.0/16]: it takes one, or one of each family`,
		},
		"no binaries": {
			[]lab.ClusterOptions{lab.Member("a")}, `lab: etcd, kube-apiserver, kube-controller-manager not found in /nowhere: run "make assets"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := lab.New(t.Context(), lab.Options{Clusters: tc.clusters, Assets: "/nowhere"}); err == nil || err.Error() != tc.want {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
		})
	}
}
