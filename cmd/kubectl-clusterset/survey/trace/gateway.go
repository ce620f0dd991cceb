// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/assess"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/internal/reach"
	"github.com/tombolo-mcs/tombolo/manifests"
	gatewayv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/gateway/v1alpha1"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// exposureSteps returns the steps of the gateways of an exporter, through which members of other networks reach its endpoints.
func (v *memberTrace) exposureSteps(h *survey.Hub) []Step {
	g := v.view.Gateways
	if !g.Exist || !v.isReachedByGateway(h) {
		return nil
	}
	published := v.view.Store.Gateways().Own
	context := v.view.Member.KubeContext.Name
	switch {
	case len(g.Ready) == 0:
		return []Step{v.noReadyGateway("clusters of other networks cannot reach it")}
	case published == nil:
		return []Step{v.step(HopGateway, Broken, "the hub has no record of its gateways, so clusters of other networks cannot reach it",
			fmt.Sprintf("kubectl --context %s --namespace %s get events", context, manifests.AgentNamespace))}
	case len(published.Spec.Addresses) == 0:
		return []Step{v.step(HopGateway, Broken, "its gateways have no address that others reach, so clusters of other networks cannot use what it exports",
			fmt.Sprintf("give Service %s an address (kubectl --context %s --namespace %s get service %s), or pass --gateway-address to \"kubectl clusterset join\"",
				clusterset.GatewayService, context, manifests.AgentNamespace, clusterset.GatewayService))}
	}
	var texts []string
	for _, address := range published.Spec.Addresses {
		texts = append(texts, address.String())
	}
	return []Step{v.step(HopGateway, OK, "its gateways are published at "+strings.Join(texts, ", "), "")}
}

// isReachedByGateway reports whether a member exists that does not reach the endpoints of this one directly.
func (v *memberTrace) isReachedByGateway(h *survey.Hub) bool {
	own := h.Records.Cluster(v.id())
	return slices.ContainsFunc(h.Records.Members(), func(id clusterset.ClusterID) bool {
		return id != v.id() && !reach.IsDirect(h.Records.Cluster(id), own)
	})
}

func (v *memberTrace) noReadyGateway(consequence string) Step {
	return v.step(HopGateway, Broken, fmt.Sprintf("none of %d addresses of its gateways is ready, so %s", v.view.Gateways.All, consequence),
		fmt.Sprintf("kubectl --context %s --namespace %s get pods --selector app.kubernetes.io/name=%s; then logs deployment/%s",
			v.view.Member.KubeContext.Name, manifests.AgentNamespace, manifests.GatewayDeployment, manifests.GatewayDeployment))
}

// gatewaySteps returns a step for each source that an importer reaches through gateways, or does not reach. A source that cannot be
// used is a note if another one can.
func (v *memberTrace) gatewaySteps() []Step {
	var steps []Step
	usable := v.Sources.Local != nil
	for _, export := range v.Sources.Hub.Exports {
		step, used := v.gatewayStep(export)
		usable = usable || used
		if step != nil {
			steps = append(steps, *step)
		}
	}
	for i := range steps {
		if usable && steps[i].State == Broken {
			steps[i].State = Note
		}
	}
	if unusable := v.sourceUnusable(); unusable != "" && !slices.ContainsFunc(steps, func(s Step) bool { return s.State != OK }) {
		steps = append(steps, v.step(HopGateway, Note, unusable, "see the message"))
	}
	return steps
}

// sourceUnusable returns which sources or ports the agent does not use, as the import says; empty if it uses all.
func (v *memberTrace) sourceUnusable() string {
	if v.serviceImport == nil {
		return ""
	}
	c := meta.FindStatusCondition(v.serviceImport.Status.Conditions, conditions.TypeSourceUnusable)
	if c == nil || c.Status != metav1.ConditionTrue {
		return ""
	}
	return c.Message
}

// gatewayStep returns the step of one source, nil if it is reached directly, and whether its endpoints can be used.
func (v *memberTrace) gatewayStep(export clusterset.Export) (*Step, bool) {
	g, id := v.view.Gateways, export.Cluster
	local := reach.Cluster{Network: v.Sources.Hub.LocalNetwork, Gateway: g.Exist}
	path, obstacle := reach.ChoosePath(local, v.Sources.Hub.Exporters[id], export)
	if path == reach.Direct {
		return nil, true
	}
	if path != reach.Gateway && path != reach.None {
		step := v.step(HopGateway, NotKnown, fmt.Sprintf("the path to %s is %q", id, path), assess.FixUnexplained)
		return &step, false
	}
	broken := func(found, fix string) (*Step, bool) {
		step := v.step(HopGateway, Broken, found, fix)
		return &step, false
	}
	if obstacle != nil {
		return broken(obstacle.Error(), "see the message")
	}
	if len(g.Ready) == 0 {
		step := v.noReadyGateway(fmt.Sprintf("cluster %s is not reached", id))
		return &step, false
	}
	known, ok := g.Remote[id]
	if !ok {
		reason := v.view.Store.Gateways().Refused[id].Reason
		if reason == nil {
			return broken(fmt.Sprintf("its gateways do not know those of %s, which the hub has", id), v.logsCommand())
		}
		return broken(fmt.Sprintf("the gateways of %s are not used: %v", id, reason),
			fmt.Sprintf("the hub's administrator corrects Member %s/%s, or %s what it publishes", id.HubNamespace(), hubv1alpha1.MemberName, id))
	}
	if len(known.Spec.Addresses) == 0 {
		return broken(fmt.Sprintf("cluster %s publishes no address of its gateways: it can import, but not export to other networks", id),
			"see the step gateway of "+string(id))
	}
	reached, unreached, message := g.Reports(id)
	switch {
	case reached == 0 && unreached > 0:
		return broken(fmt.Sprintf("none of %d gateways reaches those of %s: %s", unreached, id, message),
			fmt.Sprintf("let the gateways connect to %s: firewalls, and the Service %s of that cluster", addressesOf(known.Spec.Addresses), clusterset.GatewayService))
	case unreached > 0:
		step := v.step(HopGateway, Note, fmt.Sprintf("%d of %d gateways reach those of %s; %s", reached, reached+unreached, id, message), "see the network of that gateway's node")
		return &step, true
	case reached == 0:
		return broken(fmt.Sprintf("no gateway has reported whether it reaches those of %s", id),
			fmt.Sprintf("kubectl --context %s --namespace %s get gatewaystatuses; then logs deployment/%s",
				v.view.Member.KubeContext.Name, manifests.AgentNamespace, manifests.GatewayDeployment))
	}
	step := v.step(HopGateway, OK, fmt.Sprintf("through gateways: %d of %d reach those of %s at %s", reached, reached+unreached, id, addressesOf(known.Spec.Addresses)), "")
	return &step, true
}

func addressesOf(addresses []gatewayv1alpha1.Address) string {
	var texts []string
	for _, a := range addresses {
		texts = append(texts, net.JoinHostPort(a.Host, strconv.Itoa(int(a.Port))))
	}
	return strings.Join(texts, ", ")
}
