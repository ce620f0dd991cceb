// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"context"
	"time"
)

// endpointColumns show what kube-proxy goes by, less the ports.
const endpointColumns = "custom-columns=NAME:.metadata.name,ADDRESSES:.endpoints[*].addresses[0],READY:.endpoints[*].conditions.ready," +
	"ZONE:.endpoints[*].zone,FOR:.endpoints[*].hints.forZones[*].name"

// explain prints what a person needs to see why a story failed: its objects on every hop, and the agents' logs since it
// began.
func (s *scene) explain() {
	since := s.begin.UTC().Format(time.RFC3339)
	show := func(args ...string) {
		out, err := s.Kubectl(context.Background(), "", args...)
		if err != nil {
			out = err.Error()
		}
		s.Logf("kubectl %v\n%s", args, out)
	}
	all := append(append([]string(nil), s.Options.Members...), s.Options.Late...)
	for _, name := range all {
		show("--context", name, "-n", s.namespace, "get", "pods,services,serviceexports,serviceimports,endpointslices", "-o", "wide", "--show-labels")
		show("--context", name, "-n", s.namespace, "get", "serviceexports,serviceimports", "-o", "yaml")
		show("--context", name, "-n", s.namespace, "get", "endpointslices", "-o", endpointColumns)
	}
	show("--context", s.Hub.Name, "get", "heartbeats,publishedservices,publishedendpoints", "-A", "-o", "wide")
	for _, name := range all {
		show("--context", name, "-n", "tombolo-system", "get", "pods", "-o", "wide")
		show("--context", name, "-n", "tombolo-system", "logs", "--prefix", "-l", "app.kubernetes.io/name=tombolo-agent", "--tail=200", "--since-time="+since)
	}
}
