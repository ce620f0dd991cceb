// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import "github.com/tombolo-mcs/tombolo/pkg/clusterset"

// Steps are called during a handshake. Each may be nil.
type Steps struct {
	// Wait is called before TLS waits for the peer, and Continue when the peer has answered. Continue may wait.
	Wait, Continue func()
	// Verified is called when TLS has verified the peer, before HELLO of the peer is read. After an error, the handshake has failed.
	Verified func(clusterset.ClusterID) error
}

func (s Steps) verified(cluster clusterset.ClusterID) error {
	if s.Verified == nil {
		return nil
	}
	return s.Verified(cluster)
}
