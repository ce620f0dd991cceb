// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"context"
	"strings"

	"github.com/coredns/coredns/plugin/metadata"
	"github.com/coredns/coredns/request"
)

// Metadata publishes the parts of a name in the plugin's zones. A part that the name does not have is empty. It implements
// metadata.Provider.
func (c *Clusterset) Metadata(ctx context.Context, state request.Request) context.Context {
	lower := state.Name()
	z := c.zoneOf(lower)
	if z == nil {
		return ctx
	}
	q := parseName(strings.TrimSuffix(lower[:len(lower)-len(z.Name)], "."))
	for label, value := range map[string]string{
		"kind": q.kind, "namespace": q.namespace, "service": q.service, "cluster": q.cluster,
		"endpoint": q.endpoint, "port-name": q.port, "protocol": q.protocol,
	} {
		metadata.SetValueFunc(ctx, name+"/"+label, func() string { return value })
	}
	return ctx
}

// nameParts are the parts of a name.
type nameParts struct {
	kind, namespace, service string // kind is "svc"
	cluster, endpoint        string
	port, protocol           string // without the underscores
}

// parseName returns the parts of a name relative to its zone; none if it cannot be the name of a service.
func parseName(path string) nameParts {
	labels := strings.Split(path, ".")
	last := func() string {
		if len(labels) == 0 {
			return ""
		}
		label := labels[len(labels)-1]
		labels = labels[:len(labels)-1]
		return label
	}
	m := nameParts{kind: last()}
	if m.kind != "svc" || len(labels) > 4 {
		return nameParts{}
	}
	m.namespace, m.service = last(), last()
	second, first := last(), last()
	protocol, isPort := strings.CutPrefix(second, "_")
	if isPort {
		m.protocol, m.port = protocol, strings.TrimPrefix(first, "_")
		return m
	}
	m.cluster, m.endpoint = second, first
	return m
}
