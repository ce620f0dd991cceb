// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/manifests"
	"github.com/tombolo-mcs/tombolo/pkg/apply"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/plan"
	"github.com/tombolo-mcs/tombolo/pkg/render"
)

// view is one member as a trace sees it.
type view struct {
	*Rehearsal
	look *Look
	// namespace is nil where there is none, or none that lasts.
	namespace *corev1.Namespace
	// serviceImport, derived and the slices of derived are what the member holds; nil where it does not.
	serviceImport *mcsv1beta1.ServiceImport
	derived       *corev1.Service
	slices        []discoveryv1.EndpointSlice
	// life is what the hub has heard of the member's agent.
	life life
	// answers are what its DNS servers say; none where they were not asked.
	answers []answer
}

func (v *view) id() clusterset.ClusterID { return v.look.Member.ID }

// view reads what a member holds of the service.
func (t *tracer) view(ctx context.Context, l *Look) (*view, error) {
	rehearsal, err := l.Rehearse(ctx, t.Key)
	if err != nil {
		return nil, err
	}
	v := &view{Rehearsal: rehearsal, look: l}
	v.life = t.hub.lifeOf(l.Member.ID)
	namespace := &corev1.Namespace{}
	if err := l.Member.Client.Get(ctx, client.ObjectKey{Name: t.Key.Namespace}, namespace); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("cluster %s: get namespace %s: %w", v.id(), t.Key.Namespace, err)
	} else if err == nil && namespace.DeletionTimestamp.IsZero() {
		v.namespace = namespace
	}
	if err := v.readImport(ctx, t.Key); err != nil {
		return nil, fmt.Errorf("cluster %s: %w", v.id(), err)
	}
	if v.serviceImport != nil && t.Resolve != nil {
		v.answers = t.ask(ctx, v)
	}
	return v, nil
}

// readImport reads the import as it stands.
func (v *view) readImport(ctx context.Context, key clusterset.ServiceKey) error {
	found := &mcsv1beta1.ServiceImport{}
	err := v.look.reader.Member.Get(ctx, key, found)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("get ServiceImport %s: %w", key, err)
	}
	v.serviceImport = found
	for _, name := range []string{clusterset.ShortDerivedName(key.Name), clusterset.LongDerivedName(key.Name)} {
		service := &corev1.Service{}
		err := v.look.reader.Member.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: name}, service)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("get Service %s: %w", name, err)
		}
		if err == nil && render.IsDerivedFor(service, key.Name) {
			v.derived = service
		}
	}
	if v.derived == nil {
		return nil
	}
	list := &discoveryv1.EndpointSliceList{}
	if err := v.look.reader.Member.List(ctx, list, client.InNamespace(key.Namespace),
		client.MatchingLabels{discoveryv1.LabelServiceName: v.derived.Name}); err != nil {
		return fmt.Errorf("list EndpointSlices: %w", err)
	}
	v.slices = list.Items
	return nil
}

// hasService reports whether the member has a Service that could be exported.
func (v *view) hasService(ctx context.Context) bool {
	service := &corev1.Service{}
	return v.look.reader.Member.Get(ctx, v.Known.Key, service) == nil && !clusterset.IsManaged(service.Labels)
}

func (v *view) step(hop Hop, state Health, found, fix string) Step {
	return Step{Cluster: v.id(), Hop: hop, State: state, Found: found, Fix: fix}
}

// isSilent reports whether the agent has not been heard of for longer than its heartbeats can be late.
func (v *view) isSilent() bool { return v.life.state() != StateConnected }

// pending returns the step of a hop at which writes are due; false where none are. That they are due for long means that
// they are refused, or that nobody is there to make them.
func (v *view) pending(hop Hop, acts []apply.Act) (Step, bool) {
	if len(acts) == 0 {
		return Step{}, false
	}
	for _, a := range acts {
		if a.Err != nil && !errors.Is(a.Err, apply.ErrStale) {
			return v.step(hop, Broken, fmt.Sprintf("%s cannot be written: %s", nameOf(a), apply.Reason(a.Err)), v.remedy(hop, a.Err)), true
		}
	}
	if v.isSilent() {
		return v.agentDown(fmt.Sprintf("so %s is %s", nameOf(acts[0]), dueOf(acts[0]))), true
	}
	return v.step(hop, Broken, fmt.Sprintf("%s is %s, though the agent is live (last heartbeat %s ago) and nothing refuses the write",
		nameOf(acts[0]), dueOf(acts[0]), v.life.silence.Round(time.Second)), v.logs()), true
}

// agentDown says that the agent does not do its work, what is known of its pods, and what comes of it.
func (v *view) agentDown(consequence string) Step {
	found := v.life.String()
	if agent := v.look.Member.Agent; agent != nil {
		found += fmt.Sprintf(" (%d of %d pods ready)", agent.Status.ReadyReplicas, agent.Status.Replicas)
	}
	fix := fmt.Sprintf("kubectl --context %s --namespace %s get pods; then: %s", v.look.Member.Place.Name, manifests.AgentNamespace, v.logs())
	return v.step(HopAgent, Broken, found+", "+consequence, fix)
}

func (v *view) logs() string {
	return fmt.Sprintf("kubectl --context %s --namespace %s logs deployment/%s", v.look.Member.Place.Name, manifests.AgentNamespace, manifests.AgentDeployment)
}

// remedy says what to do about a write that is refused.
func (v *view) remedy(hop Hop, err error) string {
	switch {
	case errors.Is(err, apply.ErrForeign):
		return "rename or delete it, or rename the exported Service"
	case hop == HopRecord && apierrors.IsForbidden(err):
		return fmt.Sprintf("the hub's administrator widens the member's quota or its Member: kubectl --namespace %s describe resourcequotas,members", v.id().HubNamespace())
	case apierrors.IsForbidden(err):
		return "let the agent write it: by its ClusterRole (kubectl clusterset upgrade puts it back), a quota, or the policy that refuses it"
	}
	return "change what refuses it, or the Service that is exported"
}

// nameOf names the object of a write as kubectl does.
func nameOf(a apply.Act) string {
	return fmt.Sprintf("%s %s/%s", reflect.TypeOf(a.Object).Elem().Name(), a.Object.GetNamespace(), a.Object.GetName())
}

// dueOf says what an object lacks for which a write is due.
func dueOf(a apply.Act) string {
	return map[plan.Verb]string{
		plan.Create: "missing", plan.Update: "not up to date", plan.UpdateStatus: "not up to date in its status", plan.Delete: "left over",
	}[a.Verb]
}
