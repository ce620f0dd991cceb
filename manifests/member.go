// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"fmt"
	"net/netip"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"
	"sigs.k8s.io/yaml"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Names of the objects of a member on the hub, in its namespace.
const (
	// MemberServiceAccount is the ServiceAccount of the member's agent.
	MemberServiceAccount = "tombolo-agent"
	// MemberResourceQuota bounds the member's records.
	MemberResourceQuota = "tombolo"
)

// MemberOptions are the settings of a new member. See hubv1alpha1.MemberSpec for the meaning of the fields.
type MemberOptions struct {
	ClusterID    clusterset.ClusterID
	PodCIDRs     []netip.Prefix
	NodeCIDRs    []netip.Prefix
	ServiceCIDRs []netip.Prefix
	// Namespaces are those from which the member may publish. If empty, all but the reserved ones.
	Namespaces []string
	// ClaimedAges defaults to Bounded.
	ClaimedAges hubv1alpha1.ClaimedAges
	// Network, Publish, GatewayCIDRs and GatewayNames are as in the Member.
	Network      string
	Publish      hubv1alpha1.Publish
	GatewayCIDRs []hubv1alpha1.CIDR
	GatewayNames []hubv1alpha1.DNSName
	// Properties are as in the Member.
	Properties map[string]hubv1alpha1.PropertyValue
	// MaxServices and MaxEndpoints bound the numbers of the member's PublishedServices and PublishedEndpoints. 0 means the default
	// in member/resourcequota.yaml.
	MaxServices, MaxEndpoints int
}

// Member returns the objects of one member on the hub: its namespace with all objects in it, and the binding that lets it read the
// records of other members. The hub's admission policies validate the values.
func Member(o MemberOptions) ([]*unstructured.Unstructured, error) {
	overlay, err := o.overlay()
	if err != nil {
		return nil, fmt.Errorf("manifests: member %s: %w", o.ClusterID, err)
	}
	return render("overlays/rendered", overlay)
}

// overlay returns the files that an administrator would write for this member, as in overlays/example-member.
func (o MemberOptions) overlay() (map[string][]byte, error) {
	member, err := yaml.Marshal(o.member())
	if err != nil {
		return nil, err
	}
	kustomization := types.Kustomization{
		TypeMeta:   types.TypeMeta{APIVersion: types.KustomizationVersion, Kind: types.KustomizationKind},
		Resources:  []string{"member.yaml"},
		Components: []string{"../../member"},
	}
	if hard := o.hard(); len(hard) > 0 {
		patch, err := yaml.Marshal(map[string]any{
			"apiVersion": "v1", "kind": "ResourceQuota",
			"metadata": map[string]any{"name": MemberResourceQuota},
			"spec":     map[string]any{"hard": hard},
		})
		if err != nil {
			return nil, err
		}
		quota := resid.NewResId(resid.NewGvk("", "v1", "ResourceQuota"), MemberResourceQuota)
		kustomization.Patches = []types.Patch{{Patch: string(patch), Target: &types.Selector{ResId: quota}}}
	}
	content, err := yaml.Marshal(kustomization)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		"overlays/rendered/kustomization.yaml": content,
		"overlays/rendered/member.yaml":        member,
	}, nil
}

func (o MemberOptions) member() *hubv1alpha1.Member {
	return &hubv1alpha1.Member{
		TypeMeta:   metav1.TypeMeta{APIVersion: hubv1alpha1.GroupVersion.String(), Kind: "Member"},
		ObjectMeta: metav1.ObjectMeta{Name: hubv1alpha1.MemberName},
		Spec: hubv1alpha1.MemberSpec{
			ClusterID:    string(o.ClusterID),
			PodCIDRs:     cidrs(o.PodCIDRs),
			NodeCIDRs:    cidrs(o.NodeCIDRs),
			ServiceCIDRs: cidrs(o.ServiceCIDRs),
			Namespaces:   namespaces(o.Namespaces),
			ClaimedAges:  o.ClaimedAges,
			Network:      o.Network,
			Publish:      o.Publish,
			GatewayCIDRs: o.GatewayCIDRs,
			GatewayNames: o.GatewayNames,
			Properties:   o.Properties,
		},
	}
}

// hard returns the limits that differ from those in member/resourcequota.yaml.
func (o MemberOptions) hard() map[string]string {
	hard := map[string]string{}
	if o.MaxServices != 0 {
		hard["count/publishedservices."+hubv1alpha1.GroupVersion.Group] = quantity(o.MaxServices)
	}
	if o.MaxEndpoints != 0 {
		hard["count/publishedendpoints."+hubv1alpha1.GroupVersion.Group] = quantity(o.MaxEndpoints)
	}
	return hard
}

// quantity returns a number as an API server stores it: 1000 is 1k.
func quantity(n int) string { return resource.NewQuantity(int64(n), resource.DecimalSI).String() }

func cidrs(prefixes []netip.Prefix) []hubv1alpha1.CIDR {
	out := make([]hubv1alpha1.CIDR, 0, len(prefixes))
	for _, prefix := range prefixes {
		out = append(out, hubv1alpha1.CIDR(prefix.String()))
	}
	return out
}

func namespaces(names []string) []hubv1alpha1.NamespaceName {
	out := make([]hubv1alpha1.NamespaceName, 0, len(names))
	for _, name := range names {
		out = append(out, hubv1alpha1.NamespaceName(name))
	}
	return out
}
