// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"fmt"
	"strings"

	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/apply"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// exporting follows the service from its Service to the hub, in a cluster that exports it or has done so; it returns
// nothing for others.
func (v *view) exporting(h *Hub) []Step {
	if v.Known.Export == nil && v.Known.Hub.Local == nil && len(v.Published) == 0 {
		return nil
	}
	var steps []Step
	switch rejection := v.Known.Rejection; {
	case v.Known.Export == nil:
		steps = append(steps, v.step(HopExport, Note, "no longer exports it", ""))
	case rejection != nil && rejection.Reason != mcsv1beta1.ServiceExportReasonNoService && rejection.Reason != mcsv1beta1.ServiceExportReasonInvalidServiceType:
		return append(steps, v.step(HopExport, Broken, rejection.Message, "see the message"))
	case rejection != nil:
		return append(steps, v.step(HopService, Broken, rejection.Message, "see the message"))
	default:
		steps = append(steps, v.exported()...)
	}
	if step, due := v.pending(HopRecord, v.Published); due {
		return append(steps, step)
	}
	if v.PublishedErr != nil {
		return append(steps, v.step(HopRecord, Broken, apply.Reason(v.PublishedErr), v.logs()))
	}
	steps = append(steps, v.recorded(h)...)
	if v.isSilent() {
		steps = append(steps, v.step(HopAgent, Note, v.life.String()+": its next change will not be seen by others", v.logs()))
	}
	return steps
}

// exported says what the cluster exports, and whether there is anybody behind it.
func (v *view) exported() []Step {
	var ports []string
	for _, port := range v.Known.Local.Ports {
		ports = append(ports, port.String())
	}
	steps := []Step{v.step(HopExport, OK, fmt.Sprintf("exported, as %s %s", v.Known.Local.Type, strings.Join(ports, ", ")), "")}
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
	key := v.Known.Key
	fix = fmt.Sprintf("%s: kubectl --context %s --namespace %s describe service %s", fix, v.look.Member.Place.Name, key.Namespace, key.Name)
	return append(steps, v.step(HopEndpoints, Broken, found, fix))
}

// recorded says what the hub holds of the cluster, and what it lacks.
func (v *view) recorded(h *Hub) []Step {
	var steps []Step
	member := fmt.Sprintf("the hub's administrator corrects the ranges of Member %s/%s", v.id().HubNamespace(), hubv1alpha1.MemberName)
	switch {
	case v.Known.Export == nil:
	case v.Known.Hub.NotAllowed != nil:
		steps = append(steps, v.step(HopRecord, Broken, v.Known.Hub.NotAllowed.Error(), "see the message"))
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
		steps = append(steps, v.step(HopHeartbeat, Note, "it says that not all of its exports are on the hub yet: until then missing data is not deleted", v.logs()))
	}
	return steps
}
