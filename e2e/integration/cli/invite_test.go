// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/yaml"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/cli"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// invited is the content of an invitation.
type invited map[string]any

// refusedInvitation is what join says of an invitation that has ended.
const refusedInvitation = "the hub does not accept this invitation: it was used or revoked, it has expired, or a later one replaces it"

// testInvitation: a cluster joins without rights on the hub. An invitation is used up by a join that succeeds. The hub refuses one that was
// used, has expired, is for another ID, was revoked or replaced, and it allows nothing but to join. The agent may start later than the hub
// refuses it.
//
// spec: K1, K2, K3
func (w *world) testInvitation(t *testing.T) {
	stop := startNode(t, w.Cluster("east"), w.agent)
	before, folder := w.traces(t, "hub", "east"), t.TempDir()
	file := func(name string) string { return filepath.Join(folder, name+".yaml") }
	invite := "invite --context hub --cluster-id east --hub-server " + w.Cluster("hub").Config().Host + " --pod-cidrs 10.1.0.0/16 --gateway-cidrs 198.51.100.0/24 -o "
	join := func(name string) string {
		return "join --context east --agent-image example/agent:v1 --invite " + file(name)
	}
	w.must(t, invite+file("first"))
	w.refused(t, invite+file("first"), cli.ExitFailed, "file exists", "name another with -o")
	first := w.read(t, file("first"))
	w.isLimited(t, first)

	w.refused(t, join("first")+" --cluster-id west", cli.ExitUsage, "--cluster-id=west: the invitation is for east")
	w.forge(t, file("forged"), first, func(i invited) { i["clusterID"] = "west" })
	w.refused(t, join("forged"), cli.ExitFailed, `the invitation has no right to join as "west"`, "nothing has been changed")
	w.refused(t, join("first")+" --hub-server https://127.0.0.1:1", cli.ExitFailed, "do not reach the hub", "nothing has been changed")

	stop()
	out := w.joinsLate(t, first, join("first")+" --check-from-inside=false "+installGateway) // a failure has not used it up
	if !strings.Contains(out, "the invitation is used up") || !strings.Contains(out, "other members reach the gateways at 198.51.100.1:8443") || strings.Contains(out, first.token()) {
		t.Errorf("join by an invitation prints\n%s", out)
	}
	w.unchanged(t, join("first")) // by the token that the agent got with it
	if out := w.must(t, "invite list --context hub"); strings.Contains(out, "east") {
		t.Errorf("the invitation that was used is listed:\n%s", out)
	}

	w.must(t, invite+file("second"))
	second := w.read(t, file("second"))
	w.must(t, invite+file("third")) // it replaces the second one
	w.ends(t, second)
	w.refused(t, join("second"), cli.ExitFailed, refusedInvitation)
	third := w.read(t, file("third"))
	w.expired(t, third, file("expired"))
	w.refused(t, join("expired"), cli.ExitFailed, refusedInvitation)
	if out := w.must(t, "invite list --context hub -o json"); !strings.Contains(out, `"kind": "InvitationList"`) || !strings.Contains(out, `"cluster": "east"`) {
		t.Errorf("an open invitation is not listed as data:\n%s", out)
	}
	if out := w.must(t, "invite list --context hub"); !strings.Contains(out, "east") || !strings.Contains(out, "open") {
		t.Errorf("an open invitation is not listed:\n%s", out)
	}
	w.must(t, "invite revoke east --context hub")
	w.ends(t, third)
	w.refused(t, join("third"), cli.ExitFailed, refusedInvitation)
	w.refused(t, "invite revoke east --context hub", cli.ExitFailed, "there is no invitation for east")

	w.must(t, "leave --context east --hub-context hub --yes")
	lab.Equal(t, "after leaving", before, w.traces(t, "hub", "east"))
}

// joinsLate joins a cluster whose agent starts when the hub refuses the token of the invitation, as if its image took long to download.
func (w *world) joinsLate(t *testing.T, i invited, join string) (out string) {
	t.Helper()
	code, joined := 0, make(chan struct{})
	go func() {
		defer close(joined)
		out, code = w.run(t, join)
	}()
	w.ends(t, i)
	startNode(t, w.Cluster("east"), w.agent)
	<-joined
	if code != cli.ExitOK {
		t.Fatalf("$ kubectl clusterset %s\n%sexit code %d", join, out, code)
	}
	return out
}

func (i invited) token() string { return i["token"].(string) }

// read returns an invitation, whose file only its owner may read.
func (w *world) read(t *testing.T, path string) invited {
	t.Helper()
	info, err := os.Stat(path)
	lab.Must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %s", info.Mode())
	}
	content, err := os.ReadFile(path)
	lab.Must(t, err)
	result := invited{}
	lab.Must(t, yaml.Unmarshal(content, &result))
	return result
}

// forge writes an edited invitation.
func (w *world) forge(t *testing.T, path string, from invited, edit func(invited)) {
	t.Helper()
	forged := maps.Clone(from)
	edit(forged)
	content, err := yaml.Marshal(forged)
	lab.Must(t, err)
	lab.Must(t, os.WriteFile(path, content, 0o600))
}

// withToken returns a client of the hub with a token.
func (w *world) withToken(t *testing.T, token string) *kubernetes.Clientset {
	t.Helper()
	config := rest.AnonymousClientConfig(w.Cluster("hub").Config())
	config.BearerToken = token
	set, err := kubernetes.NewForConfig(config)
	lab.Must(t, err)
	return set
}

// ends waits until the hub refuses the token of an invitation: it caches what it has accepted for some seconds.
func (w *world) ends(t *testing.T, i invited) {
	t.Helper()
	hub := w.withToken(t, i.token())
	lab.Eventually(t, waitLimit, func(context.Context) error {
		if _, err := hub.Discovery().ServerVersion(); !apierrors.IsUnauthorized(err) {
			return fmt.Errorf("the hub accepts the token: %w", err)
		}
		return nil
	})
}

// isLimited: with the token of an invitation, one can join with its ID, and do nothing else.
func (w *world) isLimited(t *testing.T, i invited) {
	t.Helper()
	hub := w.withToken(t, i.token())
	const group = "hub.tombolo-mcs.io"
	for _, test := range []struct {
		allowed                                             bool
		verb, group, resource, subresource, namespace, name string
	}{
		{true, "get", group, "members", "", "member-east", "member"},
		{true, "get", group, "heartbeats", "", "member-east", "heartbeat"},
		{true, "create", "", "serviceaccounts", "token", "member-east", "tombolo-agent"},
		{true, "delete", "", "secrets", "", "member-east", "tombolo-invitation"},
		{false, "get", group, "publishedgateways", "", "member-east", "gateway"},
		{false, "get", "", "secrets", "", "member-east", "tombolo-invitation"},
		{false, "list", "", "secrets", "", "member-east", ""},
		{false, "create", "", "secrets", "", "member-east", ""},
		{false, "create", "", "serviceaccounts", "token", "member-east", "tombolo-invitation"},
		{false, "create", "", "serviceaccounts", "token", "member-west", "tombolo-agent"},
		{false, "update", group, "members", "", "member-east", "member"},
		{false, "get", group, "members", "", "member-west", "member"},
		{false, "list", group, "members", "", "", ""},
		{false, "list", group, "publishedservices", "", "", ""},
		{false, "create", group, "publishedservices", "", "member-east", ""},
		{false, "update", group, "heartbeats", "", "member-east", "heartbeat"},
	} {
		review, err := hub.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: test.verb, Group: test.group, Resource: test.resource, Subresource: test.subresource, Namespace: test.namespace, Name: test.name,
			}},
		}, metav1.CreateOptions{})
		lab.Must(t, err)
		if review.Status.Allowed != test.allowed {
			t.Errorf("with an invitation, %+v: allowed is %v", test, review.Status.Allowed)
		}
	}
	const year = 365 * 24 * 60 * 60 // the policy for the tokens of members is for those of invitations too
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(year))}}
	if _, err := hub.CoreV1().ServiceAccounts("member-east").CreateToken(t.Context(), "tombolo-agent", request, metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("with an invitation, a token of a year: %v", err)
	}
}

// expired writes an invitation whose token differs from a valid one only in its end, which is past. It is signed with the key of the hub.
// The same token with the end of the valid one is accepted.
func (w *world) expired(t *testing.T, valid invited, path string) {
	t.Helper()
	now := time.Now()
	if _, err := w.withToken(t, w.signed(t, valid.token(), now.Add(time.Hour))).Discovery().ServerVersion(); err != nil {
		t.Fatalf("a token that is signed here is not accepted: %v", err)
	}
	w.forge(t, path, valid, func(i invited) { i["token"] = w.signed(t, valid.token(), now.Add(-time.Minute)) })
}

// signed returns a token (RFC 7519) of the hub with another end.
func (w *world) signed(t *testing.T, token string, end time.Time) string {
	t.Helper()
	parts := strings.Split(token, ".")
	content, err := base64.RawURLEncoding.DecodeString(parts[1])
	lab.Must(t, err)
	claims := map[string]any{}
	lab.Must(t, json.Unmarshal(content, &claims))
	claims["exp"] = end.Unix()
	content, err = json.Marshal(claims)
	lab.Must(t, err)
	pem, err := os.ReadFile(filepath.Join(filepath.Dir(w.Cluster("hub").Kubeconfig()), "service-account.key"))
	lab.Must(t, err)
	key, err := keyutil.ParsePrivateKeyPEM(pem)
	lab.Must(t, err)
	text := parts[0] + "." + base64.RawURLEncoding.EncodeToString(content)
	digest := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, key.(*ecdsa.PrivateKey), digest[:])
	lab.Must(t, err)
	signature := make([]byte, 64) // ES256 (RFC 7518)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}
