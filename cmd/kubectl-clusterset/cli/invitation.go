// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// invitation is the file with which a cluster joins without an administrator's rights on the hub.
type invitation struct {
	metav1.TypeMeta `json:",inline"`
	// ClusterID is the only ID with which a cluster can join. ClusterSet is the name of the clusterset; it may be empty.
	ClusterID  string `json:"clusterID"`
	ClusterSet string `json:"clusterSet,omitempty"`
	// Expires is the end of the token, for the user. The hub knows it without this.
	Expires metav1.Time `json:"expires"`
	Hub     invitedHub  `json:"hub"`
	// Token is a credential: it is valid until a cluster has joined, the invitation is revoked, or it expires.
	Token string `json:"token"`
}

// invitedHub is how a member reaches the hub.
type invitedHub struct {
	Server string `json:"server"`
	// CertificateAuthority is PEM.
	CertificateAuthority string `json:"certificateAuthority"`
}

const invitationKind = "Invitation"

// maxInvitationSize is the maximum size of the file: a token, and certificates.
const maxInvitationSize = 256 << 10

// errInvitationUsed is returned if the hub does not accept the token of an invitation.
var errInvitationUsed = errors.New("the hub does not accept this invitation: it was used or revoked, it has expired, or a later one replaces it. " +
	"Let the hub's administrator run \"kubectl clusterset invite\" again")

// readInvitation reads and validates a file. It returns an error if the invitation has expired by the local clock.
func readInvitation(path string, now time.Time) (*invitation, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxInvitationSize+1))
	if err != nil {
		return nil, err
	}
	result, err := parseInvitation(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if !now.Before(result.Expires.Time) {
		return nil, fmt.Errorf("%s: the invitation has expired at %s: let the hub's administrator run \"kubectl clusterset invite\" again", path, result.Expires.UTC().Format(timeFormat))
	}
	return result, nil
}

// parseInvitation parses a file, and checks every field.
func parseInvitation(content []byte) (*invitation, error) {
	if len(content) > maxInvitationSize {
		return nil, fmt.Errorf("it has more than %d bytes, so it is no invitation", maxInvitationSize)
	}
	result := &invitation{}
	if err := yaml.UnmarshalStrict(content, result); err != nil {
		return nil, fmt.Errorf("it is no invitation: %w", err)
	}
	if result.Kind != invitationKind || result.APIVersion != survey.StatusVersion {
		return nil, fmt.Errorf("it is no invitation of %s, but kind %q of %q", survey.StatusVersion, result.Kind, result.APIVersion)
	}
	if _, err := clusterset.ParseClusterID(result.ClusterID); err != nil {
		return nil, fmt.Errorf("clusterID: %w", err)
	}
	at, err := url.Parse(result.Hub.Server)
	switch {
	case err != nil || at.Scheme != "https" || at.Host == "":
		return nil, fmt.Errorf("hub.server is %q, and must be https://<host>:<port>", result.Hub.Server)
	case !x509.NewCertPool().AppendCertsFromPEM([]byte(result.Hub.CertificateAuthority)):
		return nil, errors.New("hub.certificateAuthority has no certificate")
	case result.Token == "":
		return nil, errors.New("it has no token")
	}
	return result, nil
}

// text returns the content of the file.
func (i *invitation) text() ([]byte, error) {
	content, err := yaml.Marshal(i)
	if err != nil {
		return nil, err
	}
	const head = "# An invitation for cluster %s to join the clusterset of %s, until %s.\n" +
		"# It contains a credential. In that cluster: kubectl clusterset join --invite <this file>\n"
	return append(fmt.Appendf(nil, head, i.ClusterID, i.Hub.Server, i.Expires.UTC().Format(timeFormat)), content...), nil
}

// config returns the configuration of a client with the rights of the invitation.
func (i *invitation) config() *rest.Config {
	return &rest.Config{Host: i.Hub.Server, BearerToken: i.Token, TLSClientConfig: rest.TLSClientConfig{CAData: []byte(i.Hub.CertificateAuthority)}}
}
