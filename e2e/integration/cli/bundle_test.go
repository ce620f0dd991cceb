// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/cli"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/explain"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
)

// inBundle has a text of each file of a bundle.
var inBundle = map[string]string{
	"status.json": `"kind": "ClustersetStatus"`, "explained/shop.web.json": `"kind": "ServiceExplanation"`, "versions.json": `"kubectl-clusterset": "v0.0.0-test"`,
	"hub/members.json": `"clusterID": "east"`, "hub/heartbeats.json": `"publication": "Complete"`, "hub/publishedservices.json": "shop.web", "hub/publishedendpoints.json": "shop.web.",
	"members/east/deployments.json": "--heartbeat-interval=1s", "members/east/serviceexports.json": "PortConflict", "members/east/events-of-tombolo.json": "Authorization: Bearer (removed)",
	"members/east/logs/tombolo-agent-0.agent.log": "level=INFO msg=started", "members/east/pods.json": "tombolo-agent-0",
	"members/east/logs/tombolo-agent-0.agent.previous.log": "level=ERROR msg=panic", "members/east/serviceexportgrants.json": `"name": "planned"`,
	"members/east/clusterserviceaccesspolicies.json": `"name": "planned"`, "members/east/serviceimportroutingpolicies.json": `"name": "planned"`,
	"members/west/serviceimports.json": `"type": "ClusterSetIP"`, "members/west/derived-services.json": "10.102.", "members/west/endpointslices.json": "10.1.0.1", "members/west/events-of-exports.json": "PortConflict",
}

// testBundle: an archive has all that a bug report needs, and no secret.
func (s *surveyed) testBundle(t *testing.T) {
	secrets := append(s.createSecrets(t), "planted-in-log-456")
	s.runAgentPod(t, "level=INFO msg=started\nlevel=ERROR msg=failed header=\"Authorization: Bearer planted-in-log-456\"\n")
	lab.Eventually(t, waitLimit, func(context.Context) error {
		var e explain.Explanation
		if err := s.data(t, "explain shop/web --all-contexts -o json", &e); err != nil {
			return err
		}
		export := &mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
		s.get(t, "west", export)
		for _, f := range e.Fields {
			if f.Field == "exported annotations" && len(f.Disagree) > 0 && strings.Contains(export.Status.Conditions[2].Message, "planted") {
				return nil
			}
		}
		return fmt.Errorf("no conflict of annotations: %+v", e.Fields)
	})
	var file string
	var found map[string]string
	lab.Eventually(t, waitLimit, func(context.Context) error { // a cluster that does not reply in time is missing
		file = filepath.Join(t.TempDir(), "clusterset.tar.gz")
		out, code := s.run(t, "bundle --all-contexts --file "+file)
		if code != cli.ExitOK || !strings.Contains(out, file+" holds what can be seen of 2 members") {
			return fmt.Errorf("exit code %d\n%s", code, out)
		}
		found = unpack(t, file)
		for name, text := range inBundle {
			if content := found["clusterset/"+name]; !strings.Contains(content, text) {
				return fmt.Errorf("%s does not contain %s:\n%.2000s", name, text, content)
			}
		}
		return nil
	})
	s.endsWith(t, "bundle --all-contexts --file "+file, cli.ExitFailed, "file exists", "name another with --file")
	for name, content := range found {
		for _, secret := range secrets {
			for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret))} {
				if i := strings.Index(content, form); i >= 0 {
					t.Errorf("%s contains the secret %s: %.200s", name, secret, content[max(0, i-100):])
				}
			}
		}
	}
}

// createSecrets writes secrets into all kinds of objects that may have some, and returns them.
func (s *surveyed) createSecrets(t *testing.T) []string {
	t.Helper()
	const inSecret, inEnv, inAnnotation, inExport, inEvent = "planted-in-a-secret", "planted-in-env", "planted-in-annotation", `planted "in" an export's annotation`, "planted-in-event-123"
	annotations := map[string]string{"example.com/note": inAnnotation}
	s.create(t, "east", &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "tombolo-system", Name: "planted"}, StringData: map[string]string{"x": inSecret}})
	agent := s.deployment(t, "tombolo-agent")
	s.edit(t, "east", agent, func() {
		agent.Annotations, agent.Spec.Template.Annotations = annotations, annotations
		container := &agent.Spec.Template.Spec.Containers[0]
		container.Env = append(container.Env, corev1.EnvVar{Name: "PLANTED", Value: inEnv})
	})
	for cluster, note := range map[string]string{"east": inExport, "west": "planted-by-west-" + strings.Repeat("x", 300)} {
		export := &mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
		s.edit(t, cluster, export, func() {
			export.Annotations = annotations
			export.Spec.ExportedAnnotations = map[string]string{"example.com/note": note, "example.com/pin": "pin-" + cluster}
		})
	}
	s.create(t, "east", &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "tombolo-system", Name: "an-event"},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "tombolo-system", Name: "tombolo-agent"},
		Reason:         "Event", Message: "GET https://hub failed: Authorization: Bearer " + inEvent, Type: corev1.EventTypeWarning,
	})
	hub := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "tombolo-system", Name: "tombolo-hub"}}
	s.get(t, "east", hub)
	secrets := []string{inSecret, inEnv, inAnnotation, "planted", "pin-east", "pin-west", inEvent, string(hub.Data["token"])}
	for _, cluster := range s.Clusters() {
		secrets = append(secrets, cluster.Config().BearerToken)
	}
	return secrets
}

// runAgentPod creates a pod of the agent in east, and its node with a kubelet that serves this log.
func (s *surveyed) runAgentPod(t *testing.T, log string) {
	t.Helper()
	kubelet := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/containerLogs/tombolo-system/tombolo-agent-0/agent" {
			t.Errorf("the API server requests %s from the kubelet", r.URL)
		}
		if r.URL.Query().Get("previous") == "true" {
			log = "level=ERROR msg=panic\n"
		}
		_, _ = io.WriteString(w, log)
	}))
	t.Cleanup(kubelet.Close)
	at := netip.MustParseAddrPort(kubelet.Listener.Addr().String())
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
	s.create(t, "east", node)
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: at.Addr().String()}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(at.Port())
	lab.Must(t, s.client(t, "east").Status().Update(t.Context(), node))
	spec := s.deployment(t, "tombolo-agent").Spec.Template.Spec
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "tombolo-system", Name: "tombolo-agent-0"}, Spec: spec}
	pod.Spec.NodeName = "node"
	s.create(t, "east", pod)
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "agent", RestartCount: 1}}
	lab.Must(t, s.client(t, "east").Status().Update(t.Context(), pod))
	s.createRules(t)
}

// createRules creates a rule of each kind in east.
func (s *surveyed) createRules(t *testing.T) {
	t.Helper()
	for kind, spec := range map[string]map[string]any{
		"ServiceExportGrant":         {"exports": []any{"ghost"}, "to": []any{map[string]any{"clusters": []any{"west"}}}},
		"ClusterServiceAccessPolicy": {"direction": "Export", "tier": "Admin", "priority": int64(1), "action": "Pass", "peers": []any{map[string]any{"clusters": []any{"west"}}}},
		"ServiceImportRoutingPolicy": {"imports": []any{"ghost"}, "sources": []any{map[string]any{"any": true}}},
	} {
		rule := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		rule.SetGroupVersionKind(policyv1alpha1.GroupVersion.WithKind(kind))
		rule.SetName("planned")
		if kind != "ClusterServiceAccessPolicy" {
			rule.SetNamespace("shop")
		}
		s.create(t, "east", rule)
		t.Cleanup(func() { lab.Must(t, s.client(t, "east").Delete(context.WithoutCancel(t.Context()), rule)) })
	}
}

func unpack(t *testing.T, file string) map[string]string {
	t.Helper()
	f, err := os.Open(file)
	lab.Must(t, err)
	defer f.Close()
	zip, err := gzip.NewReader(f)
	lab.Must(t, err)
	result := map[string]string{}
	for reader := tar.NewReader(zip); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return result
		}
		lab.Must(t, err)
		text, err := io.ReadAll(reader)
		lab.Must(t, err)
		result[header.Name] = string(text)
	}
}
