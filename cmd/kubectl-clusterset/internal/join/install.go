// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package join

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
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/connection"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/credentials"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/identity"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/ranges"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/workload"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/writing"
	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// installMember gives the agent its credentials, and then applies all else. If a later write is refused, an existing agent continues with its
// new credentials.
func (j *command) installMember(ctx context.Context) error {
	j.HubURL = j.HubAddress.Server
	first, rest, err := j.memberObjects(ctx)
	if err != nil {
		return err
	}
	if err := writing.ApplyAll(ctx, j.member, first, j.r); err != nil {
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
func (j *command) memberObjects(ctx context.Context) (first, rest []*unstructured.Unstructured, err error) {
	if j.InstalledBy() != "" {
		j.noteServiceCIDRs()
		return nil, j.clusterProperties, nil
	}
	objects, err := j.RenderUpdate(j.agentArgs(), j.r)
	if err != nil {
		return nil, nil, err
	}
	err = j.member.Client.Get(ctx, client.ObjectKey{Name: manifests.AgentNamespace}, &corev1.Namespace{})
	if connection.IsAbsent(err) {
		end := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() != "Namespace" })
		return objects[:end], slices.Concat(j.definitions, j.clusterProperties, objects[end:]), nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("get namespace %s of %s: %w", manifests.AgentNamespace, j.member.What, err)
	}
	return nil, slices.Concat(j.definitions, j.clusterProperties, objects), nil
}

// restartAgent has an existing agent read the URL of the hub, if it has started with another or an unknown one: an agent reads the token and
// the certificate authority again, and the URL only when it starts.
func (j *command) restartAgent(ctx context.Context) error {
	agent := j.Agent()
	if agent == nil || agent.Spec.Template.Annotations[workload.AnnotationHub] == j.HubAddress.Server {
		return nil
	}
	edited := agent.DeepCopy()
	if edited.Spec.Template.Annotations == nil {
		edited.Spec.Template.Annotations = map[string]string{}
	}
	edited.Spec.Template.Annotations[workload.AnnotationHub] = j.HubAddress.Server
	if _, err := j.member.Install.Patch(ctx, agent, edited); err != nil {
		return fmt.Errorf("the agent has its credentials for the hub, and must be restarted to use %s: run this again, or \"kubectl -n %s rollout restart deployment/%s\": %w",
			j.HubAddress.Server, manifests.AgentNamespace, manifests.AgentDeployment, err)
	}
	j.r.Outcome("restarted", "deployment.apps/"+manifests.AgentDeployment)
	return nil
}

// applyRest applies what a member has beside its credentials.
func (j *command) applyRest(ctx context.Context, objects []*unstructured.Unstructured) error {
	if err := writing.ApplyAll(ctx, j.member, objects, j.r); err != nil {
		return err
	}
	if j.InstalledBy() == "" {
		if err := errors.Join(j.removeGateway(ctx), j.removeAutoExport(ctx)); err != nil {
			return err
		}
	}
	if j.Admitted == nil || j.invited != nil {
		return nil
	}
	j.r.Titlef("%s", j.Heading("On the hub"))
	return j.Limit(ctx)
}

// agentArgs returns the Service ranges as an argument if the cluster has no ServiceCIDRs, and the addresses of the gateways if their
// Service does not have them.
func (j *command) agentArgs() []string {
	if j.hasServiceCIDRs {
		return j.gatewayArgs()
	}
	return append(j.gatewayArgs(), "--"+workload.ServiceCIDRsFlag+"="+ranges.Commas(j.Own.Services))
}

// applyCredentials applies the agent's Secret with the hub's address and a token. It keeps a token that is valid for long enough,
// because the agent renews it.
func (j *command) applyCredentials(ctx context.Context) error {
	kubeconfig, err := j.HubAddress.Kubeconfig()
	if err != nil {
		return err
	}
	secret, err := credentials.ReadSecret(ctx, j.member)
	if err != nil {
		return err
	}
	outcome := install.Configured
	if secret == nil {
		secret, outcome = &corev1.Secret{}, install.Created
	}
	key := credentials.SecretKey()
	leads := bytes.Equal(secret.Data[clusterset.HubSecretKubeconfig], kubeconfig) && bytes.Equal(secret.Data[clusterset.HubSecretCA], j.HubAddress.CA)
	if leads {
		good, err := j.keepsToken(ctx, secret)
		if err != nil {
			return err
		}
		if good {
			j.r.Outcome(install.Unchanged, "secret/"+key.Name)
			return nil
		}
	}
	if j.IsDryRun() {
		j.r.Outcome(outcome, "secret/"+key.Name)
		return nil
	}
	token, err := j.issueToken(ctx, j.ID, clusterset.TokenLifetime)
	if err != nil {
		return err
	}
	object := newSecret(key, token.ExpirationTimestamp.Time, map[string][]byte{
		clusterset.HubSecretKubeconfig: kubeconfig,
		clusterset.HubSecretCA:         j.HubAddress.CA,
		clusterset.HubSecretToken:      []byte(token.Token),
	})
	if j.invited != nil {
		object.SetAnnotations(map[string]string{clusterset.AnnotationTokenExpires: object.GetAnnotations()[clusterset.AnnotationTokenExpires], annotationInvitation: j.invited.Fingerprint()})
	}
	// The agent owns these fields if it has renewed the token.
	if outcome, err = j.member.Install.Force().Apply(ctx, object); err != nil {
		return err
	}
	j.r.Outcome(outcome, "secret/"+key.Name) // its content is never printed
	return nil
}

// keepsToken reports whether the token in the agent's Secret can stay. An invitation has no right to compare the account of the token.
func (j *command) keepsToken(ctx context.Context, secret *corev1.Secret) (bool, error) {
	switch {
	case j.usedUp: // it is the token with which the hub is read
		return true, nil
	case j.Admitted == nil || j.invited != nil:
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
			"namespace": key.Namespace, "name": key.Name, "labels": map[string]any{identity.LabelPartOf: identity.PartOf},
			"annotations": map[string]any{clusterset.AnnotationTokenExpires: expires.UTC().Format(time.RFC3339)},
		},
		"data": data,
	}}
}

// awaitHeartbeat waits until the hub has a new heartbeat of the agent.
func (j *command) awaitHeartbeat(ctx context.Context, before *hubv1alpha1.Heartbeat) error {
	if j.wait == 0 {
		j.r.Titlef("The agent's first heartbeat on the hub is not waited for (--wait=0).")
		return nil
	}
	j.r.Titlef("Waiting for the agent's heartbeat on the hub")
	begin := time.Now()
	ctx, cancel := context.WithTimeout(ctx, j.wait)
	defer cancel()
	err := connection.PollUntilEnd(ctx, func(ctx context.Context) (bool, error) {
		beat, err := identity.Heartbeat(ctx, j.Hub, j.ID)
		if err != nil || beat == nil {
			return false, connection.IgnoreTransient(err)
		}
		return beat.Spec.ClusterUID == j.UID && (before == nil || beat.ResourceVersion != before.ResourceVersion), nil
	})
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("everything is installed, but the hub received no heartbeat of the agent within %s: see why with "+
			"\"kubectl -n %s get pods\" and \"kubectl -n %s logs deployment/%s\", and run this again",
			j.wait, manifests.AgentNamespace, manifests.AgentNamespace, manifests.AgentDeployment)
	}
	if err != nil {
		return err
	}
	j.r.Okf("received its heartbeat after %.0f s", time.Since(begin).Seconds())
	return nil
}
