// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
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
		return []Step{v.step(HopProxy, NotKnown, fmt.Sprintf("the import has the type %q", kind), fixUnexplained)}
	case v.derived == nil:
		return []Step{v.step(HopProxy, NotKnown, "there is no derived Service, though nothing is in its way", v.logsCommand())}
	}
	if name := v.derived.Labels[labelProxyName]; name != "" {
		return []Step{v.step(HopProxy, Note, fmt.Sprintf("it is left to the proxy %q", name), "")}
	}
	policy := v.derived.Spec.InternalTrafficPolicy
	isLocal := policy != nil && *policy == corev1.ServiceInternalTrafficPolicyLocal
	var counts, without []string
	here := 0
	for _, port := range v.derived.Spec.Ports {
		count := reachableEndpoints(v.slices, port)
		here += reachableEndpoints(v.localSlices(), port)
		counts = append(counts, fmt.Sprintf("%s %d", port.Name, count))
		if count == 0 {
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

// localSlices returns the slices of this cluster. Those that Kubernetes creates for a derived Service with a selector have no
// source cluster label.
func (v *memberTrace) localSlices() []discoveryv1.EndpointSlice {
	return slices.DeleteFunc(slices.Clone(v.slices), func(slice discoveryv1.EndpointSlice) bool {
		source := slice.Labels[mcsv1beta1.LabelSourceCluster]
		return source != "" && source != string(v.id())
	})
}

// reachableEndpoints returns the number of endpoints to which kube-proxy sends the connections of a port: if none is ready, those
// that are terminating and still serving (KEP-1669).
func reachableEndpoints(all []discoveryv1.EndpointSlice, port corev1.ServicePort) int {
	ready, ending := 0, 0
	for _, slice := range all {
		if !slices.ContainsFunc(slice.Ports, func(p discoveryv1.EndpointPort) bool {
			return p.Name != nil && *p.Name == port.Name && p.Protocol != nil && *p.Protocol == port.Protocol
		}) {
			continue
		}
		for _, endpoint := range slice.Endpoints {
			switch c := endpoint.Conditions; {
			case c.Ready == nil || *c.Ready:
				ready++
			case c.Serving != nil && *c.Serving && c.Terminating != nil && *c.Terminating:
				ending++
			}
		}
	}
	if ready == 0 {
		return ending
	}
	return ready
}
