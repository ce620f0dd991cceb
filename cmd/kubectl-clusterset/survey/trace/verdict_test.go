// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"strings"
	"testing"

	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/surveytest"
	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// A trace works only if a cluster was seen that imports the service, and nothing was seen that is not known. spec: G12
func TestVerdict(t *testing.T) {
	t.Parallel()
	imported := Step{Cluster: "a", Hop: HopImport, State: OK}
	for name, test := range map[string]struct {
		steps    []Step
		notKnown Hop
	}{
		"works":                        {[]Step{imported, {Hop: HopGateway, State: Note}}, ""},
		"broken":                       {[]Step{{Hop: HopGateway, State: Broken}}, ""},
		"not known":                    {[]Step{imported, {Hop: HopGateway, State: NotKnown}}, HopGateway},
		"a state of a later version":   {[]Step{imported, {Hop: HopGateway, State: "degraded"}}, HopGateway},
		"no state":                     {[]Step{imported, {Hop: HopDNS}}, HopDNS},
		"no cluster was seen":          {[]Step{{Hop: HopRecord, State: OK}, {Hop: HopNamespace, State: Note}}, HopImport},
		"nothing was seen":             {nil, HopImport},
		"broken is more than no known": {[]Step{{Hop: HopGateway, State: Broken}, {Hop: HopDNS, State: Note}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result := Result{Steps: append(test.steps, unseen(test.steps)...)}
			got := Hop("")
			if seen := result.NotKnown(); seen != nil {
				got = seen.Hop
			}
			check.Equal(t, "not known", test.notKnown, got)
		})
	}
}

// What kube-proxy does with an import of another type, or without a derived Service, is not known.
func TestProxyNotKnown(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]mcsv1beta1.ServiceImportType{"of another type": "Anycast", "without a derived Service": mcsv1beta1.ClusterSetIP} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newMemberTrace()
			v.serviceImport = &mcsv1beta1.ServiceImport{Spec: mcsv1beta1.ServiceImportSpec{Type: kind}}
			endsNotKnown(t, v.proxySteps())
		})
	}
}

// spec: G14, G12
func TestProxyProtocolIsNoted(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		condition conditions.ProxyProtocol
		found     string
		fix       string
	}{
		"the header is sent": {
			conditions.ProxyProtocol{Ports: []int32{80}, HasGateways: true}, "begin each connection to port 80 with a PROXY protocol header", "a backend that does not expect the header",
		},
		"no gateways": {conditions.ProxyProtocol{Ports: []int32{80}}, "No client sends the header", "do what the message says"},
	} {
		object := surveytest.Export("shop/web", conditions.Exported(nil, conditions.Publication{Hub: conditions.HubSynced, Published: true}), test.condition.Condition())
		v := newMemberTrace()
		v.Sources.Export, v.Sources.Local = &object, &clusterset.Export{}
		steps := v.headerSteps()
		if len(steps) != 1 || steps[0].State != Note || !strings.Contains(steps[0].Found, test.found) || !strings.Contains(steps[0].Fix, test.fix) {
			t.Errorf("%s: %+v", name, steps)
		}
	}
}

// spec: G10, G12
func TestSourceUnusableIsNoted(t *testing.T) {
	t.Parallel()
	v := newMemberTrace()
	v.Sources.Local = &clusterset.Export{}
	v.serviceImport = &mcsv1beta1.ServiceImport{}
	v.serviceImport.Status.Conditions = surveytest.UnlistedOfImports()["no condition Ready"]
	if steps := v.gatewaySteps(); len(steps) > 0 {
		t.Errorf("%+v", steps)
	}
	v.serviceImport.Status.Conditions = sourceUnusable("port 53/UDP of cluster b is left out")
	steps := v.gatewaySteps()
	if len(steps) != 1 || steps[0].State != Note || steps[0].Found == "" {
		t.Errorf("%+v", steps)
	}
}
