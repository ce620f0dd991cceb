// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	gatewayidentity "github.com/tombolo-mcs/tombolo/internal/gateway/identity"
	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
	"github.com/tombolo-mcs/tombolo/manifests"
	gatewayv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/gateway/v1alpha1"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// gatewayService is what an importer warns about if it refuses a record of gateways.
var gatewayService = key{Namespace: manifests.AgentNamespace, Name: clusterset.GatewayService}

// installGateways gives c gateways, so that it reads those of others, and returns the ranges of the hostile member's gateways: one of its
// own and, by a mistake of the hub's administrator, those of c's Services.
func (w *env) installGateways(t *testing.T) []hubv1alpha1.CIDR {
	t.Helper()
	lab.Must(t, membership.InstallGateway(t.Context(), w.c.Cluster))
	result := []hubv1alpha1.CIDR{"198.51.100.0/24"}
	for _, cidr := range w.c.Cluster.ServiceCIDRs {
		result = append(result, hubv1alpha1.CIDR(cidr.String()))
	}
	return result
}

func byImporterOfGateways(says string) refusal {
	return refusal{by: importer, says: says, reason: "GatewayRefused"}
}

// exposing replaces the record of the member's gateways by a good one that is changed.
func exposing(change func(*hubv1alpha1.PublishedGatewaySpec)) try {
	return func(ctx context.Context, a *attempt) error {
		authority, err := gatewayidentity.NewAuthority("mallory", time.Now())
		if err != nil {
			return err
		}
		record := &hubv1alpha1.PublishedGateway{
			ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: hubv1alpha1.GatewayName},
			Spec: hubv1alpha1.PublishedGatewaySpec{
				Addresses: []hubv1alpha1.GatewayAddress{{Host: "198.51.100.1", Port: 443}},
				Bundle:    gatewayidentity.EncodeBundle([]gatewayidentity.Authority{authority}), Versions: wire.Versions(),
			},
		}
		change(&record.Spec)
		if err := client.IgnoreNotFound(a.Delete(ctx, record.DeepCopy())); err != nil {
			return err
		}
		return a.Create(ctx, record)
	}
}

// at is a record of gateways with another address.
func at(host string) try {
	return exposing(func(s *hubv1alpha1.PublishedGatewaySpec) {
		s.Addresses = append(s.Addresses, hubv1alpha1.GatewayAddress{Host: host, Port: 443})
	})
}

// gateways are records of gateways, to which the gateways of other members connect.
//
// spec: G4, G5
func gateways() []act {
	const foreign = " is neither in the gatewayCIDRs nor one of the gatewayNames of the Member of cluster mallory"
	const notInCIDRs = " is not in the gatewayCIDRs of the Member"
	bad := func(name string, try try, by ...refusal) act {
		return act{name: name, try: try, refused: by, service: gatewayService, check: noRemoteGateway}
	}
	return []act{
		bad("gateways at another member's pod", at("10.1.0.1"),
			byPolicy("gateways", "10.1.0.1"+foreign), byImporterOfGateways("10.1.0.1"+notInCIDRs)),
		bad("gateways at the metadata server", at("169.254.169.254"),
			byPolicy("gateways", "169.254.169.254 is loopback, link-local"), byImporterOfGateways("169.254.169.254"+notInCIDRs)),
		bad("gateways at the loopback address", at("127.0.0.1"),
			byPolicy("gateways", "127.0.0.1 is loopback, link-local"), byImporterOfGateways("127.0.0.1"+notInCIDRs)),
		bad("gateways at a name of another member", at("gw.example.com"),
			byPolicy("gateways", "gw.example.com"+foreign),
			byImporterOfGateways(`"gw.example.com" is not one of the gatewayNames of the Member`)),
		bad("gateways at an address of the importer's Services, by a mistaken Member",
			func(ctx context.Context, a *attempt) error { return at(serviceOf(a))(ctx, a) },
			byImporterOfGateways("the address of a gateway")),
		bad("a bundle that is no PEM", exposing(func(s *hubv1alpha1.PublishedGatewaySpec) { s.Bundle = "garbage" }),
			bySchema("spec.bundle in body should match"),
			byImporterOfGateways("the bundle contains more than PEM blocks of certificates")),
		bad("a bundle with a certificate that cannot be read",
			exposing(func(s *hubv1alpha1.PublishedGatewaySpec) {
				s.Bundle = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
			}),
			byImporterOfGateways("the bundle's certificate 1: x509")),
		bad("a bundle of 1 MB", exposing(func(s *hubv1alpha1.PublishedGatewaySpec) { s.Bundle = strings.Repeat(s.Bundle, 1500) }),
			bySchema("spec.bundle: Too long"), byImporterOfGateways("bytes, more than 16384")),
		bad("10,000 addresses of gateways",
			exposing(func(s *hubv1alpha1.PublishedGatewaySpec) {
				for i := range 10_000 {
					s.Addresses = append(s.Addresses, hubv1alpha1.GatewayAddress{Host: fmt.Sprintf("198.51.100.%d", i%256), Port: int32(1 + i)})
				}
			}),
			bySchema("spec.addresses: Too many"), byImporterOfGateways("it has 10001 addresses, more than 16")),
	}
}

// serviceOf returns the first address of the importer's Services.
func serviceOf(a *attempt) string { return a.c.Cluster.ServiceCIDRs[0].Addr().Next().String() }

// noRemoteGateway checks that the gateways of c do not know those of the hostile member.
func noRemoteGateway(t *testing.T, w *env, _ key) {
	t.Helper()
	for _, remote := range world.List(t, w.c, &gatewayv1alpha1.RemoteGatewayList{}).Items {
		if remote.Name == "mallory" {
			t.Errorf("the gateways of c know %+v", remote.Spec)
		}
	}
}
