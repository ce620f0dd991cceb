// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/assess"
	"github.com/tombolo-mcs/tombolo/internal/apply"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// importSteps follows the service from the hub to its DNS name, in one cluster.
func (v *memberTrace) importSteps(t *tracer) []Step {
	if !t.exported {
		return v.leftoverSteps(t)
	}
	if step, ok := v.namespaceStep(t.From); !ok {
		return []Step{step}
	}
	steps := append(v.refusedSteps(), v.ungrantedSteps(t)...)
	obstacles := v.importFaults()
	switch {
	case len(obstacles) > 0:
		return append(steps, obstacles...)
	case v.serviceImport == nil && len(v.Sources.Exports()) == 0 && len(v.Sources.Hub.Ungranted) > 0:
		return steps
	case v.serviceImport == nil && !t.hub.IsRead():
		return append(steps, v.step(HopImport, NotKnown, "there is no ServiceImport; whether there should be one is not known without the hub", ""))
	case v.serviceImport == nil:
		return append(steps, v.step(HopImport, Broken, "there is no ServiceImport, though nothing is in its way", v.logsCommand()))
	}
	steps = append(steps, v.step(HopImport, OK, "imported, as "+v.describe(), ""))
	if seen := assess.UnexplainedImport(v.serviceImport); seen != "" {
		steps = append(steps, v.step(HopImport, NotKnown, seen, assess.FixUnexplained))
	}
	if preferred := meta.FindStatusCondition(v.serviceImport.Status.Conditions, conditions.TypePreferred); preferred != nil {
		steps = append(steps, v.preferredStep(*preferred))
	}
	if v.isSilent() {
		steps = append(steps, v.step(HopAgent, Note, v.heartbeat.String()+": what changes from now on is not imported", v.logsCommand()))
	}
	steps = append(append(steps, v.gatewaySteps()...), v.proxySteps()...)
	return append(steps, v.dnsSteps()...)
}

// ungrantedSteps returns a step for each export that is not granted to this cluster. It names the grants, if the exporter can be read.
func (v *memberTrace) ungrantedSteps(t *tracer) []Step {
	state := Note
	if v.id() == t.From && len(v.Sources.Exports()) == 0 {
		state = Broken
	}
	var steps []Step
	for _, export := range v.Sources.Hub.Ungranted {
		found := fmt.Sprintf("%s does not export it to this cluster", export.Cluster)
		if names := t.grants[export.Cluster]; len(names) > 0 {
			found = fmt.Sprintf("not granted to this cluster by %s of %s", strings.Join(names, ", "), export.Cluster)
		}
		steps = append(steps, v.step(HopImport, state, found, fmt.Sprintf("let a ServiceExportGrant in namespace %s of %s name cluster %s", export.Key.Namespace, export.Cluster, v.id())))
	}
	return steps
}

// leftoverSteps returns the steps of an import that no cluster exports.
func (v *memberTrace) leftoverSteps(t *tracer) []Step {
	if v.serviceImport == nil {
		return nil
	}
	if steps := v.importFaults(); len(steps) > 0 {
		return steps
	}
	for _, c := range v.serviceImport.Status.Clusters {
		id := clusterset.ClusterID(c.Cluster)
		if t.hub.Records.Member(id) != nil && t.hub.Publication(id) != hubv1alpha1.PublicationComplete {
			return []Step{{
				id, HopHeartbeat, Broken,
				fmt.Sprintf("no member exports it, but it stays imported in %s until the agent of %s says that its publication is complete", v.id(), id),
				"see why, in the logs of the agent of " + string(id),
			}}
		}
	}
	return nil
}

// namespaceStep returns a step and false if the member imports nothing into the namespace.
func (v *memberTrace) namespaceStep(from clusterset.ClusterID) (Step, bool) {
	namespace := v.Sources.Key.Namespace
	state := Note
	if v.id() == from {
		state = Broken
	}
	switch {
	case v.ending:
		return v.step(HopNamespace, state, fmt.Sprintf("not imported: namespace %s is being deleted here", namespace), "create it again when it is deleted"), false
	case v.namespace == nil:
		return v.step(HopNamespace, state, fmt.Sprintf("not imported: there is no namespace %s here", namespace),
			fmt.Sprintf("kubectl --context %s create namespace %s", v.view.Member.KubeContext.Name, namespace)), false
	case !v.view.Member.Namespaces().Allows(namespace):
		return v.step(HopNamespace, state, fmt.Sprintf("not imported: the agent is configured to import nothing into namespace %s", namespace),
			"change --allow-namespaces or --deny-namespaces of the agent"), false
	}
	return Step{}, true
}

// refusedSteps returns a step for each record that this cluster refuses. The step names the exporter, which must correct it.
func (v *memberTrace) refusedSteps() []Step {
	var steps []Step
	for _, err := range v.Sources.Hub.Refused {
		step := v.step(HopRecord, Broken, fmt.Sprintf("as seen by %s: %v", v.id(), err), "correct the Member on the hub, or what the cluster publishes")
		var refusal hub.RefusalError
		if errors.As(err, &refusal) {
			step.Cluster = refusal.Cluster
		}
		steps = append(steps, step)
	}
	return steps
}

// importFaults returns why the existing import differs from the desired one.
func (v *memberTrace) importFaults() []Step {
	for _, remark := range v.Events {
		if remark.Reason == "ServiceImportObstructed" {
			return []Step{v.step(HopImport, Broken, remark.Note, fmt.Sprintf("kubectl --context %s --namespace %s delete serviceimport %s",
				v.view.Member.KubeContext.Name, v.Sources.Key.Namespace, v.Sources.Key.Name))}
		}
	}
	if v.serviceImport != nil {
		if pending := meta.FindStatusCondition(v.serviceImport.Status.Conditions, conditions.TypeDeletionPending); pending != nil {
			return []Step{v.step(HopImport, Note, pending.Message, "see which member's heartbeat is awaited: kubectl clusterset status")}
		}
	}
	imports, services, slices := byKind(v.Imported)
	for _, due := range []struct {
		hop  Hop
		acts []apply.DryRunWrite
	}{{HopDerived, services}, {HopSlices, slices}, {HopImport, imports}} {
		if step, ok := v.dueStep(due.hop, due.acts); ok {
			return []Step{step}
		}
	}
	if v.ImportedErr != nil {
		hop := HopImport
		if errors.Is(v.ImportedErr, apply.ErrUnmanaged) || errors.Is(v.ImportedErr, apply.ErrNameTaken) {
			hop = HopDerived
		}
		return []Step{v.step(hop, Broken, v.ImportedErr.Error(), v.fixFor(hop, v.ImportedErr))}
	}
	if v.serviceImport == nil {
		return nil
	}
	ready := meta.FindStatusCondition(v.serviceImport.Status.Conditions, string(mcsv1beta1.ServiceImportConditionReady))
	if ready != nil && ready.Status == metav1.ConditionFalse {
		return []Step{v.step(HopImport, Broken, ready.Message, "see the message")}
	}
	return nil
}

// preferredStep returns the step about the ServiceImportRoutingPolicy of the import.
func (v *memberTrace) preferredStep(preferred metav1.Condition) Step {
	switch {
	case preferred.Status == metav1.ConditionTrue:
		return v.step(HopImport, OK, preferred.Message, "")
	case preferred.Reason == conditions.ReasonNoSource:
		return v.step(HopImport, Broken, preferred.Message, "add a source to the policy, such as any: true, or make pods of its sources ready")
	}
	return v.step(HopImport, Note, preferred.Message, "make pods of an earlier source ready")
}

// byKind groups writes by the kind of their object.
func byKind(acts []apply.DryRunWrite) (imports, services, slices []apply.DryRunWrite) {
	for _, a := range acts {
		switch a.Object.(type) {
		case *mcsv1beta1.ServiceImport:
			imports = append(imports, a)
		case *corev1.Service:
			services = append(services, a)
		case *discoveryv1.EndpointSlice:
			slices = append(slices, a)
		}
	}
	return imports, services, slices
}

// describe returns the type, addresses and exporters of the import.
func (v *memberTrace) describe() string {
	spec := v.serviceImport.Spec
	words := []string{string(spec.Type)}
	words = append(words, spec.IPs...)
	var from []string
	for _, c := range v.serviceImport.Status.Clusters {
		from = append(from, c.Cluster)
	}
	return strings.Join(words, " ") + ", from " + strings.Join(from, ", ")
}
