// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"bytes"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// InvitationName is the name of the objects of an invitation on the hub, in the namespace of the member: its ServiceAccount, with its rights,
// and the Secret to which its token is bound.
const InvitationName = "tombolo-invitation"

// Invitation returns the account of the invitation for a member, and its rights.
func Invitation(id clusterset.ClusterID) ([]*unstructured.Unstructured, error) {
	objects, err := Render("member/invitation")
	if err != nil {
		return nil, err
	}
	for i, object := range objects {
		content, err := object.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("manifests: invitation: %w", err)
		}
		objects[i] = &unstructured.Unstructured{}
		if err := objects[i].UnmarshalJSON(bytes.ReplaceAll(content, []byte("CLUSTERID"), []byte(id))); err != nil {
			return nil, fmt.Errorf("manifests: invitation: %w", err)
		}
	}
	return objects, nil
}
