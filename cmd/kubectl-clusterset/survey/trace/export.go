// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/assess"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/phrase"
	"github.com/tombolo-mcs/tombolo/internal/apply"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// exportSteps follows the service from its Service to the hub, in a cluster that exports it or did so. It returns nothing for
// other clusters.
func (v *memberTrace) exportSteps(h *survey.Hub) []Step {
	if v.Sources.Export == nil && v.Sources.Hub.Local == nil && len(v.Published) == 0 {
		return nil
	}
	var steps []Step
	switch rejection := v.Sources.Rejection; {
	case v.ending:
		return append(steps, v.step(HopExport, Note, "its namespace is being deleted", ""))
	case v.Sources.Export == nil:
		steps = append(steps, v.step(HopExport, Note, "no longer exports it", ""))
	case rejection != nil && rejection.Reason != mcsv1beta1.ServiceExportReasonNoService && rejection.Reason != mcsv1beta1.ServiceExportReasonInvalidServiceType:
		return append(steps, v.step(HopExport, Broken, rejection.Message, "see the message"))
	case rejection != nil:
		return append(steps, v.step(HopService, Broken, rejection.Message, "see the message"))
	default:
		steps = append(steps, v.validExportSteps()...)
	}
	if !h.IsRead() {
		return steps
	}
	if step, due := v.dueStep(HopRecord, v.Published); due {
		return append(steps, step)
	}
	if v.PublishedErr != nil {
		return append(steps, v.step(HopRecord, Broken, apply.Reason(v.PublishedErr), v.logsCommand()))
	}
	steps = append(append(steps, v.recordSteps(h)...), v.exposureSteps(h)...)
	if seen := assess.SeenOfExport(v.Sources.Export); seen != "" {
		steps = append(steps, v.step(HopExport, NotKnown, "nothing is in its way, but "+seen, v.logsCommand()))
	}
	if v.isSilent() {
		steps = append(steps, v.step(HopAgent, Note, v.heartbeat.String()+": its next change will not be seen by others", v.logsCommand()))
	}
	return steps
}

// validExportSteps returns the steps of a valid export and its endpoints.
func (v *memberTrace) validExportSteps() []Step {
	var ports []string
	for _, port := range v.Sources.Local.Ports {
		ports = append(ports, port.String())
	}
	found := fmt.Sprintf("exported, as %s %s", v.Sources.Local.Type, strings.Join(ports, ", "))
	if v.Sources.Local.GrantedTo != nil {
		found += ", to " + conditions.GrantedTo(v.Sources.Local.GrantedTo)
	}
	steps := append([]Step{v.step(HopExport, OK, found+v.exportedBy, "")}, v.grantedSteps()...)
	steps = append(steps, v.headerSteps()...)
	ready, all := 0, 0
	for _, slice := range v.LocalSlices {
		for _, endpoint := range slice.Endpoints {
			all++
			if endpoint.Ready != clusterset.False {
				ready++
			}
		}
	}
	if ready > 0 {
		return append(steps, v.step(HopEndpoints, OK, fmt.Sprintf("%d of %d ready", ready, all), ""))
	}
	found, fix := "the Service has no endpoints", "check its selector, and that its pods run"
	if all > 0 {
		found, fix = fmt.Sprintf("none of %d endpoints is ready", all), "see why its pods are not ready"
	}
	key := v.Sources.Key
	fix = fmt.Sprintf("%s: kubectl --context %s --namespace %s describe service %s", fix, v.view.Member.KubeContext.Name, key.Namespace, key.Name)
	return append(steps, v.step(HopEndpoints, Broken, found, fix))
}

// headerSteps returns a step if the annotation of the export asks for a PROXY protocol header (G14).
func (v *memberTrace) headerSteps() []Step {
	c := meta.FindStatusCondition(v.Sources.Export.Status.Conditions, conditions.TypeProxyProtocol)
	if c == nil {
		return nil
	}
	fix := "a backend that does not expect the header answers with an error or closes the connection: see that it is set up as docs/gateways.md says"
	if c.Status != metav1.ConditionTrue {
		fix = "do what the message says"
	}
	return []Step{v.step(HopExport, Note, c.Message, fix)}
}

// grantedSteps returns a step if the service is exported to clusters that are no members. If there is no other, only this cluster imports it.
func (v *memberTrace) grantedSteps() []Step {
	missing := v.Sources.NoMembers
	if len(missing) == 0 {
		return nil
	}
	step := v.step(HopExport, Note, "it is exported to clusters that are no members: "+phrase.IDs(missing), fmt.Sprintf("correct the ServiceExportGrants: kubectl --context %s --namespace %s get serviceexportgrants",
		v.view.Member.KubeContext.Name, v.Sources.Key.Namespace))
	if len(missing) == len(v.Sources.Local.GrantedTo) {
		step.State = Broken
		step.Found += ", and to no other cluster"
	}
	return []Step{step}
}

// recordSteps returns the steps of the records on the hub.
func (v *memberTrace) recordSteps(h *survey.Hub) []Step {
	var steps []Step
	member := fmt.Sprintf("the hub's administrator corrects the ranges of Member %s/%s", v.id().HubNamespace(), hubv1alpha1.MemberName)
	switch {
	case v.Sources.Export == nil:
	case v.Sources.Hub.NotAllowed != nil:
		steps = append(steps, v.step(HopRecord, Broken, v.Sources.Hub.NotAllowed.Error(), "see the message"))
	case len(v.Outcome.NotPods) > 0:
		steps = append(steps, v.step(HopRecord, Broken, "endpoints are left out: "+strings.Join(v.Outcome.NotPods, "; "),
			"let the EndpointSlices lead to pods of this cluster; a pod in the host network declares its ports"))
	case len(v.Outcome.LeftOut) > 0:
		steps = append(steps, v.step(HopRecord, Broken, "endpoints are left out: "+strings.Join(v.Outcome.LeftOut, "; "), member))
	case v.Outcome.Surplus != "":
		steps = append(steps, v.step(HopRecord, Note, v.Outcome.Surplus, ""))
	case len(v.Outcome.HostNames) > 0:
		steps = append(steps, v.step(HopRecord, Note, "EndpointSlices of host names are left out: "+strings.Join(v.Outcome.HostNames, ", "), ""))
	default:
		steps = append(steps, v.step(HopRecord, OK, "the hub holds what it exports", ""))
	}
	if h.Publication(v.id()) != hubv1alpha1.PublicationComplete {
		steps = append(steps, v.step(HopHeartbeat, Note, "it says that not all of its exports are on the hub yet: until then missing data is not deleted", v.logsCommand()))
	}
	return steps
}
