// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tombolo-mcs/tombolo/internal/apply"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/internal/plan"
	"github.com/tombolo-mcs/tombolo/internal/reach"
	gatewayv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/gateway/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// writeRemote writes the RemoteGateways. Without gateways there are none.
func (r *Reconciler) writeRemote(ctx context.Context, v view) error {
	var desired []*gatewayv1alpha1.RemoteGateway
	if v.service != nil {
		desired = reach.Remote(r.Sources.AgentNamespace, v.hub.Usable, clusterset.CIDRs(v.hub.Denied), v.hub.OwnRanges, r.Sources.Hub.Properties(), v.remote,
			func(id clusterset.ClusterID) bool {
				_, refused := v.hub.Refused[id]
				return refused || v.hub.Revoked.Has(id) || id == r.Sources.Cluster
			})
		r.warnRefused(v)
	}
	var kept []clusterset.ClusterID
	for _, remote := range desired {
		kept = append(kept, clusterset.ClusterID(remote.Name))
	}
	r.Sources.Hub.KeepGateways(kept)
	changes := plan.RemoteGateways(desired, v.remote)
	_, err := apply.Do(ctx, r.ToMember, changes)
	if err == nil && len(changes) > 0 {
		log.FromContext(ctx).Info("the gateways of other members have changed", "writes", len(changes), "members", kept)
	}
	return err
}

// warning identifies an Event: its reason, and the cluster that it is about, if any.
type warning struct {
	reason  string
	cluster clusterset.ClusterID
}

// warnRefused sends an Event for each member whose record is refused.
func (r *Reconciler) warnRefused(v view) {
	for w := range maps.Clone(r.warned) {
		if _, refused := v.hub.Refused[w.cluster]; w.cluster != "" && !refused {
			r.warn(v.service, w, "", nil)
		}
	}
	for id, refused := range v.hub.Refused {
		text := fmt.Sprintf("The gateways of cluster %s are not used: record %s/gateway on the hub is refused: %v", id, id.HubNamespace(), refused.Reason)
		// Events that differ only in their text count as one, and only the first text is shown.
		about := &gatewayv1alpha1.RemoteGateway{ObjectMeta: metav1.ObjectMeta{
			Namespace: r.Sources.AgentNamespace, Name: string(id), ResourceVersion: refused.Record.ResourceVersion,
		}}
		r.warn(v.service, warning{"GatewayRefused", id}, text, about)
	}
}

// warn sends an Event if its text is another than before, about another object besides the Service if that is not nil. An empty text
// means that there is no reason to warn.
func (r *Reconciler) warn(service *corev1.Service, w warning, text string, about runtime.Object) {
	if r.warned[w] == text {
		return
	}
	if text == "" {
		delete(r.warned, w)
		return
	}
	if r.warned == nil {
		r.warned = map[warning]string{}
	}
	r.warned[w] = text
	r.Events.Eventf(service, about, corev1.EventTypeWarning, w.reason, "Connect", "%s", conditions.EventNote(text))
}
