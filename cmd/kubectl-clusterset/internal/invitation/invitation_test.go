// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package invitation

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/assess"
	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// newAuthority returns a certificate authority, as PEM.
func newAuthority(t testing.TB) []byte {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check.Must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	check.Must(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// newInvitation returns a valid invitation with a real certificate authority.
func newInvitation(t testing.TB) File {
	t.Helper()
	return File{
		TypeMeta:  metav1.TypeMeta{APIVersion: assess.StatusVersion, Kind: Kind},
		ClusterID: "east", ClusterSet: "shops", Expires: metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)),
		Hub: Hub{Server: "https://hub.example.com:6443", CertificateAuthority: string(newAuthority(t))}, Token: "secret",
	}
}

// TestInvitationFile: a file is read as it was written, and every field is checked.
func TestInvitationFile(t *testing.T) {
	t.Parallel()
	good := newInvitation(t)
	good.Expires = metav1.NewTime(good.Expires.Local()) // as it is decoded
	text, err := good.Text()
	check.Must(t, err)
	const want = "# An invitation for cluster east to join the clusterset of https://hub.example.com:6443, until 2026-03-01 12:00:00Z."
	check.Equal(t, "first line", want, strings.SplitN(string(text), "\n", 2)[0])
	got, err := parse(text)
	check.Must(t, err)
	check.Equal(t, "read as it was written", good, *got)
	for name, test := range map[string]struct {
		edit func(*File)
		want string
	}{
		"another kind":    {func(i *File) { i.Kind = "Config" }, `it is no invitation of cli.tombolo-mcs.io/v1, but kind "Config"`},
		"another version": {func(i *File) { i.APIVersion = "v1" }, "it is no invitation of"},
		"no ID":           {func(i *File) { i.ClusterID = "" }, "clusterID: "},
		"a bad ID":        {func(i *File) { i.ClusterID = "../kube-system" }, "clusterID: "},
		"no TLS":          {func(i *File) { i.Hub.Server = "http://hub" }, "hub.server is"},
		"no hub":          {func(i *File) { i.Hub.Server = "" }, "hub.server is"},
		"no authority":    {func(i *File) { i.Hub.CertificateAuthority = "x" }, "hub.certificateAuthority has no certificate"},
		"no token":        {func(i *File) { i.Token = "" }, "it has no token"},
	} {
		bad := good
		test.edit(&bad)
		content, err := bad.Text()
		check.Must(t, err)
		if _, err := parse(content); err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", name, err, test.want)
		}
	}
	if _, err := parse(append(text, "more: fields\n"...)); err == nil {
		t.Error("unknown fields are accepted")
	}
	if _, err := parse(append(text, strings.Repeat("#", maxSize)...)); err == nil {
		t.Error("a file of any size is accepted")
	}
}

// TestInvitationExpired: the local clock refuses an expired invitation before a cluster is contacted.
func TestInvitationExpired(t *testing.T) {
	t.Parallel()
	i := newInvitation(t)
	text, err := i.Text()
	check.Must(t, err)
	path := filepath.Join(t.TempDir(), "east.yaml")
	check.Must(t, os.WriteFile(path, text, 0o600))
	_, err = Read(path, i.Expires.Add(-time.Second))
	check.Must(t, err)
	if _, err := Read(path, i.Expires.Time); err == nil || !strings.Contains(err.Error(), "has expired at 2026-03-01 12:00:00Z") {
		t.Errorf("at its end: %v", err)
	}
}

// FuzzParseInvitation: what is accepted can be used: an ID that is a DNS label, a URL with TLS, and certificates.
func FuzzParseInvitation(f *testing.F) {
	i := newInvitation(f)
	text, err := i.Text()
	check.Must(f, err)
	f.Add(text)
	f.Add([]byte("kind: Invitation"))
	f.Fuzz(func(t *testing.T, content []byte) {
		got, err := parse(content)
		if err != nil {
			return
		}
		if _, err := clusterset.ParseClusterID(got.ClusterID); err != nil || !strings.HasPrefix(got.Config().Host, "https://") || got.Token == "" {
			t.Errorf("accepted: %+v (%v)", got, err)
		}
	})
}
