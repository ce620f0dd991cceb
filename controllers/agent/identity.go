// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/golang-jwt/jwt/v5"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aboutv1beta1 "github.com/tombolo-mcs/tombolo/pkg/api/about/v1beta1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// identity is the data about its own cluster that an agent reads first.
type identity struct {
	id clusterset.ClusterID
	// fromProperty is set if the ID is from the cluster's ClusterProperty, not from a flag.
	fromProperty bool
	// uid is the UID of the kube-system namespace.
	uid          string
	serviceCIDRs []netip.Prefix
}

// identify reads the identity of the cluster.
func identify(ctx context.Context, member client.Reader, options Options) (identity, error) {
	var result identity
	var err error
	if result.id, result.fromProperty, err = clusterID(ctx, member, options.ClusterID); err != nil {
		return identity{}, err
	}
	if err := checkAccount(options.Hub, result.id); err != nil {
		return identity{}, err
	}
	system := &metav1.PartialObjectMetadata{}
	system.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := member.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		return identity{}, fmt.Errorf("get namespace %s, whose UID identifies this cluster: %w", metav1.NamespaceSystem, err)
	}
	result.uid = string(system.UID)
	if result.serviceCIDRs = options.serviceCIDRs(); len(result.serviceCIDRs) == 0 {
		if result.serviceCIDRs, err = serviceCIDRs(ctx, member); err != nil {
			return identity{}, err
		}
	}
	return result, nil
}

// clusterID returns the cluster ID (spec K1), and whether it is from the ClusterProperty. If there is none, it returns the
// fallback.
func clusterID(ctx context.Context, member client.Reader, fallback string) (clusterset.ClusterID, bool, error) {
	property := &aboutv1beta1.ClusterProperty{}
	err := member.Get(ctx, client.ObjectKey{Name: aboutv1beta1.ClusterIDProperty}, property)
	if notFound(err) {
		id, err := clusterset.ParseClusterID(fallback)
		return id, false, err
	}
	if err != nil {
		return "", false, fmt.Errorf("get ClusterProperty %s: %w", aboutv1beta1.ClusterIDProperty, err)
	}
	id, err := clusterset.ParseClusterID(property.Spec.Value)
	if err != nil {
		return "", false, fmt.Errorf("ClusterProperty %s: %w", aboutv1beta1.ClusterIDProperty, err)
	}
	return id, true, nil
}

// serviceAccountPrefix is the part of a ServiceAccount's user name before its namespace and name.
const serviceAccountPrefix = "system:serviceaccount:"

// checkAccount returns an error if the token for the hub is that of another member: then the ID or the token is wrong (spec K2). It
// does not need the hub. It returns nil if the credentials name no account.
func checkAccount(hub *rest.Config, id clusterset.ClusterID) error {
	token := hub.BearerToken
	if hub.BearerTokenFile != "" {
		content, err := os.ReadFile(hub.BearerTokenFile)
		if err != nil {
			return fmt.Errorf("read the token for the hub: %w", err)
		}
		token = string(content)
	}
	claims := &jwt.RegisteredClaims{}
	if _, _, err := jwt.NewParser().ParseUnverified(strings.TrimSpace(token), claims); err != nil {
		return nil //nolint:nilerr // the hub accepts other tokens too, and verifies them
	}
	account, ok := strings.CutPrefix(claims.Subject, serviceAccountPrefix)
	if !ok {
		return nil
	}
	namespace, _, _ := strings.Cut(account, ":")
	if owner, ok := clusterset.ClusterIDOfHubNamespace(namespace); ok && owner != id {
		return fmt.Errorf("the token for the hub is that of member %q, but this cluster says that it is %q: set the ClusterProperty %s "+
			"(or --cluster-id) back, or let the cluster leave the clusterset and join again under the new ID",
			owner, id, aboutv1beta1.ClusterIDProperty)
	}
	return nil
}

// serviceCIDRs returns the address ranges of the cluster's Services.
func serviceCIDRs(ctx context.Context, member client.Reader) ([]netip.Prefix, error) {
	objects := &networkingv1.ServiceCIDRList{}
	if err := member.List(ctx, objects); err != nil && !notFound(err) {
		return nil, fmt.Errorf("list ServiceCIDRs: %w", err)
	}
	usable := slices.DeleteFunc(objects.Items, func(c networkingv1.ServiceCIDR) bool { return c.DeletionTimestamp != nil })
	ranges, err := clusterset.ServiceRanges(usable)
	if err == nil && len(ranges) == 0 {
		err = errors.New("this cluster does not show the ranges of its Services, which Kubernetes does from 1.33 on: pass --service-cidrs")
	}
	return ranges, err
}

// serviceRanges returns the ranges from which the API server grants addresses of Services now.
func (s *starter) serviceRanges(ctx context.Context) ([]netip.Prefix, error) {
	if configured := s.options.serviceCIDRs(); len(configured) > 0 {
		return configured, nil
	}
	return serviceCIDRs(ctx, s.manager.GetAPIReader())
}

// notFound reports whether an object, or its whole kind, does not exist.
func notFound(err error) bool { return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) }
