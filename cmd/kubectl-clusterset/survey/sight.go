// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"context"
	"fmt"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/imports"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Sight is what a member that can be reached says itself.
type Sight struct {
	ID      clusterset.ClusterID
	Context string
	// Agent says that its agent runs in it, not beside the hub.
	Agent   Presence
	Exports []mcsv1beta1.ServiceExport
	Imports []mcsv1beta1.ServiceImport
	// Namespaces are those into which it imports.
	Namespaces imports.NamespacePolicy
	// Err is why its exports or imports could not be read; nil where they were.
	Err error
}

// Presence says whether something is there.
type Presence string

// Whether something is there.
const (
	Present Presence = "Present"
	Missing Presence = "Missing"
)

// Sight returns what the member says of its exports and imports.
func (m *Member) Sight(ctx context.Context) Sight {
	s := Sight{ID: m.ID, Context: m.Place.Name, Agent: Missing, Namespaces: m.namespaces()}
	if m.Agent != nil {
		s.Agent = Present
	}
	ctx, cancel := context.WithTimeout(ctx, readingTime)
	defer cancel()
	exported, imported := &mcsv1beta1.ServiceExportList{}, &mcsv1beta1.ServiceImportList{}
	for _, list := range []client.ObjectList{exported, imported} {
		if err := m.Client.List(ctx, list); err != nil {
			s.Err = fmt.Errorf("list %T of cluster %s: %w", list, m.ID, err)
			return s
		}
	}
	s.Exports, s.Imports = exported.Items, imported.Items
	return s
}

// Sights returns what all members that can be reached say, in their order. They are asked at once.
func (c *Clusterset) Sights(ctx context.Context) []Sight {
	result := make([]Sight, len(c.Members))
	var group sync.WaitGroup
	for i, m := range c.Members {
		group.Go(func() { result[i] = m.Sight(ctx) })
	}
	group.Wait()
	return result
}

// Status returns the clusterset at a glance. It asks the members that can be reached.
func (c *Clusterset) Status(ctx context.Context) Status {
	return Assess(c.Hub, c.Sights(ctx), c.Unreached)
}
