// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"

	"github.com/tombolo-mcs/tombolo/pkg/access"
	gatewayv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/gateway/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/identity"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/wire"
)

// remote is how to reach and recognize the gateways of another member.
type remote struct {
	certificates []*x509.Certificate
	authorities  *x509.CertPool // the same
	addresses    []string
	// refused are the ranges of this cluster's own addresses.
	refused []netip.Prefix
}

// permit returns why an IP address is not one of the cluster's gateways, although it is one of their addresses or a name of theirs leads
// to it; nil if it may be (G4).
func (r remote) permit(ip netip.Addr) error {
	ip = ip.Unmap()
	if !ip.IsGlobalUnicast() {
		return fmt.Errorf("%s is loopback, link-local, multicast or unspecified: publish another address", ip)
	}
	for _, prefix := range r.refused {
		if prefix.Contains(ip) {
			return fmt.Errorf("%s is in range %s of this cluster's own pods or Services: publish another address", ip, prefix)
		}
	}
	return nil
}

// remotesOf returns the usable remote gateways, and why others are not usable.
func remotesOf(objects []gatewayv1alpha1.RemoteGateway) (map[clusterset.ClusterID]remote, error) {
	result := map[clusterset.ClusterID]remote{}
	var failed []error
	for _, object := range objects {
		certificates, err := identity.DecodeBundle(object.Spec.Bundle)
		if err == nil && !slices.Contains(object.Spec.Versions, wire.Version) {
			err = fmt.Errorf("its gateways support versions %v of the protocol, this one version %d: upgrade the older of both", object.Spec.Versions, wire.Version)
		}
		refused, rangesErr := clusterset.ParsePrefixes(object.Spec.RefusedRanges)
		if err = errors.Join(err, rangesErr); err != nil {
			failed = append(failed, fmt.Errorf("cluster %s: %w", object.Name, err))
			continue
		}
		r := remote{certificates: certificates, authorities: x509.NewCertPool(), refused: refused}
		for _, certificate := range certificates {
			r.authorities.AddCert(certificate)
		}
		for _, address := range object.Spec.Addresses {
			r.addresses = append(r.addresses, net.JoinHostPort(address.Host, strconv.Itoa(int(address.Port))))
		}
		result[clusterset.ClusterID(object.Name)] = r
	}
	return result, errors.Join(failed...)
}

// propertiesOf returns the properties of the other members, without those of which they are not known.
func propertiesOf(objects []gatewayv1alpha1.RemoteGateway) access.Properties {
	result := access.Properties{}
	for i := range objects {
		if properties := objects[i].Spec.Properties; properties != nil {
			converted := map[string]string{}
			for name, value := range properties {
				converted[name] = string(value)
			}
			result[clusterset.ClusterID(objects[i].Name)] = converted
		}
	}
	return result
}

func sameProperties(before, after any) bool {
	b, a := before.(*gatewayv1alpha1.RemoteGateway).Spec.Properties, after.(*gatewayv1alpha1.RemoteGateway).Spec.Properties
	return (b == nil) == (a == nil) && maps.Equal(b, a)
}

// ended returns which clusters are no longer trusted, or lost an authority: their connections must be closed. A bundle that only gains
// an authority ends none.
func ended(before, after map[clusterset.ClusterID]remote) []clusterset.ClusterID {
	var result []clusterset.ClusterID
	for _, id := range slices.Sorted(maps.Keys(before)) {
		now := after[id]
		if slices.ContainsFunc(before[id].certificates, func(c *x509.Certificate) bool { return !slices.ContainsFunc(now.certificates, c.Equal) }) {
			result = append(result, id)
		}
	}
	return result
}
