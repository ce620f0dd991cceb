// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

func exportOf(name string, conditions ...metav1.Condition) mcsv1beta1.ServiceExport {
	at := metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	return mcsv1beta1.ServiceExport{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, CreationTimestamp: at}, Status: mcsv1beta1.ServiceExportStatus{Conditions: conditions},
	}
}

// TestGetTables shows what get prints. go test ./cmd/kubectl-clusterset/cli -update writes the file anew.
func TestGetTables(t *testing.T) {
	yes, no := metav1.ConditionTrue, metav1.ConditionFalse
	valid, ready := metav1.Condition{Type: "Valid", Status: yes}, metav1.Condition{Type: "Ready", Status: yes, Reason: "Exported", Message: "The service is exported."}
	exports := []mcsv1beta1.ServiceExport{
		exportOf("new"),
		exportOf("valid", valid),
		exportOf("good", valid, ready, metav1.Condition{Type: "Conflict", Status: no}),
		exportOf("missing", metav1.Condition{Type: "Valid", Status: no, Reason: "NoService", Message: "There is no Service."}, metav1.Condition{Type: "Ready", Status: no, Reason: "Pending", Message: "Nothing."}),
		exportOf("refused", valid, metav1.Condition{Type: "Ready", Status: no, Reason: "Failed", Message: "The hub refuses it."}),
		exportOf("conflict", valid, ready, metav1.Condition{Type: "Conflict", Status: yes, Reason: "PortConflict,TypeConflict", Message: "Conflicting ports."}),
	}
	slice := func(cluster string, family discoveryv1.AddressType, ready ...bool) discoveryv1.EndpointSlice {
		s := discoveryv1.EndpointSlice{AddressType: family, ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Labels: map[string]string{mcsv1beta1.LabelServiceName: "web", mcsv1beta1.LabelSourceCluster: cluster},
		}}
		for i := range ready {
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Conditions: discoveryv1.EndpointConditions{Ready: &ready[i]}})
		}
		return s
	}
	unset := slice("north", "IPv4")
	unset.Endpoints = []discoveryv1.Endpoint{{}}
	counts := countEndpoints([]discoveryv1.EndpointSlice{slice("east", "IPv4", true, false), slice("east", "IPv4", true), slice("east", "IPv6", true), slice("west", "IPv4", false), unset})
	imports := []mcsv1beta1.ServiceImport{
		{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Annotations: map[string]string{"multicluster.kubernetes.io/derived-service": "derived-1"}},
			Spec: mcsv1beta1.ServiceImportSpec{
				Type: mcsv1beta1.ClusterSetIP, IPs: []string{"10.0.0.1", "fd00::1"},
				Ports: []mcsv1beta1.ServicePort{{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP}, {Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP}},
			},
			Status: mcsv1beta1.ServiceImportStatus{
				Clusters:   []mcsv1beta1.ClusterStatus{{Cluster: "east"}, {Cluster: "west"}, {Cluster: "north"}, {Cluster: "south"}},
				Conditions: []metav1.Condition{{Type: "Ready", Status: yes, Message: "The service is imported."}, {Type: "DeletionPending", Status: yes, Message: "Held."}},
			},
		},
		{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "six"}, Spec: mcsv1beta1.ServiceImportSpec{Type: mcsv1beta1.Headless},
			Status: mcsv1beta1.ServiceImportStatus{Conditions: []metav1.Condition{{Type: "Ready", Status: no, Reason: "IPFamilyNotSupported", Message: "No family.\x1b"}}},
		},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "foreign"}},
	}
	var out bytes.Buffer
	for _, f := range []format{formatTable, formatWide} {
		exportTable(exports, f).write(&out, "")
		importTable(imports, counts, f).write(&out, "")
	}
	golden(t, "get.txt", out.String())
}

// TestPaint: there are no colours but on a terminal.
func TestPaint(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if got := paint(file)(red, "x") + paint(&bytes.Buffer{})(green, "y"); got != "xy" {
		t.Errorf("in a file: %q", got)
	}
}
