// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package sources_test

import (
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/sources"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TestExports: the local export counts as far as other members accept it.
//
// spec: C7, R7, A1
func TestExports(t *testing.T) {
	t.Parallel()
	web := func(cluster clusterset.ClusterID, labels, annotations map[string]string) clusterset.Export {
		return clusterset.Export{
			Cluster: cluster, Key: clusterset.ServiceKey{Namespace: "shop", Name: "web"}, Type: mcsv1beta1.ClusterSetIP,
			Ports: []clusterset.Port{{Name: "http", Protocol: "TCP", Port: 80}}, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
			Labels: labels, Annotations: annotations,
		}
	}
	type labels = map[string]string
	other := web("other", labels{"team": "green"}, nil)
	legal, recorded := web("own", labels{"team": "red"}, nil), web("own", labels{"team": "blue"}, nil)
	ungranted := web("third", nil, nil)
	tests := map[string]struct {
		own, recorded *clusterset.Export
		barred        error
		want          []clusterset.Export
	}{
		"nothing":                      {want: []clusterset.Export{other}},
		"withdrawn, but recorded":      {recorded: &recorded, want: []clusterset.Export{other}},
		"changed since it is recorded": {own: &legal, recorded: &recorded, want: []clusterset.Export{other, legal}},
		"an illegal label since it is recorded": {
			own: new(web("own", labels{"!": ""}, nil)), recorded: &recorded, want: []clusterset.Export{other, recorded},
		},
		"an illegal label, never recorded": {
			own: new(web("own", labels{"!": ""}, labels{"docs": "x"})), want: []clusterset.Export{other, web("own", nil, nil)},
		},
		"legal, but not its to publish any more": {own: &legal, barred: errors.New("the Member says so"), want: []clusterset.Export{other}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sources.Sources{Local: test.own, Hub: sources.Hub{Exports: []clusterset.Export{other}, LocalExport: test.recorded, NotAllowed: test.barred}}
			check.Equal(t, "exports", test.want, s.Exports())
			s.Hub.Ungranted = []clusterset.Export{ungranted}
			check.Equal(t, "exports, one of which is not granted to this cluster", test.want, s.Exports())
			check.Equal(t, "all exports", slices.Insert(slices.Clone(test.want), 1, ungranted), s.AllExports())
		})
	}
}
