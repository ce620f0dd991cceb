// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package invitation reads and writes the file with which a cluster joins without an administrator's rights on the hub.
package invitation

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/output"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/assess"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// File is the file with which a cluster joins without an administrator's rights on the hub.
type File struct {
	metav1.TypeMeta `json:",inline"`
	// ClusterID is the only ID with which a cluster can join. ClusterSet is the name of the clusterset; it may be empty.
	ClusterID  string `json:"clusterID"`
	ClusterSet string `json:"clusterSet,omitempty"`
	// Expires is the end of the token, for the user. The hub knows it without this.
	Expires metav1.Time `json:"expires"`
	Hub     Hub         `json:"hub"`
	// Token is a credential: it is valid until a cluster has joined, the invitation is revoked, or it expires.
	Token string `json:"token"`
}

// Hub is how a member reaches the hub.
type Hub struct {
	Server string `json:"server"`
	// CertificateAuthority is PEM.
	CertificateAuthority string `json:"certificateAuthority"`
}

// Kind is the kind of the file.
const Kind = "Invitation"

// maxSize is the maximum size of the file: a token, and certificates.
const maxSize = 256 << 10

// ErrUsed is returned if the hub does not accept the token of an invitation.
var ErrUsed = errors.New("the hub does not accept this invitation: it was used or revoked, it has expired, or a later one replaces it. " +
	"Let the hub's administrator run \"kubectl clusterset invite\" again")

// Read reads and validates a file. It returns an error if the invitation has expired by the local clock.
func Read(path string, now time.Time) (*File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxSize+1))
	if err != nil {
		return nil, err
	}
	result, err := parse(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if !now.Before(result.Expires.Time) {
		return nil, fmt.Errorf("%s: the invitation has expired at %s: let the hub's administrator run \"kubectl clusterset invite\" again", path, result.Expires.UTC().Format(output.TimeFormat))
	}
	return result, nil
}

// parse parses a file, and checks every field.
func parse(content []byte) (*File, error) {
	if len(content) > maxSize {
		return nil, fmt.Errorf("it has more than %d bytes, so it is no invitation", maxSize)
	}
	result := &File{}
	if err := yaml.UnmarshalStrict(content, result); err != nil {
		return nil, fmt.Errorf("it is no invitation: %w", err)
	}
	if result.Kind != Kind || result.APIVersion != assess.StatusVersion {
		return nil, fmt.Errorf("it is no invitation of %s, but kind %q of %q", assess.StatusVersion, result.Kind, result.APIVersion)
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

// Text returns the content of the file.
func (i *File) Text() ([]byte, error) {
	content, err := yaml.Marshal(i)
	if err != nil {
		return nil, err
	}
	const head = "# An invitation for cluster %s to join the clusterset of %s, until %s.\n" +
		"# It contains a credential. In that cluster: kubectl clusterset join --invite <this file>\n"
	return append(fmt.Appendf(nil, head, i.ClusterID, i.Hub.Server, i.Expires.UTC().Format(output.TimeFormat)), content...), nil
}

// Config returns the configuration of a client with the rights of the invitation.
func (i *File) Config() *rest.Config {
	return &rest.Config{Host: i.Hub.Server, BearerToken: i.Token, TLSClientConfig: rest.TLSClientConfig{CAData: []byte(i.Hub.CertificateAuthority)}}
}

// Fingerprint identifies the invitation, and does not reveal its token.
func (i *File) Fingerprint() string {
	digest := sha256.Sum256([]byte(i.Token))
	return hex.EncodeToString(digest[:8])
}
