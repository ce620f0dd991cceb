// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// ClusterID is the name of a cluster in its clusterset (KEP-2149). It is an RFC 1123 label, because it is also a DNS label in the
// names of headless endpoints. It does not change while the cluster is a member.
type ClusterID string

// hubNamespacePrefix precedes the cluster ID in the name of a member's namespace on the hub.
const hubNamespacePrefix = "member-"

// MaxClusterIDLength is the longest ID for which the namespace name on the hub is legal (63 characters). KEP-2149 allows longer IDs.
const MaxClusterIDLength = validation.DNS1123LabelMaxLength - len(hubNamespacePrefix)

// ParseClusterID returns s as a ClusterID, or an error with the reason and what to do (spec N7).
func ParseClusterID(s string) (ClusterID, error) {
	if s == "" {
		return "", fmt.Errorf("the cluster ID is empty: set the ClusterProperty cluster.clusterset.k8s.io, or pass --cluster-id")
	}
	if problems := validation.IsDNS1123Label(s); len(problems) > 0 {
		return "", fmt.Errorf("cluster ID %q is no DNS label (%s): choose another", s, strings.Join(problems, "; "))
	}
	if len(s) > MaxClusterIDLength {
		return "", fmt.Errorf("cluster ID %q has %d characters, more than %d: its namespace on the hub, %s<id>, would be too long; choose a shorter one",
			s, len(s), MaxClusterIDLength, hubNamespacePrefix)
	}
	return ClusterID(s), nil
}

// HubNamespace returns the namespace of this member on the hub.
func (id ClusterID) HubNamespace() string { return hubNamespacePrefix + string(id) }

// ClusterIDOfHubNamespace returns the member of a namespace on the hub, and false if the namespace does not belong to a member. Only
// the namespace of an object proves which member has written it.
func ClusterIDOfHubNamespace(namespace string) (ClusterID, bool) {
	rest, ok := strings.CutPrefix(namespace, hubNamespacePrefix)
	if !ok {
		return "", false
	}
	id, err := ParseClusterID(rest)
	return id, err == nil
}
