// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// files returns the files of an archive, by name.
func files(t *testing.T, content []byte) map[string]string {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(content))
	check.Must(t, err)
	result := map[string]string{}
	for reader := tar.NewReader(zip); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return result
		}
		check.Must(t, err)
		text, err := io.ReadAll(reader)
		check.Must(t, err)
		result[header.Name] = string(text)
	}
}

// TestSecretsAreScrubbed: text that resembles a secret is removed, and the text around it stays.
func TestSecretsAreScrubbed(t *testing.T) {
	t.Parallel()
	const jwt = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl"
	for name, tc := range map[string]struct{ text, want string }{
		"a bearer token":           {"GET / Authorization: Bearer abc.def-123 200", "GET / Authorization: Bearer (removed) 200"},
		"in lower case":            {"authorization=bearer sEcReT123", "authorization=bearer (removed)"},
		"basic authentication":     {"Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic (removed)"},
		"a token of an account":    {"got " + jwt + ", ok", "got (removed), ok"},
		"a password in a flag":     {"--password=hunter22 --v=2", "--password=(removed) --v=2"},
		"a token in JSON":          {`{"token": "s3cret", "a": 1}`, `{"token": "(removed)", "a": 1}`},
		"in JSON within JSON":      {`{"log": "{\"api_key\":\"s3cret\"}"}`, `{"log": "{\"api_key\":\"(removed)\"}"}`},
		"credentials in a URL":     {"dial https://me:hunter22@host/x", "dial https://(removed)host/x"},
		"a private key":            {"a\n-----BEGIN EC PRIVATE KEY-----\nMHc\n-----END EC PRIVATE KEY-----\nb", "a\n(removed)\nb"},
		"one that has no end":      {"a\n-----BEGIN PRIVATE KEY-----\nMHcC", "a\n(removed)"},
		"what is known":            {"it says: planted-value!", "it says: (removed)!"},
		"what is known, in base64": {"data: cGxhbnRlZC12YWx1ZQ==", "data: (removed)"},
		"what is harmless":         {"the Secret tombolo-hub/token is mounted; status: True", "the Secret tombolo-hub/token is mounted; status: True"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s scrubber
			s.add("planted-value", "True", "")
			check.Equal(t, "scrubbed", tc.want, s.scrub(tc.text))
		})
	}
}

// TestQuotedAnnotations: quoted annotations are removed, whole or in part.
func TestQuotedAnnotations(t *testing.T) {
	t.Parallel()
	value := map[string]any{
		"message": `Conflicting type. Using "a". Conflicting exported annotations. Using "note=half of a sec…`,
		"problem": `The exporters disagree on exported annotations (using "note=x"; east disagrees).`,
		"fields": []any{
			map[string]any{"field": "exported annotations", "using": "note=x", "disagree": []any{map[string]any{"cluster": "east", "says": "note=y"}}},
			map[string]any{"field": "exported annotations", "using": "note=x", "disagree": []any{"east"}},
			map[string]any{"field": "type", "using": "Headless"},
		},
	}
	want := map[string]any{
		"message": `Conflicting type. Using "a". Conflicting exported annotations (removed)`,
		"problem": `The exporters disagree on exported annotations (using (removed)`,
		"fields": []any{
			map[string]any{"field": "exported annotations", "using": removed, "disagree": []any{map[string]any{"cluster": "east"}}},
			map[string]any{"field": "exported annotations", "using": removed, "disagree": []any{"east"}},
			map[string]any{"field": "type", "using": "Headless"},
		},
	}
	check.Equal(t, "without annotations", want, withoutAnnotations(value))
}

// TestCleaned: only the given fields of an object are copied.
func TestCleaned(t *testing.T) {
	t.Parallel()
	d := appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Name: "agent", Namespace: "tombolo-system", Generation: 3,
		Labels:        map[string]string{"app.kubernetes.io/name": "agent", "example.com/team": "x", "evilkubernetes.io/x": "y", "a.kubernetes.io": "z"},
		Annotations:   map[string]string{clusterset.AnnotationDerivedService: "d", "kubectl.kubernetes.io/last-applied-configuration": "secret"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}},
	}}
	d.Spec.Template.Annotations = map[string]string{"secret": "x"}
	d.Spec.Template.Spec.Containers = []corev1.Container{
		{Name: "agent", Image: "i", Args: []string{"--v=1"}, Env: []corev1.EnvVar{{Name: "A", Value: "secret"}}}, {Name: "other", Image: "j"},
	}
	got, err := cleaned(&appsv1.DeploymentList{Items: []appsv1.Deployment{d}}, fields{"spec.replicas", "spec.template.spec.containers.name", "spec.template.spec.containers.args"})
	check.Must(t, err)
	want := []map[string]any{{
		"metadata": map[string]any{
			"name": "agent", "namespace": "tombolo-system", "generation": int64(3),
			"labels": map[string]any{"app.kubernetes.io/name": "agent"}, "annotations": map[string]any{clusterset.AnnotationDerivedService: "d"},
		},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{
			map[string]any{"name": "agent", "args": []any{"--v=1"}}, map[string]any{"name": "other"},
		}}}},
	}}
	check.Equal(t, "cleaned", want, got)
}

// TestBounds: the size of an archive is limited. It keeps the ends of texts, notes what is left out, and has only paths within
// its folder.
func TestBounds(t *testing.T) {
	t.Parallel()
	const total, each = 800, 100
	var out bytes.Buffer
	a := newArchive(&out, time.Unix(0, 0))
	a.maxTotal, a.maxFile = total, each
	long := strings.Repeat("x", each) + "the end"
	for range total/each + 1 {
		check.Must(t, a.text("../../etc/log", long))
	}
	check.Must(t, a.close())
	check.Equal(t, "bytes", total, a.size)
	found := files(t, out.Bytes())
	if _, ok := found["clusterset/etc/log"]; !ok || len(found) != 2 {
		t.Errorf("it holds %d files", len(found))
	}
	want := strings.Repeat("../../etc/log: 7 bytes from its beginning are left out\n", total/each) + "../../etc/log: 107 bytes from its beginning are left out\n"
	check.Equal(t, "what is left out", want, found["clusterset/left-out.txt"])
	var one bytes.Buffer
	b := newArchive(&one, time.Unix(0, 0))
	b.maxFile = each
	check.Must(t, errors.Join(b.text("log", long), b.close()))
	if got := files(t, one.Bytes())["clusterset/log"]; len(got) != each || !strings.HasSuffix(got, "the end") {
		t.Errorf("of a long text there is %q", got)
	}
}
