// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/dryrun"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/memberdns"
	"github.com/tombolo-mcs/tombolo/controllers/autoexport"
	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/internal/access"
	"github.com/tombolo-mcs/tombolo/internal/apply"
	"github.com/tombolo-mcs/tombolo/internal/plan"
	"github.com/tombolo-mcs/tombolo/internal/render"
	"github.com/tombolo-mcs/tombolo/manifests"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// memberTrace is the state of a trace in one member.
type memberTrace struct {
	*dryrun.Result
	view *dryrun.View
	// namespace is nil if it does not exist or is being deleted.
	namespace *corev1.Namespace
	// ending is true if the namespace is being deleted.
	ending bool
	// serviceImport, derived and slices are the existing objects of the import; nil if there are none.
	serviceImport *mcsv1beta1.ServiceImport
	derived       *corev1.Service
	slices        []discoveryv1.EndpointSlice
	// alias is nil if the member has no alias of the traced name.
	alias *aliasTrace
	// gap is nil unless a label asks for an export that the member does not have. gapWrites has the creation of that export, if nothing but
	// the agent prevents it. exportedBy says what a label has to do with an export.
	gap        *survey.LabelGap
	gapWrites  []apply.DryRunWrite
	exportedBy string
	// grants are the names of the grants of the service.
	grants []string
	// heartbeat is the last heartbeat of the member.
	heartbeat survey.LastHeartbeat
	// answers are those of its DNS servers; empty if they were not queried. dns is what its DNS does with the names of the clusterset.
	answers []answer
	dns     memberdns.Configuration
}

func (v *memberTrace) id() clusterset.ClusterID { return v.view.Member.ID }

// traceMember reads the objects of the service in a member.
func (t *tracer) traceMember(ctx context.Context, l *dryrun.View) (*memberTrace, error) {
	result, err := l.Service(ctx, t.Key)
	if err != nil {
		return nil, err
	}
	v := &memberTrace{Result: result, view: l}
	v.heartbeat = t.hub.LastHeartbeat(l.Member.ID)
	namespace := &corev1.Namespace{}
	if err := l.Member.Client.Get(ctx, client.ObjectKey{Name: t.Key.Namespace}, namespace); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("cluster %s: get namespace %s: %w", v.id(), t.Key.Namespace, err)
	} else if err == nil {
		v.ending = !namespace.DeletionTimestamp.IsZero()
	}
	if namespace.UID != "" && !v.ending {
		v.namespace = namespace
	}
	grants, err := caches.GrantsIn(ctx, l.Member.Client, t.Key.Namespace)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", v.id(), err)
	}
	v.grants = access.Selecting(t.Key.Name, grants)
	if v.alias, err = traceAlias(ctx, l, t.alias); err != nil {
		return nil, err
	}
	if err := v.readLabels(ctx, t.Key); err != nil {
		return nil, fmt.Errorf("cluster %s: %w", v.id(), err)
	}
	if err := v.readImport(ctx, t.Key); err != nil {
		return nil, fmt.Errorf("cluster %s: %w", v.id(), err)
	}
	if v.serviceImport != nil && t.Resolve != nil {
		v.answers, v.dns = t.queryDNS(ctx, v), l.Member.DNSConfiguration(ctx)
	}
	return v, nil
}

// readLabels reads what the labels of the Service and of its Namespace ask for.
func (v *memberTrace) readLabels(ctx context.Context, key clusterset.ServiceKey) error {
	services, exports := &corev1.ServiceList{}, &mcsv1beta1.ServiceExportList{}
	for _, list := range []client.ObjectList{services, exports} {
		if err := v.view.Reader().List(ctx, list, client.InNamespace(key.Namespace)); err != nil {
			return fmt.Errorf("list %s of namespace %s: %w", clusterset.KindOf(list), key.Namespace, err)
		}
	}
	if v.namespace == nil {
		return nil
	}
	i := slices.IndexFunc(services.Items, func(s corev1.Service) bool { return s.Name == key.Name })
	if v.Sources.Export != nil && i >= 0 {
		v.exportedBy = exportedBy(v.Sources.Export, services.Items[i].Labels, v.namespace.Labels)
	}
	gaps := v.view.Member.Gaps(key.Namespace, v.namespace.Labels, caches.Pointers(services.Items), caches.Pointers(exports.Items))
	if i := slices.IndexFunc(gaps, func(g survey.LabelGap) bool { return g.Key() == key }); i >= 0 {
		v.gap = &gaps[i]
	}
	if v.gap != nil && v.gap.Reason == autoexport.ReasonPending {
		var err error
		if v.gapWrites, err = v.view.Export(ctx, v.gap); err != nil {
			return err
		}
	}
	return nil
}

// readImport reads the existing objects of the import.
func (v *memberTrace) readImport(ctx context.Context, key clusterset.ServiceKey) error {
	found := &mcsv1beta1.ServiceImport{}
	err := v.view.Reader().Get(ctx, key, found)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("get ServiceImport %s: %w", key, err)
	}
	v.serviceImport = found
	for _, name := range []string{clusterset.ShortDerivedName(key.Name), clusterset.LongDerivedName(key.Name)} {
		service := &corev1.Service{}
		err := v.view.Reader().Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: name}, service)
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
	if err := v.view.Reader().List(ctx, list, client.InNamespace(key.Namespace),
		client.MatchingLabels{discoveryv1.LabelServiceName: v.derived.Name}); err != nil {
		return fmt.Errorf("list EndpointSlices: %w", err)
	}
	v.slices = list.Items
	return nil
}

// hasService reports whether the member has a Service of this name that can be exported.
func (v *memberTrace) hasService(ctx context.Context) bool {
	service := &corev1.Service{}
	return v.view.Reader().Get(ctx, v.Sources.Key, service) == nil && !clusterset.IsManaged(service.Labels)
}

func (v *memberTrace) step(hop Hop, state Health, found, fix string) Step {
	return Step{Cluster: v.id(), Hop: hop, State: state, Found: found, Fix: fix}
}

// isSilent reports whether the member is silent, or has never sent a heartbeat.
func (v *memberTrace) isSilent() bool {
	return v.heartbeat.State() == survey.StateSilent || v.heartbeat.State() == survey.StateNeverConnected
}

// dueStep returns a broken step if writes are pending, otherwise false. Writes that stay pending are refused, or the agent is
// down.
func (v *memberTrace) dueStep(hop Hop, acts []apply.DryRunWrite) (Step, bool) {
	if len(acts) == 0 {
		return Step{}, false
	}
	for _, a := range acts {
		if a.Err != nil && !errors.Is(a.Err, apply.ErrStale) {
			return v.step(hop, Broken, fmt.Sprintf("%s cannot be written: %s", nameOf(a), apply.Reason(a.Err)), v.fixFor(hop, a.Err)), true
		}
	}
	if v.heartbeat.State() == survey.StateUnknown {
		return v.step(hop, NotKnown, fmt.Sprintf("%s is %s; %s", nameOf(acts[0]), dueText(acts[0]), v.heartbeat), v.logsCommand()), true
	}
	if v.isSilent() {
		return v.agentDownStep(fmt.Sprintf("so %s is %s", nameOf(acts[0]), dueText(acts[0]))), true
	}
	return v.step(hop, Broken, fmt.Sprintf("%s is %s, though the agent is live (last heartbeat %s ago) and nothing refuses the write",
		nameOf(acts[0]), dueText(acts[0]), v.heartbeat.Age.Round(time.Second)), v.logsCommand()), true
}

// agentDownStep returns a step for an agent that is down, with the state of its pods and the consequence.
func (v *memberTrace) agentDownStep(consequence string) Step {
	found := v.heartbeat.String()
	if agent := v.view.Member.Agent; agent != nil {
		found += fmt.Sprintf(" (%d of %d pods ready)", agent.Status.ReadyReplicas, agent.Status.Replicas)
	}
	fix := fmt.Sprintf("kubectl --context %s --namespace %s get pods; then: %s", v.view.Member.KubeContext.Name, manifests.AgentNamespace, v.logsCommand())
	return v.step(HopAgent, Broken, found+", "+consequence, fix)
}

func (v *memberTrace) logsCommand() string {
	return fmt.Sprintf("kubectl --context %s --namespace %s logs deployment/%s", v.view.Member.KubeContext.Name, manifests.AgentNamespace, manifests.AgentDeployment)
}

// fixFor returns what to do about a refused write.
func (v *memberTrace) fixFor(hop Hop, err error) string {
	switch {
	case errors.Is(err, apply.ErrUnmanaged):
		return "rename or delete it, or rename the exported Service"
	case hop == HopExport && apierrors.IsForbidden(err):
		return "give the agent the rights: kubectl clusterset join --auto-export, or the kustomization manifests/autoexport; or change the policy that refuses it"
	case hop == HopRecord && apierrors.IsForbidden(err):
		return fmt.Sprintf("the hub's administrator widens the member's quota or its Member: kubectl --namespace %s describe resourcequotas,members", v.id().HubNamespace())
	case apierrors.IsForbidden(err):
		return "let the agent write it: by its ClusterRole (kubectl clusterset upgrade puts it back), a quota, or the policy that refuses it"
	}
	return "change what refuses it, or the Service that is exported"
}

// nameOf returns the kind, namespace and name of a written object.
func nameOf(a apply.DryRunWrite) string {
	return fmt.Sprintf("%s %s/%s", clusterset.KindOf(a.Object), a.Object.GetNamespace(), a.Object.GetName())
}

// dueText describes the state of an object that has a pending write.
func dueText(a apply.DryRunWrite) string {
	return map[plan.Verb]string{
		plan.Create: "missing", plan.Update: "not up to date", plan.UpdateStatus: "not up to date in its status", plan.Delete: "left over",
	}[a.Verb]
}
