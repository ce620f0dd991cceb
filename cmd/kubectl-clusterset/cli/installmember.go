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
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// installMember gives the agent its credentials, and then applies all else. If a later write is refused, an existing agent continues with its
// new credentials.
func (j *joinCommand) installMember(ctx context.Context) error {
	j.runtimeOptions.hub = j.hubAddress.server
	first, rest, err := j.memberObjects(ctx)
	if err != nil {
		return err
	}
	if err := applyAll(ctx, j.member, first, j.r); err != nil {
		return err
	}
	if err := j.applyCredentials(ctx); err != nil {
		return err
	}
	open := j.useUpInvitation(ctx)
	if err := j.restartAgent(ctx); err != nil {
		return errors.Join(open, err)
	}
	if err := j.applyRest(ctx, rest); err != nil {
		err = fmt.Errorf("%w (the agent has its credentials for the hub; the rest is not complete)", err)
		return errors.Join(open, err)
	}
	return open
}

// memberObjects returns the namespace of the agent, if it does not exist, and all other objects of the cluster except the Secret.
func (j *joinCommand) memberObjects(ctx context.Context) (first, rest []*unstructured.Unstructured, err error) {
	if j.installedBy() != "" {
		j.noteServiceCIDRs()
		return nil, j.properties, nil
	}
	objects, err := j.renderUpdate(j.agentArgs(), j.r)
	if err != nil {
		return nil, nil, err
	}
	err = j.member.client.Get(ctx, client.ObjectKey{Name: manifests.AgentNamespace}, &corev1.Namespace{})
	if isAbsentKind(err) {
		end := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() != "Namespace" })
		return objects[:end], slices.Concat(j.definitions, j.properties, objects[end:]), nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("get namespace %s of %s: %w", manifests.AgentNamespace, j.member.what, err)
	}
	return nil, slices.Concat(j.definitions, j.properties, objects), nil
}

// restartAgent has an existing agent read the URL of the hub, if it has started with another or an unknown one: an agent reads the token and
// the certificate authority again, and the URL only when it starts.
func (j *joinCommand) restartAgent(ctx context.Context) error {
	agent := j.agent()
	if agent == nil || agent.Spec.Template.Annotations[annotationHub] == j.hubAddress.server {
		return nil
	}
	edited := agent.DeepCopy()
	if edited.Spec.Template.Annotations == nil {
		edited.Spec.Template.Annotations = map[string]string{}
	}
	edited.Spec.Template.Annotations[annotationHub] = j.hubAddress.server
	if _, err := j.member.install.Patch(ctx, agent, edited); err != nil {
		return fmt.Errorf("the agent has its credentials for the hub, and must be restarted to use %s: run this again, or \"kubectl -n %s rollout restart deployment/%s\": %w",
			j.hubAddress.server, manifests.AgentNamespace, manifests.AgentDeployment, err)
	}
	j.r.outcome("restarted", "deployment.apps/"+manifests.AgentDeployment)
	return nil
}

// applyRest applies what a member has beside its credentials.
func (j *joinCommand) applyRest(ctx context.Context, objects []*unstructured.Unstructured) error {
	if err := applyAll(ctx, j.member, objects, j.r); err != nil {
		return err
	}
	if j.installedBy() == "" {
		if err := errors.Join(j.removeGateway(ctx), j.removeAutoExport(ctx)); err != nil {
			return err
		}
	}
	if j.admitted == nil || j.invited != nil {
		return nil
	}
	j.r.titlef("%s", j.heading("On the hub"))
	return j.limit(ctx)
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
	secret, err := hubSecret(ctx, j.member)
	if err != nil {
		return err
	}
	outcome := install.Configured
	if secret == nil {
		secret, outcome = &corev1.Secret{}, install.Created
	}
	key := hubSecretKey()
	leads := bytes.Equal(secret.Data[clusterset.HubSecretKubeconfig], kubeconfig) && bytes.Equal(secret.Data[clusterset.HubSecretCA], j.hubAddress.ca)
	if leads {
		good, err := j.keepsToken(ctx, secret)
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
	token, err := j.issueToken(ctx, j.id, clusterset.TokenLifetime)
	if err != nil {
		return err
	}
	object := newSecret(key, token.ExpirationTimestamp.Time, map[string][]byte{
		clusterset.HubSecretKubeconfig: kubeconfig,
		clusterset.HubSecretCA:         j.hubAddress.ca,
		clusterset.HubSecretToken:      []byte(token.Token),
	})
	if j.invited != nil {
		object.SetAnnotations(map[string]string{clusterset.AnnotationTokenExpires: object.GetAnnotations()[clusterset.AnnotationTokenExpires], annotationInvitation: j.invited.fingerprint()})
	}
	// The agent owns these fields if it has renewed the token.
	if outcome, err = j.member.install.Force().Apply(ctx, object); err != nil {
		return err
	}
	j.r.outcome(outcome, "secret/"+key.Name) // its content is never printed
	return nil
}

// keepsToken reports whether the token in the agent's Secret can stay. An invitation has no right to compare the account of the token.
func (j *joinCommand) keepsToken(ctx context.Context, secret *corev1.Secret) (bool, error) {
	switch {
	case j.usedUp: // it is the token with which the hub is read
		return true, nil
	case j.admitted == nil || j.invited != nil:
		return false, nil
	}
	return j.isTokenValid(ctx, secret)
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
	err := pollUntilEnd(ctx, func(ctx context.Context) (bool, error) {
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
