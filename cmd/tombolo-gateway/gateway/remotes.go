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

	"github.com/tombolo-mcs/tombolo/internal/access"
	"github.com/tombolo-mcs/tombolo/internal/gateway/identity"
	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
	gatewayv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/gateway/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// remote is how to reach and recognize the gateways of another member.
type remote struct {
	certificates []*x509.Certificate
	authorities  *x509.CertPool // the same
	addresses    []string
	// refused are the ranges of this cluster's own addresses.
	refused []netip.Prefix
	own     clusterset.OwnRanges
}

// ownRangesOf returns the ranges of this cluster; none if an agent of an earlier version has written the object.
func ownRangesOf(object *gatewayv1alpha1.OwnRanges) (result clusterset.OwnRanges, err error) {
	if object == nil {
		return result, nil
	}
	var errs [3]error
	result.Pods, errs[0] = clusterset.ParsePrefixes(object.Pods)
	result.Nodes, errs[1] = clusterset.ParsePrefixes(object.Nodes)
	result.Services, errs[2] = clusterset.ParsePrefixes(object.Services)
	return result, errors.Join(errs[:]...)
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

// remotesOf returns the usable remote gateways, and why others are not usable. If the authorities of a cluster are those of before, so is
// their pool.
func remotesOf(objects []gatewayv1alpha1.RemoteGateway, before map[clusterset.ClusterID]remote) (map[clusterset.ClusterID]remote, error) {
	result := map[clusterset.ClusterID]remote{}
	var failed []error
	for _, object := range objects {
		certificates, err := identity.DecodeBundle(object.Spec.Bundle)
		if err == nil && !wire.HasCommon(object.Spec.Versions) {
			err = fmt.Errorf("its gateways support versions %v of the protocol, this one versions %v: upgrade the older of both", object.Spec.Versions, wire.Versions())
		}
		refused, rangesErr := clusterset.ParsePrefixes(object.Spec.RefusedRanges)
		own, ownErr := ownRangesOf(object.Spec.OwnRanges)
		if err = errors.Join(err, rangesErr, ownErr); err != nil {
			failed = append(failed, fmt.Errorf("cluster %s: %w", object.Name, err))
			continue
		}
		r := remote{certificates: certificates, authorities: x509.NewCertPool(), refused: refused, own: own}
		for _, certificate := range certificates {
			r.authorities.AddCert(certificate)
		}
		if former, ok := before[clusterset.ClusterID(object.Name)]; ok && former.authorities.Equal(r.authorities) {
			r.authorities = former.authorities
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

// lessTrusted reports whether a cluster is no longer trusted, or has lost an authority: connections may have to be closed.
func lessTrusted(before, after map[clusterset.ClusterID]remote) bool {
	for id, former := range before {
		now := after[id].certificates
		if slices.ContainsFunc(former.certificates, func(c *x509.Certificate) bool { return !slices.ContainsFunc(now, c.Equal) }) {
			return true
		}
	}
	return false
}
