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
		options lab.Options
		want    string
	}{
		"no cluster": {
			want: "lab: 0 clusters are asked for; it takes 1 to 100",
		},
		"equal names": {
			options: lab.Options{Clusters: []lab.ClusterOptions{lab.Member("a"), lab.Member("a")}},
			want:    `lab: two clusters are named "a"`,
		},
		"unknown family": {
			options: lab.Options{Clusters: []lab.ClusterOptions{{Name: "a", IPFamilies: []corev1.IPFamily{"IPv5"}}}},
			want:    `lab: cluster "a": bad IP family "IPv5": it is IPv4 or IPv6`,
		},
		"families and CIDRs": {
			options: lab.Options{Clusters: []lab.ClusterOptions{
				{Name: "a", IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}, ServiceCIDRs: []netip.Prefix{v4}},
			}},
			want: `lab: cluster "a": set IPFamilies or ServiceCIDRs, not both`,
		},
		"one family twice": {
			options: lab.Options{Clusters: []lab.ClusterOptions{{Name: "a", ServiceCIDRs: []netip.Prefix{v4, v4}}}},
			want:    `lab: cluster "a": bad service CIDRs [10.0.0.0/16 10.0.0.0/16]: it takes one, or one of each family`,
		},
		"no binaries": {
			options: lab.Options{Clusters: []lab.ClusterOptions{lab.Member("a")}, Assets: "/nowhere"},
			want:    `lab: etcd, kube-apiserver, kube-controller-manager not found in /nowhere: run "make assets"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := lab.New(t.Context(), tc.options); err == nil || err.Error() != tc.want {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
		})
	}
}
