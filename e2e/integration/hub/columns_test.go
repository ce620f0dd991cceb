// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"fmt"
	"regexp"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// What "kubectl get -o wide" shows; columns in brackets appear only there.
func (h *hub) testColumns(t *testing.T) {
	for _, o := range []client.Object{
		h.a.service(everything, func(s *hubv1alpha1.PublishedService) { s.Spec.Ports = append(s.Spec.Ports, manyPorts(1)...) }),
		h.a.endpoints(func(e *hubv1alpha1.PublishedEndpoints) { e.Spec.TriggerTime = new(metav1.NowMicro()) }),
		h.a.heartbeat(),
	} {
		checkError(t, h.a.Create(t.Context(), o), "")
		t.Cleanup(func() { h.delete(t, o) })
	}
	for resource, want := range map[string][]string{
		"members": {
			"Name: member",
			"Cluster: a",
			"Network: <nil>",
			`Pod CIDRs: ["10.1.0.0/16","fd00:1::/32"]`,
			`(Node CIDRs): ["192.0.2.0/28","2001:db8:1::/64"]`,
			`(Service CIDRs): ["10.96.0.0/16"]`,
			"(Ages): Bounded",
			"Age: <some time>",
		},
		"heartbeats": {
			"Name: heartbeat",
			"Renewed: <some time>",
			"Publication: Complete",
			"Services: 7",
			"Agent: v0.1.0",
			"(Cluster UID): 6d2f1c3e-7a52-4f0e-9a0b-6f2f6f6f6f6f",
		},
		"publishedservices": {
			"Name: shop.web",
			"Type: ClusterSetIP",
			`Families: ["IPv6","IPv4"]`,
			`(Ports): [{"appProtocol":"kubernetes.io/h2c","name":"http","port":80,"protocol":"TCP"},{"name":"p0","port":1,"protocol":"TCP"}]`,
			"Exported: <some time>",
			"Age: <some time>",
		},
		"publishedendpoints": {
			"Name: shop.web.0123456789",
			"Family: IPv4",
			"First Address: 10.1.0.1",
			"Changed: <some time>",
			`(Ports): [{"name":"http","port":8080,"protocol":"TCP"}]`,
			"Age: <some time>",
		},
	} {
		t.Run(resource, func(t *testing.T) {
			lab.Equal(t, "columns", want, h.firstRow(t, resource))
		})
	}
}

var duration = regexp.MustCompile(`^(\d+[smhd])+$`)

// firstRow returns "column: cell" for each column of the first object in the namespace of member a.
func (h *hub) firstRow(t *testing.T, resource string) []string {
	t.Helper()
	config := rest.CopyConfig(h.a.config)
	config.APIPath, config.GroupVersion, config.NegotiatedSerializer = "/apis", &hubv1alpha1.GroupVersion, clientscheme.Codecs.WithoutConversion()
	c, err := rest.RESTClientFor(config)
	lab.Must(t, err)
	table := &metav1.Table{}
	err = c.Get().Namespace(h.a.namespace).Resource(resource).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(t.Context()).Into(table)
	lab.Must(t, err)
	if len(table.Rows) != 1 {
		t.Fatalf("%d rows", len(table.Rows))
	}
	var row []string
	for i, column := range table.ColumnDefinitions {
		name, cell := column.Name, fmt.Sprint(table.Rows[0].Cells[i])
		if column.Priority > 0 {
			name = "(" + name + ")"
		}
		if duration.MatchString(cell) {
			cell = "<some time>"
		}
		row = append(row, name+": "+cell)
	}
	return row
}
