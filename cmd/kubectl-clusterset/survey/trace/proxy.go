// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/assess"
	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/internal/proxy"
)

// labelProxyName marks a Service that another proxy than kube-proxy serves.
const labelProxyName = "service.kubernetes.io/service-proxy-name"

// proxySteps returns a step with the number of endpoints to which kube-proxy sends connections, for each port of the derived
// Service. kube-proxy ignores headless services.
func (v *memberTrace) proxySteps() []Step {
	switch kind := v.serviceImport.Spec.Type; {
	case kind == mcsv1beta1.Headless:
		return nil
	case kind != mcsv1beta1.ClusterSetIP:
		return []Step{v.step(HopProxy, NotKnown, fmt.Sprintf("the import has the type %q", kind), assess.FixUnexplained)}
	case v.derived == nil:
		return []Step{v.step(HopProxy, NotKnown, "there is no derived Service, though nothing is in its way", v.logsCommand())}
	}
	if name := v.derived.Labels[labelProxyName]; name != "" {
		return []Step{v.step(HopProxy, Note, fmt.Sprintf("it is left to the proxy %q", name), "")}
	}
	isLocal, here, available := false, 0, map[string]int{}
	for _, port := range proxy.Ports(v.derived, caches.Pointers(v.slices)) {
		isLocal = port.Local
		here += port.Reached
		available[port.Name] += port.Available
	}
	var counts, without []string
	for _, port := range v.derived.Spec.Ports {
		counts = append(counts, fmt.Sprintf("%s %d", port.Name, available[port.Name]))
		if available[port.Name] == 0 {
			without = append(without, port.Name)
		}
	}
	found := "ready endpoints by port: " + strings.Join(counts, ", ")
	switch {
	case len(without) == len(v.derived.Spec.Ports):
		return []Step{v.step(HopProxy, Broken, "no port has a ready endpoint, so connections are refused: "+v.portNames(),
			"have the exporters' EndpointSlices name their ports as the Service does; where they have no ready endpoint, see their pods")}
	case isLocal && here == 0:
		return []Step{v.step(HopProxy, Broken, found+"; but internalTrafficPolicy is Local, and none of them is in this cluster: every connection fails here",
			"run pods of it in this cluster and export it here too, or export it without internalTrafficPolicy Local: kubectl clusterset explain "+v.Sources.Key.String()+" says whose setting counts")}
	case len(without) > 0:
		return []Step{v.step(HopProxy, Note, found, "kubectl clusterset explain "+v.Sources.Key.String())}
	case isLocal:
		found += "; but internalTrafficPolicy is Local: only pods on nodes that have one of them reach it"
		return []Step{v.step(HopProxy, Note, found, "")}
	}
	return []Step{v.step(HopProxy, OK, found, "")}
}

// portNames lists the port names of the derived Service and its slices: kube-proxy matches ports by name.
func (v *memberTrace) portNames() string {
	wanted, offered := map[string]bool{}, map[string]bool{}
	for _, port := range v.derived.Spec.Ports {
		wanted[port.Name] = true
	}
	for _, slice := range v.slices {
		for _, port := range slice.Ports {
			if port.Name != nil {
				offered[*port.Name] = true
			}
		}
	}
	return fmt.Sprintf("the Service has the ports %q, its slices %q", slices.Sorted(maps.Keys(wanted)), slices.Sorted(maps.Keys(offered)))
}
