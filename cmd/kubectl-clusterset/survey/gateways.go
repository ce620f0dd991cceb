// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/internal/reach"
	"github.com/tombolo-mcs/tombolo/manifests"
	gatewayv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/gateway/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// gateways are those of a member. The zero value has none.
type gateways struct {
	// exist is set if the member has the Service of the gateways.
	exist bool
	// ready are the addresses of the gateways that take connections, and all counts the addresses of all.
	ready []string
	all   int
	// statuses are what the gateways report, by the names of their pods.
	statuses []gatewayv1alpha1.GatewayStatus
	// remote are the gateways of other members that they know.
	remote map[clusterset.ClusterID]gatewayv1alpha1.RemoteGateway
}

// readGateways reads the gateways of a member.
func (m *Member) readGateways(ctx context.Context) (gateways, error) {
	in := client.InNamespace(manifests.AgentNamespace)
	service := &corev1.Service{}
	if err := m.Client.Get(ctx, client.ObjectKey{Namespace: manifests.AgentNamespace, Name: clusterset.GatewayService}, service); err != nil {
		if isNotFound(err) {
			return gateways{}, nil
		}
		return gateways{}, fmt.Errorf("get Service %s: %w", clusterset.GatewayService, err)
	}
	result := gateways{exist: true, remote: map[clusterset.ClusterID]gatewayv1alpha1.RemoteGateway{}}
	endpoints := &discoveryv1.EndpointSliceList{}
	if err := m.Client.List(ctx, endpoints, in, client.MatchingLabels{discoveryv1.LabelServiceName: clusterset.GatewayService}); err != nil {
		return gateways{}, fmt.Errorf("list EndpointSlices: %w", err)
	}
	for _, slice := range endpoints.Items {
		for _, endpoint := range slice.Endpoints {
			result.all++
			if endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready {
				result.ready = append(result.ready, endpoint.Addresses...)
			}
		}
	}
	statuses, remote := &gatewayv1alpha1.GatewayStatusList{}, &gatewayv1alpha1.RemoteGatewayList{}
	for _, list := range []client.ObjectList{statuses, remote} {
		if err := m.Client.List(ctx, list, in); err != nil && !isNotFound(err) {
			return gateways{}, fmt.Errorf("list %s: %w", clusterset.KindOf(list), err)
		}
	}
	result.statuses = statuses.Items
	for _, r := range remote.Items {
		result.remote[clusterset.ClusterID(r.Name)] = r
	}
	return result, nil
}

// reach returns which other clusters the gateways reach, as they report it.
func (g gateways) reach() *reach.Reach {
	result := &reach.Reach{}
	for i := range g.statuses {
		result.Report(g.statuses[i].Name, &g.statuses[i].Report)
	}
	return result
}

// reports returns what the ready gateways report about a cluster: how many reach it, how many do not, and the message of one of these.
func (g gateways) reports(id clusterset.ClusterID) (reached, unreached int, message string) {
	for _, status := range g.statuses {
		if !hasAny(g.ready, status.Report.Addresses) {
			continue // a pod that is gone, or not ready
		}
		for _, cluster := range status.Report.Clusters {
			switch {
			case cluster.Cluster != string(id):
			case cluster.Reachable:
				reached++
			default:
				unreached++
				message = fmt.Sprintf("%s: %s", status.Name, cluster.Message)
			}
		}
	}
	return reached, unreached, message
}

// GatewayReach is what the gateways of a member report of another cluster.
type GatewayReach struct {
	// Installed is set if the member has gateways, and Known if these know the gateways of the other cluster.
	Installed, Known bool
	// Ready counts the addresses of the ready gateways, Reached and Unreached the ready gateways that reach the other cluster, and those
	// that do not.
	Ready, Reached, Unreached int
	// Message is what one of those that do not reach it reports.
	Message string
}

// ReachThroughGateways returns what the gateways of the member report of another cluster.
func (m *Member) ReachThroughGateways(ctx context.Context, to clusterset.ClusterID) (GatewayReach, error) {
	g, err := m.readGateways(ctx)
	if err != nil {
		return GatewayReach{}, err
	}
	return g.reachOf(to), nil
}

func (g gateways) reachOf(to clusterset.ClusterID) GatewayReach {
	result := GatewayReach{Installed: g.exist, Ready: len(g.ready)}
	_, result.Known = g.remote[to]
	result.Reached, result.Unreached, result.Message = g.reports(to)
	return result
}

// reachOfAll returns what the gateways report of the other members; nil if there are no gateways.
func (g gateways) reachOfAll(others []clusterset.ClusterID) map[clusterset.ClusterID]GatewayReach {
	if !g.exist {
		return nil
	}
	result := map[clusterset.ClusterID]GatewayReach{}
	for _, id := range others {
		result[id] = g.reachOf(id)
	}
	return result
}
