// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/hub"
)

// A join by an invitation compares its version with the hub's, which the invitation itself may not read.
func TestInvitedVersion(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer, status := `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403}`, http.StatusForbidden
		switch r.Header.Get("Authorization") + " " + r.Method + " " + r.URL.Path {
		case "Bearer invitation POST /api/v1/namespaces/member-east/serviceaccounts/tombolo-agent/token":
			answer, status = `{"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "status": {"token": "agent"}}`, http.StatusCreated
		case "Bearer agent GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + hub.VersionObject:
			answer, status = `{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "x", "annotations": {"tombolo-mcs.io/version": "v1.2.0"}}}`, http.StatusOK
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	defer server.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	invited := &invitation{ClusterID: "east", Token: "invitation", Hub: invitedHub{Server: server.URL, CertificateAuthority: string(ca)}}
	client, err := hub.Client(invited.config())
	check.Must(t, err)
	for version, want := range map[string]string{
		"v1.2.0": "  ok    the version of the hub is v1.2.0, and that of this command v1.2.0\n",
		"v1.3.0": "  FAIL  this command is of version v1.3.0 and the hub of version v1.2.0: no member may be newer than its hub, so upgrade the hub first: " +
			"kubectl clusterset init-hub --context HUB, with the command of version v1.3.0\n",
	} {
		var out bytes.Buffer
		j := &joinCommand{joinOptions: joinOptions{invited: invited}, hub: &cluster{client: client}, r: &report{out: &out}}
		j.build.Version = version
		check.Must(t, j.checkVersion(t.Context()))
		check.Equal(t, "a join of version "+version, want, out.String())
	}
}
