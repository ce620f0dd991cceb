// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/tombolo-mcs/tombolo/internal/gateway/identity"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

const (
	east clusterset.ClusterID = "east"
	west clusterset.ClusterID = "west"
)

// certificates are the files of one side.
type certificates struct {
	Leaf   string // certificate and key
	Bundle string // the authority
}

func writeCertificates(folder string) (map[clusterset.ClusterID]certificates, error) {
	result := map[clusterset.ClusterID]certificates{}
	for _, id := range []clusterset.ClusterID{east, west} {
		authority, err := identity.NewAuthority(id, time.Now())
		if err != nil {
			return nil, err
		}
		certificate, key, err := authority.Issue(identity.Name{ClusterSet: "bench", Cluster: id}, time.Now())
		if err != nil {
			return nil, err
		}
		files := certificates{filepath.Join(folder, string(id)+".pem"), filepath.Join(folder, string(id)+"-ca.pem")}
		if err := os.WriteFile(files.Leaf, append(bytes.Clone(certificate), key...), 0o600); err != nil {
			return nil, err
		}
		bundle := identity.EncodeBundle([]identity.Authority{authority})
		if err := os.WriteFile(files.Bundle, []byte(bundle), 0o600); err != nil {
			return nil, err
		}
		result[id] = files
	}
	return result, nil
}

// mutual returns the settings of HAProxy for mutual TLS 1.3 with the cipher that Go prefers on this processor.
func mutual(own, other certificates) string {
	return fmt.Sprintf("crt %s ca-file %s verify required ssl-min-ver TLSv1.3 ciphersuites TLS_AES_128_GCM_SHA256", own.Leaf, other.Bundle)
}
