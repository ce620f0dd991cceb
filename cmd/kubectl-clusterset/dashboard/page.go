// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/assess"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/watch"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// page is what the page shows of a status. It is smaller than the status: a member has a letter in the row of a service.
type page struct {
	// Hub is the URL of the hub.
	Hub        string                   `json:"hub"`
	Members    []member                 `json:"members"`
	Problems   []assess.Problem         `json:"problems"`
	Unreached  []assess.UnreachedStatus `json:"unreached"`
	Unanswered []watch.Unanswered       `json:"unanswered"`
	Links      []link                   `json:"links"`
	services   []row
}

// link is what importers in a network use to reach exporters in another network, or in their own if that is not direct.
type link struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Path is the letter of the worst path.
	Path string `json:"path"`
}

// member is a column.
type member struct {
	ID          clusterset.ClusterID `json:"id"`
	Network     string               `json:"network"`
	State       survey.State         `json:"state"`
	Version     string               `json:"version,omitempty"`
	Publication string               `json:"publication"`
	Exports     int                  `json:"exports"`
	Imports     *int                 `json:"imports,omitempty"`
	// Context is empty if the member is not read: then only what the hub stores of it is known.
	Context string `json:"context,omitempty"`
	// SilentSince is the time of the last heartbeat of a silent member.
	SilentSince *metav1.Time `json:"silentSince,omitempty"`
}

// row is a service.
type row struct {
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"`
	Type      string   `json:"type,omitempty"`
	Ports     []string `json:"ports,omitempty"`
	// Exporters are sorted by cluster.
	Exporters []exporter `json:"exporters,omitempty"`
	// Imports has a letter for each member, in their order.
	Imports string `json:"imports"`
}

type exporter struct {
	Cluster clusterset.ClusterID `json:"cluster"`
	Ready   int                  `json:"ready"`
	All     int                  `json:"all"`
	// AtLeast is true if there may be more.
	AtLeast bool `json:"atLeast,omitempty"`
	// Differs is true if the export differs from the oldest one.
	Differs bool `json:"differs,omitempty"`
}

// Letters of members that import a service, by the worst path to its exporters, and of members that do not.
const (
	notRead     = '-' // it is not known whether the member imports the service
	notImported = '.'
	// lettersByRank are those of paths: direct, gateways, not known, gateways that are not reached, none.
	lettersByRank = "dg?ux"
)

// rank returns the index of a path in lettersByRank.
func rank(p assess.Path) int {
	switch p {
	case assess.PathDirect:
		return 0
	case assess.PathGateways:
		return 1
	case assess.PathGatewaysUnreached:
		return 3
	case assess.PathNone:
		return 4
	case assess.PathNotKnown:
	}
	return 2 // also a path of a later version
}

// pageOf returns what the page shows of an observation.
func pageOf(o watch.Observation) page {
	s := o.Status
	result := page{
		Hub: s.Hub, Members: []member{}, Problems: append([]assess.Problem{}, s.Problems...),
		Unreached: append([]assess.UnreachedStatus{}, s.Unreached...), Unanswered: append([]watch.Unanswered{}, o.Unanswered...),
	}
	columns, letters := map[clusterset.ClusterID]int{}, make([]byte, len(s.Members))
	for i, m := range s.Members {
		result.Members = append(result.Members, memberOf(m, s.Time.Time))
		columns[m.ID], letters[i] = i, notImported
		if m.Imports == nil {
			letters[i] = notRead
		}
	}
	for _, service := range s.Services {
		result.services = append(result.services, rowOf(service, columns, letters))
	}
	result.Links = linksOf(s)
	return result
}

// linksOf returns the worst path between each two networks, sorted.
func linksOf(s assess.Status) []link {
	networks, worst := map[clusterset.ClusterID]string{}, map[link]int{}
	for _, m := range s.Members {
		networks[m.ID] = m.Network
	}
	for _, service := range s.Services {
		for _, p := range service.Paths {
			between := link{From: networks[p.Importer], To: networks[p.Exporter]}
			worst[between] = max(worst[between], rank(p.Path))
		}
	}
	result := []link{}
	for between, rank := range worst {
		between.Path = lettersByRank[rank : rank+1]
		result = append(result, between)
	}
	slices.SortFunc(result, func(a, b link) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
	return result
}

func memberOf(m assess.MemberStatus, now time.Time) member {
	result := member{
		ID: m.ID, Network: m.Network, State: m.State, Version: m.Version, Publication: m.Publication, Exports: m.Exports, Imports: m.Imports, Context: m.Context,
	}
	if m.State == survey.StateSilent {
		since := metav1.NewTime(now.Add(-m.Silence()).Truncate(time.Second))
		result.SilentSince = &since
	}
	return result
}

// rowOf returns the row of a service. letters are those of members that do not import it.
func rowOf(s assess.ServiceStatus, columns map[clusterset.ClusterID]int, letters []byte) row {
	imports := slices.Clone(letters)
	for _, id := range s.Importers {
		if i, ok := columns[id]; ok {
			imports[i] = lettersByRank[0]
		}
	}
	worst := map[clusterset.ClusterID]int{}
	for _, p := range s.Paths {
		worst[p.Importer] = max(worst[p.Importer], rank(p.Path))
	}
	for id, rank := range worst {
		if i, ok := columns[id]; ok {
			imports[i] = lettersByRank[rank]
		}
	}
	result := row{Namespace: s.Namespace, Name: s.Name, Type: string(s.Type), Ports: s.Ports, Imports: string(imports)}
	for _, e := range s.Exporters {
		differs := slices.ContainsFunc(s.Conflicts, func(c assess.ConflictStatus) bool { return slices.Contains(c.Disagree, e.Cluster) })
		result.Exporters = append(result.Exporters, exporter{e.Cluster, e.ReadyEndpoints, e.Endpoints, e.AtLeast, differs})
	}
	return result
}
