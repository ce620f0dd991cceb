// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"k8s.io/client-go/util/jsonpath"

	"github.com/tombolo-mcs/tombolo/internal/check"
)

// TestColumns: what "kubectl get -o wide" shows of the hub's kinds; columns in brackets appear only there.
func TestColumns(t *testing.T) {
	for _, crd := range crds(t, "hub") {
		kind := crd.Spec.Names.Kind
		test, known := map[string]struct {
			spec string // of an object, in JSON
			want []string
		}{
			"Member": {
				`{"clusterID": "a", "podCIDRs": ["10.1.0.0/16"], "nodeCIDRs": ["192.0.2.0/28"], "serviceCIDRs": ["10.96.0.0/16"], "claimedAges": "Bounded"}`,
				[]string{
					"Cluster: a", "Network: <none>", `Pod CIDRs: ["10.1.0.0/16"]`, `(Node CIDRs): ["192.0.2.0/28"]`,
					`(Service CIDRs): ["10.96.0.0/16"]`, "(Ages): Bounded", "Age: <date> now",
				},
			},
			"Heartbeat": {
				`{"renewTime": "now", "publication": "Complete", "services": 7, "agentVersion": "v0.1.0", "clusterUID": "6d2f"}`,
				[]string{"Renewed: <date> now", "Publication: Complete", "Services: 7", "Agent: v0.1.0", "(Cluster UID): 6d2f"},
			},
			"PublishedService": {
				`{"type": "ClusterSetIP", "ipFamilies": ["IPv6", "IPv4"], "ports": [{"name": "http", "port": 80}], "exportedAt": "now"}`,
				[]string{
					"Type: ClusterSetIP", `Families: ["IPv6","IPv4"]`, `(Ports): [{"name":"http","port":80}]`, "Exported: <date> now", "Age: <date> now",
				},
			},
			"PublishedEndpoints": {
				`{"addressType": "IPv4", "groups": [{"addresses": ["10.1.0.1"]}], "ports": [{"name": "http", "port": 8080}], "triggerTime": "now"}`,
				[]string{
					"Family: IPv4", "First Address: 10.1.0.1", "Changed: <date> now", `(Ports): [{"name":"http","port":8080}]`, "Age: <date> now",
				},
			},
		}[kind]
		if !known {
			continue
		}
		t.Run(kind, func(t *testing.T) {
			object := map[string]any{"metadata": map[string]any{"creationTimestamp": "now"}}
			var spec map[string]any
			check.Must(t, json.Unmarshal([]byte(test.spec), &spec))
			object["spec"] = spec
			var got []string
			for _, column := range crd.Spec.Versions[0].AdditionalPrinterColumns {
				name := column.Name
				if column.Priority > 0 {
					name = "(" + name + ")"
				}
				cell := cellOf(t, column.JSONPath, object)
				if column.Type == "date" {
					cell = "<date> " + cell
				}
				got = append(got, name+": "+cell)
			}
			check.Equal(t, "columns", test.want, got)
		})
	}
}

// cellOf returns what an API server shows of an object at a path.
func cellOf(t *testing.T, path string, object map[string]any) string {
	t.Helper()
	parsed := jsonpath.New("column").AllowMissingKeys(true)
	check.Must(t, parsed.Parse("{"+path+"}"))
	found, err := parsed.FindResults(object)
	check.Must(t, err)
	if len(found) == 0 || len(found[0]) == 0 {
		return "<none>"
	}
	value := found[0][0].Interface()
	if _, isList := value.([]any); !isList {
		return fmt.Sprint(value)
	}
	text, err := json.Marshal(value)
	check.Must(t, err)
	return string(text)
}
