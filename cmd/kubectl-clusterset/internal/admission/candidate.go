// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package admission admits a cluster on the hub: the flags for the settings of its Member, the checks on the hub, and the objects there.
// join and invite use it.
package admission

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/connection"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/credentials"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/output"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/ranges"
	"github.com/tombolo-mcs/tombolo/internal/record"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Candidate is a cluster that is to become a member, or is one, with its settings on the hub.
type Candidate struct {
	Options
	Hub    *connection.Cluster
	Report *output.Report

	ID         clusterset.ClusterID
	UID        string              // UID of the cluster's kube-system namespace, which identifies the cluster
	Admitted   *hubv1alpha1.Member // the existing Member; nil for a new member
	Own        ranges.Set
	HubAddress credentials.Address // at which its agent reaches the hub

	Others []string // the networks of the other members
	quota  *unstructured.Unstructured
}

// CheckHub reports whether the API server is a hub that the user may change.
func (c *Candidate) CheckHub(ctx context.Context) bool {
	err := c.Hub.Client.List(ctx, &hubv1alpha1.MemberList{}, client.Limit(1))
	switch {
	case connection.IsAbsent(err):
		c.Report.Failf("%s is no hub yet: run \"kubectl clusterset init-hub\" with its context first", c.Hub.Config.Host)
	case err != nil:
		c.Report.Failf("cannot read the members on the hub (%v): you need an administrator's rights there", err)
	default:
		c.Report.Okf("Kubernetes %s at %s is a hub", c.Hub.Version, c.Hub.Config.Host)
	}
	return err == nil
}

// SuspendedMember returns what to do about a suspended Member: join does not undo the suspension by an administrator, or by a
// leave that was interrupted.
func SuspendedMember(id clusterset.ClusterID) string {
	return fmt.Sprintf("cluster ID %q is suspended on the hub, so no member imports its services: if \"kubectl clusterset leave\" was interrupted, run it again "+
		"and then join; to keep the member, run, with the hub's context, \"kubectl --namespace %s patch member/%s --type merge --patch '{\"spec\":{\"suspended\":false}}'\" and then join",
		id, id.HubNamespace(), hubv1alpha1.MemberName)
}

// CheckOverlaps compares the addresses with those of the other members of the same network.
func (c *Candidate) CheckOverlaps(ctx context.Context) error {
	members := &hubv1alpha1.MemberList{}
	if err := c.Hub.Client.List(ctx, members); err != nil {
		return fmt.Errorf("list the members on the hub: %w", err)
	}
	others := map[clusterset.ClusterID]ranges.Set{}
	own := record.NetworkOf(&hubv1alpha1.Member{Spec: c.networkOf(c.Admitted, nil)})
	for i := range members.Items {
		member := &members.Items[i]
		id, ok := clusterset.ClusterIDOfHubNamespace(member.Namespace)
		if !ok || id == c.ID {
			continue
		}
		network := record.NetworkOf(member)
		c.Others = append(c.Others, network)
		if network == own {
			others[id] = ranges.Of(member.Spec)
		}
	}
	found := ranges.Overlaps(c.Own, others)
	for _, o := range found {
		if c.allowOverlap {
			c.Report.Notef("%s", o)
		} else {
			c.Report.Failf("%s: packets may go to the wrong cluster; change the addresses, correct the flags, or pass --allow-overlap if you know better", o)
		}
	}
	if len(found) == 0 {
		c.Report.Okf("no pod or node address overlaps with one of the %d other members of the same network", len(others))
	}
	return nil
}

// DesiredNetwork returns the desired settings of the Member for networks and gateways.
func (c *Candidate) DesiredNetwork() hubv1alpha1.MemberSpec { return c.networkOf(c.Admitted, c.Others) }

// AddressSource is the source of the URL or the certificate authority.
type AddressSource string

// The sources of the address of a hub.
const (
	asBefore       AddressSource = "as before"
	FromKubeconfig AddressSource = "as in the hub's kubeconfig"
	FromInvitation AddressSource = "as in the invitation"
	fromServerFlag AddressSource = "--hub-server"
	fromCAFlag     AddressSource = "--hub-ca"
)

// UseHubAddress sets the hub's address, and checks that agents can use it.
func (c *Candidate) UseHubAddress(address credentials.Address, server, ca AddressSource) {
	c.HubAddress = address
	at, err := url.Parse(address.Server)
	switch {
	case err != nil || at.Scheme != "https" || at.Host == "":
		c.Report.Failf("the hub's URL %q is none that an agent can use: pass --hub-server https://<host>:<port>", address.Server)
	case server == FromKubeconfig && isLoopback(at.Hostname()):
		c.Report.Failf("the hub's URL %s means another machine inside this cluster's pods: pass --hub-server with the URL that they reach the hub at", address.Server)
	case !x509.NewCertPool().AppendCertsFromPEM(address.CA):
		c.Report.Failf("there is no certificate authority by which agents could know the hub (%s): pass --hub-ca with a PEM file", ca)
	default:
		c.Report.Okf("agents will reach the hub at %s (%s), and know it by its certificate authority (%s)", address.Server, server, ca)
	}
}

// ChooseHubAddress returns the address with its two sources: from the flags, else as before, else the initial one. before is nil if the existing
// address is not to be kept.
func (o *Options) ChooseHubAddress(initial credentials.Address, source AddressSource, before *credentials.Address) (address credentials.Address, server, ca AddressSource) {
	address, server, ca = initial, source, source
	if before != nil {
		address, server, ca = *before, asBefore, asBefore
	}
	if o.hubServer != "" {
		address.Server, server = o.hubServer, fromServerFlag
	}
	if o.hubCA != "" {
		address.CA, ca = o.ca, fromCAFlag
	}
	return address, server, ca
}

func isLoopback(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.IsLoopback()
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}
