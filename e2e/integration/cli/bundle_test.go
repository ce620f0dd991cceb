// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"archive/tar"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/cli"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
)

// unpack returns what an archive holds, by name.
func unpack(t *testing.T, file string) map[string]string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zip, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	result := map[string]string{}
	for reader := tar.NewReader(zip); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return result
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		result[header.Name] = string(text)
	}
}

// edit changes an object that somebody else writes too.
func (s *seen) edit(t *testing.T, cluster string, object client.Object, change func()) {
	t.Helper()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		s.get(t, cluster, object)
		change()
		return s.client(t, cluster).Update(t.Context(), object)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// plant puts secrets wherever there may be some, and returns them.
func (s *seen) plant(t *testing.T) []string {
	t.Helper()
	const inSecret, inEnv, inAnnotation, inExport, inEvent = "planted-in-a-secret", "planted-in-env", "planted-in-annotation", `planted "in" an export's annotation`, "planted-in-event-123"
	annotations := map[string]string{"example.com/note": inAnnotation}
	s.create(t, "east", &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "tombolo-system", Name: "planted"}, StringData: map[string]string{"x": inSecret}})
	agent := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "tombolo-system", Name: "tombolo-agent"}}
	s.edit(t, "east", agent, func() {
		agent.Annotations = annotations
		agent.Spec.Template.Annotations = annotations
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

// logs has a cluster run a pod of the agent whose kubelet answers with a log.
func (s *seen) logs(t *testing.T, cluster, text string) {
	t.Helper()
	kubelet := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/containerLogs/tombolo-system/tombolo-agent-0/agent" {
			t.Errorf("the API server asks the kubelet for %s", r.URL)
		}
		_, _ = io.WriteString(w, text)
	}))
	t.Cleanup(kubelet.Close)
	at := netip.MustParseAddrPort(kubelet.Listener.Addr().String())
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
	s.create(t, cluster, node)
	s.get(t, cluster, node)
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: at.Addr().String()}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(at.Port())
	s.updateStatus(t, cluster, node)
	agent := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "tombolo-system", Name: "tombolo-agent"}}
	s.get(t, cluster, agent)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "tombolo-system", Name: "tombolo-agent-0"}, Spec: agent.Spec.Template.Spec}
	pod.Spec.NodeName = "node"
	s.create(t, cluster, pod)
}

// testBundle: an archive has what a bug report needs, and none of the secrets that lie around.
func (s *seen) testBundle(t *testing.T) {
	secrets := append(s.plant(t), "planted-in-log-456")
	s.logs(t, "east", "level=INFO msg=started\nlevel=ERROR msg=failed header=\"Authorization: Bearer planted-in-log-456\"\n")
	s.await(t, statusPause, "conflict of annotations", func() bool {
		var e survey.Explanation
		s.data(t, "explain shop/web -o json", &e)
		for _, f := range e.Fields {
			if f.Field == "exported annotations" && len(f.Disagree) > 0 {
				export := &mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
				s.get(t, "west", export)
				return strings.Contains(export.Status.Conditions[2].Message, "planted")
			}
		}
		return false
	})
	var file, out string
	var found map[string]string
	var missing []string
	defer func() {
		if t.Failed() {
			t.Logf("the archive holds %v\nbundle says: %s\n%s", slices.Sorted(maps.Keys(found)), out, strings.Join(missing, "\n"))
		}
	}()
	s.await(t, statusPause, "bundle of all that there is", func() bool { // what does not answer in time is left out
		file = filepath.Join(t.TempDir(), "clusterset.tar.gz")
		var code int
		if out, code = s.run(t, "bundle --file "+file); code != cli.ExitOK {
			return false
		}
		found = unpack(t, file)
		missing = lacking(found)
		return len(missing) == 0 && strings.Contains(out, file+" holds what can be seen of 2 members")
	})
	s.endsWith(t, "bundle --file "+file, cli.ExitFailed, "file exists", "name another with --file")
	for name, content := range found {
		for _, secret := range secrets {
			for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret))} {
				if i := strings.Index(content, form); i >= 0 {
					t.Errorf("%s holds the secret %s: %.200s", name, secret, content[max(0, i-100):])
				}
			}
		}
	}
}

// lacking returns what a bundle does not hold and should.
func lacking(found map[string]string) []string {
	var missing []string
	for name, text := range map[string]string{
		"status.json": `"kind": "ClustersetStatus"`, "explained/shop.web.json": `"kind": "ServiceExplanation"`, "versions.json": `"kubectl-clusterset": "v0.0.0-test"`,
		"hub/members.json": `"clusterID": "east"`, "hub/heartbeats.json": `"publication": "Complete"`, "hub/publishedservices.json": "shop.web", "hub/publishedendpoints.json": "shop.web.",
		"members/east/deployments.json": "--heartbeat-interval=1s", "members/east/serviceexports.json": "PortConflict", "members/east/events-of-tombolo.json": "Authorization: Bearer (removed)",
		"members/east/logs/tombolo-agent-0.agent.log": "level=INFO msg=started", "members/east/pods.json": "tombolo-agent-0",
		"members/west/serviceimports.json": `"type": "ClusterSetIP"`, "members/west/derived-services.json": "10.102.", "members/west/endpointslices.json": "10.1.0.1", "members/west/events-of-exports.json": "PortConflict",
	} {
		content, ok := found["clusterset/"+name]
		if !ok || !strings.Contains(content, text) {
			missing = append(missing, fmt.Sprintf("%s does not hold %s:\n%.2000s", name, text, content))
		}
	}
	return missing
}
