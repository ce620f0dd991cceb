// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

import "strings"

// LabelNonce is a label of the Lease of the agents: the nonce of the process that held it last. It stays when that process releases the
// Lease.
const LabelNonce = "tombolo-mcs.io/nonce"

// LeaseHolder is a process of the agent that holds the Lease of its cluster.
type LeaseHolder struct {
	// Pod and PodUID are the name and the UID of its Pod; PodUID is empty if it is not known.
	Pod, PodUID string
	// Nonce is the random number of the process, which its heartbeats contain too. It is empty for an older agent.
	Nonce string
}

// String returns the holderIdentity of the Lease.
func (h LeaseHolder) String() string { return h.Pod + "_" + h.PodUID + "_" + h.Nonce }

// ParseLeaseHolder returns the process with a holderIdentity. Older agents, and other holders, have only a Pod.
func ParseLeaseHolder(identity string) LeaseHolder {
	parts := strings.Split(identity, "_")
	if len(parts) != 3 {
		return LeaseHolder{Pod: parts[0]}
	}
	return LeaseHolder{Pod: parts[0], PodUID: parts[1], Nonce: parts[2]}
}
