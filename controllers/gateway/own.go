// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tombolo-mcs/tombolo/internal/apply"
	"github.com/tombolo-mcs/tombolo/internal/gateway/identity"
	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
	"github.com/tombolo-mcs/tombolo/internal/plan"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// writeOwn writes the identity of this cluster's gateways and their record on the hub, and returns the time at which either changes
// next.
func (r *Reconciler) writeOwn(ctx context.Context, v view) (time.Time, error) {
	set, err := r.clusterSet(ctx)
	if err != nil {
		return time.Time{}, err
	}
	now := r.Clock.Now()
	rotation, stored, err := r.authorities(ctx, now)
	if err != nil {
		return time.Time{}, err
	}
	renewal, err := r.certificate(ctx, rotation, identity.Name{ClusterSet: set, Cluster: r.Sources.Cluster}, now)
	if err != nil {
		return time.Time{}, err
	}
	published, err := r.publish(ctx, v, rotation)
	if apply.IsRefused(err) {
		r.RecordRefused.Set(1)
		r.warn(v.service, warning{reason: "GatewayNotPublished"}, err.Error(), nil)
	}
	if err != nil {
		return time.Time{}, err
	}
	if published {
		r.RecordRefused.Set(0)
		r.warn(v.service, warning{reason: "GatewayNotPublished"}, "", nil)
		rotation = rotation.MarkPublished(r.Clock.Now())
		if _, err := r.storeAuthorities(ctx, rotation, stored); err != nil {
			return time.Time{}, err
		}
	}
	next := rotation.Next(now)
	if renewal.Before(next) {
		next = renewal
	}
	return next, nil
}

// authorities returns the authorities of this cluster and their Secret, which it has updated: with a new one if it is time, and without
// those whose last certificate has expired. A new authority is stored before it is published, so that its key is not lost.
func (r *Reconciler) authorities(ctx context.Context, now time.Time) (identity.Rotation, *corev1.Secret, error) {
	stored, err := r.secret(ctx, clusterset.GatewayAuthoritySecret)
	if err != nil {
		return nil, nil, err
	}
	var rotation identity.Rotation
	if stored != nil {
		if rotation, err = identity.DecodeRotation(stored.Data[clusterset.GatewayAuthorityKey]); err != nil {
			return nil, nil, fmt.Errorf("read Secret %s: %w. Restore it, or delete it: then the agent creates another authority, and connections between gateways fail until all members have read its certificate",
				client.ObjectKeyFromObject(stored), err)
		}
	}
	rotation = rotation.Pruned(now)
	if rotation.NeedsAuthority(now) {
		authority, err := identity.NewAuthority(r.Sources.Cluster, now)
		if err != nil {
			return nil, nil, fmt.Errorf("create the authority of the gateways: %w", err)
		}
		rotation = rotation.Add(authority, now)
		log.FromContext(ctx).Info("created an authority for the certificates of the gateways", "authorities", len(rotation))
	}
	stored, err = r.storeAuthorities(ctx, rotation, stored)
	return rotation, stored, err
}

// storeAuthorities writes the Secret of the authorities if it differs, and returns it.
func (r *Reconciler) storeAuthorities(ctx context.Context, rotation identity.Rotation, stored *corev1.Secret) (*corev1.Secret, error) {
	text, err := identity.EncodeRotation(rotation)
	if err != nil {
		return nil, fmt.Errorf("encode the authorities of the gateways: %w", err)
	}
	return r.storeSecret(ctx, clusterset.GatewayAuthoritySecret, corev1.SecretTypeOpaque, map[string][]byte{clusterset.GatewayAuthorityKey: text}, stored)
}

// certificate issues a certificate for the gateways if it is time, and returns when it is time for the next one.
func (r *Reconciler) certificate(ctx context.Context, rotation identity.Rotation, name identity.Name, now time.Time) (time.Time, error) {
	stored, err := r.secret(ctx, clusterset.GatewayCertificateSecret)
	if err != nil {
		return time.Time{}, err
	}
	if stored != nil {
		leaf, err := identity.DecodeLeaf(stored.Data[corev1.TLSCertKey], stored.Data[corev1.TLSPrivateKeyKey])
		if err != nil {
			return time.Time{}, fmt.Errorf("read Secret %s: %w. Delete it, so that the agent issues another certificate", client.ObjectKeyFromObject(stored), err)
		}
		if !rotation.NeedsLeaf(leaf.Leaf, name, now) {
			return identity.RenewAt(leaf.Leaf), nil
		}
	}
	signer := rotation.Signer(now)
	if signer < 0 {
		return time.Time{}, errors.New("no authority of the gateways is valid now")
	}
	certificate, key, err := rotation[signer].Issue(name, now)
	if err != nil {
		return time.Time{}, fmt.Errorf("issue the certificate of the gateways: %w", err)
	}
	data := map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key}
	if _, err := r.storeSecret(ctx, clusterset.GatewayCertificateSecret, corev1.SecretTypeTLS, data, stored); err != nil {
		return time.Time{}, err
	}
	leaf, err := identity.DecodeLeaf(certificate, key)
	if err != nil {
		return time.Time{}, err
	}
	log.FromContext(ctx).Info("issued a certificate for the gateways", "expires", leaf.Leaf.NotAfter)
	return identity.RenewAt(leaf.Leaf), nil
}

// secret returns a Secret in the namespace of the agent; nil if it does not exist.
func (r *Reconciler) secret(ctx context.Context, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: r.Sources.AgentNamespace, Name: name}
	err := r.Live.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get Secret %s: %w", key, err)
	}
	return secret, nil
}

// storeSecret writes a Secret if it differs from the stored one, and returns it.
func (r *Reconciler) storeSecret(ctx context.Context, name string, kind corev1.SecretType, data map[string][]byte, stored *corev1.Secret) (*corev1.Secret, error) {
	desired := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.Sources.AgentNamespace, Name: name, Labels: managed()}, Type: kind, Data: data,
	}
	written, err := apply.Do(ctx, r.ToMember, plan.Secret(desired, stored))
	if len(written) > 0 {
		return written[0], err
	}
	return stored, err
}

// publish writes the record of the gateways to the hub, or deletes it if rotation is nil. It reports whether the hub stores it.
func (r *Reconciler) publish(ctx context.Context, v view, rotation identity.Rotation) (bool, error) {
	if !v.synced || !v.hub.Listed || !r.MayWrite() { // the hub is unreachable or has no such kind
		return false, nil
	}
	var desired *hubv1alpha1.PublishedGateway
	if rotation != nil {
		desired = &hubv1alpha1.PublishedGateway{
			ObjectMeta: metav1.ObjectMeta{Namespace: r.Sources.Cluster.HubNamespace(), Name: hubv1alpha1.GatewayName},
			Spec: hubv1alpha1.PublishedGatewaySpec{
				Addresses: v.addresses, Bundle: identity.EncodeBundle(rotation.Authorities()), Versions: wire.Versions(),
			},
		}
	}
	changes := plan.PublishedGateway(desired, v.hub.Own)
	if apply.Reverts(r.ToHub, changes) && r.Reverts.Delay(r.Sources.GatewayService()) > 0 {
		return false, apply.ErrStale // it is tried again
	}
	_, err := apply.Do(ctx, r.ToHub, changes)
	return err == nil && desired != nil, err
}
