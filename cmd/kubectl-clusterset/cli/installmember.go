// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/install"
	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/apply"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/corefile"
)

// installMember applies the definitions, the ClusterProperties, the agent and the DNS.
func (j *joinCommand) installMember(ctx context.Context) error {
	if err := applyAll(ctx, j.member, j.definitions, j.r); err != nil {
		return err
	}
	if err := applyAll(ctx, j.member, j.properties, j.r); err != nil {
		return err
	}
	j.runtimeOptions.hub = j.hubAddress.server
	objects, err := j.renderUpdate(j.agentArgs(), j.r)
	if err != nil {
		return err
	}
	// The Secret is applied after its namespace, and before the agent, which mounts it.
	namespaces := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() != "Namespace" })
	if err := applyAll(ctx, j.member, objects[:namespaces], j.r); err != nil {
		return err
	}
	if err := j.applyCredentials(ctx); err != nil {
		return err
	}
	if err := applyAll(ctx, j.member, objects[namespaces:], j.r); err != nil {
		return err
	}
	return errors.Join(j.removeGateway(ctx), j.removeAutoExport(ctx))
}

// agentArgs returns the Service ranges as an argument if the cluster has no ServiceCIDRs, and the addresses of the gateways if their
// Service does not have them.
func (j *joinCommand) agentArgs() []string {
	if j.hasServiceCIDRs {
		return j.gatewayArgs()
	}
	return append(j.gatewayArgs(), "--"+serviceCIDRsFlag+"="+commas(j.own.services))
}

// applyCredentials applies the agent's Secret with the hub's address and a token. It keeps a token that is valid for long enough,
// because the agent renews it.
func (j *joinCommand) applyCredentials(ctx context.Context) error {
	kubeconfig, err := j.hubAddress.kubeconfig()
	if err != nil {
		return err
	}
	secret, err := j.hubSecret(ctx)
	if err != nil {
		return err
	}
	outcome := install.Configured
	if secret == nil {
		secret, outcome = &corev1.Secret{}, install.Created
	}
	key := hubSecretKey()
	leads := bytes.Equal(secret.Data[clusterset.HubSecretKubeconfig], kubeconfig) && bytes.Equal(secret.Data[clusterset.HubSecretCA], j.hubAddress.ca)
	if leads && j.admitted != nil && j.invited == nil { // an invitation has no right to compare the account of the token
		good, err := j.isTokenValid(ctx, secret)
		if err != nil {
			return err
		}
		if good {
			j.r.outcome(install.Unchanged, "secret/"+key.Name)
			return nil
		}
	}
	if j.isDryRun() {
		j.r.outcome(outcome, "secret/"+key.Name)
		return nil
	}
	account := client.ObjectKey{Namespace: j.id.HubNamespace(), Name: manifests.MemberServiceAccount}
	token, err := apply.ToHub(j.hub.client, account.Namespace).IssueToken(ctx, account, clusterset.TokenLifetime)
	if err != nil {
		return fmt.Errorf("on the hub: %w", err)
	}
	object := newSecret(key, token.ExpirationTimestamp.Time, map[string][]byte{
		clusterset.HubSecretKubeconfig: kubeconfig,
		clusterset.HubSecretCA:         j.hubAddress.ca,
		clusterset.HubSecretToken:      []byte(token.Token),
	})
	// The agent owns these fields if it has renewed the token.
	if outcome, err = j.member.install.Force().Apply(ctx, object); err != nil {
		return err
	}
	j.r.outcome(outcome, "secret/"+key.Name) // its content is never printed
	return nil
}

// newSecret returns a Secret with a token that expires at this time.
func newSecret(key client.ObjectKey, expires time.Time, content map[string][]byte) *unstructured.Unstructured {
	data := map[string]any{}
	for name, value := range content {
		data[name] = base64.StdEncoding.EncodeToString(value)
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret",
		"metadata": map[string]any{
			"namespace": key.Namespace, "name": key.Name, "labels": map[string]any{labelPartOf: partOf},
			"annotations": map[string]any{clusterset.AnnotationTokenExpires: expires.UTC().Format(time.RFC3339)},
		},
		"data": data,
	}}
}

// awaitHeartbeat waits until the hub has a new heartbeat of the agent.
func (j *joinCommand) awaitHeartbeat(ctx context.Context, before *hubv1alpha1.Heartbeat) error {
	if j.wait == 0 {
		j.r.titlef("The agent's first heartbeat on the hub is not waited for (--wait=0).")
		return nil
	}
	j.r.titlef("Waiting for the agent's heartbeat on the hub")
	begin := time.Now()
	ctx, cancel := context.WithTimeout(ctx, j.wait)
	defer cancel()
	err := poll(ctx, func(ctx context.Context) (bool, error) {
		beat, err := j.heartbeat(ctx)
		if err != nil || beat == nil {
			return false, ignoreTransient(err)
		}
		return beat.Spec.ClusterUID == j.uid && (before == nil || beat.ResourceVersion != before.ResourceVersion), nil
	})
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("everything is installed, but the hub received no heartbeat of the agent within %s: see why with "+
			"\"kubectl -n %s get pods\" and \"kubectl -n %s logs deployment/%s\", and run this again",
			j.wait, manifests.AgentNamespace, manifests.AgentNamespace, manifests.AgentDeployment)
	}
	if err != nil {
		return err
	}
	j.r.okf("received its heartbeat after %.0f s", time.Since(begin).Seconds())
	return nil
}

// printNextStep prints the remaining step: the cluster's own DNS must forward the names of the clusterset.
func (j *joinCommand) printNextStep(ctx context.Context) error {
	j.r.titlef("%s is a member now.", j.id)
	d := &dnsEdit{member: j.member}
	addresses, err := d.addresses(ctx)
	if err != nil {
		j.r.titlef("Next, unless you have done so already, have its DNS answer for %s: \"kubectl clusterset dns --by kubernetes\".", zone)
		return nil //nolint:nilerr // without Tombolo's DNS, CoreDNS can serve the names
	}
	block, err := corefile.ForwardBlock(zone, addresses...)
	if err != nil {
		return err
	}
	j.r.titlef("Next, unless you have done so already, have its DNS answer for %s: \"kubectl clusterset dns\" adds this to its Corefile.\n\n%s", zone, block)
	return nil
}
