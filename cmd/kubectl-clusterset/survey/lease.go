// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/apiserver"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// leaseDuration is how long a Lease of the agents is valid after its last renewal. Its holder renews it more often than the heartbeat.
const leaseDuration = 15 * time.Second

// AgentLease is the Lease of a cluster's agents.
type AgentLease struct {
	// Nonce is that of the process that holds the Lease, or held it last; empty for an older agent.
	Nonce string
	// Age is the time since its last renewal, by the clock of the API server that has the Lease, and Led how long its holder has held it.
	Age, Led time.Duration
}

// ReadAgentLease reads the Lease of the agents in a namespace at a time. It returns nil if there is none.
func ReadAgentLease(ctx context.Context, c client.Reader, namespace string, now func() time.Time) (*AgentLease, error) {
	lease := &coordinationv1.Lease{}
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: manifests.AgentDeployment}, lease)
	if apiserver.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get the Lease of the agent: %w", err)
	}
	result := &AgentLease{Age: now().Sub(writtenAt(lease.ManagedFields))}
	if held := lease.Spec.HolderIdentity; held != nil && *held != "" {
		result.Nonce = clusterset.ParseLeaseHolder(*held).Nonce
	} else {
		result.Nonce = lease.Labels[clusterset.LabelNonce]
	}
	if lease.Spec.AcquireTime != nil && lease.Spec.RenewTime != nil {
		result.Led = lease.Spec.RenewTime.Sub(lease.Spec.AcquireTime.Time)
	}
	return result, nil
}

func writtenAt(fields []metav1.ManagedFieldsEntry) time.Time {
	return hub.RenewedAt(&hubv1alpha1.Heartbeat{ObjectMeta: metav1.ObjectMeta{ManagedFields: fields}})
}

// IsLast reports whether the last heartbeat of a member, of an age by the hub's clock, is known not to be that of another cluster than the
// one with the Lease: the process that holds the Lease, or held it last, has sent it. In a copy of the cluster, an old Lease can name that
// process too, but the process does not renew it. An older agent sends a heartbeat without a nonce, which proves nothing.
func (l *AgentLease) IsLast(heartbeat *hubv1alpha1.Heartbeat, age time.Duration) bool {
	return heartbeat.Spec.Nonce == "" || heartbeat.Spec.Nonce == l.Nonce && l.Age <= age+leaseDuration
}

// isOfCopy reports whether the cluster with the Lease is known to be a copy: its agent has led for more than two heartbeats of the member,
// and another process sends these.
func (l *AgentLease) isOfCopy(heartbeat *hubv1alpha1.Heartbeat, last LastHeartbeat) bool {
	return l != nil && heartbeat.Spec.Nonce != "" && l.Nonce != "" && heartbeat.Spec.Nonce != l.Nonce &&
		l.Age <= leaseDuration && l.Led > 2*last.Interval && last.State() == StateConnected
}
