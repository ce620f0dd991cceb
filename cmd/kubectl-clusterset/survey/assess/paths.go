// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package assess

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/internal/reach"
	"github.com/tombolo-mcs/tombolo/internal/sources"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Path states how an importer reaches the endpoints of an exporter.
type Path string

// Values of Path.
const (
	PathDirect            Path = "Direct"            // by their addresses
	PathGateways          Path = "Gateways"          // through gateways
	PathGatewaysUnreached Path = "GatewaysUnreached" // through gateways, but none of the importer reaches those of the exporter
	PathNotKnown          Path = "NotKnown"          // through gateways, of which none reports whether it reaches those of the exporter
	PathNone              Path = "None"              // it cannot
)

// PathStatus is the path from an importer to an exporter.
type PathStatus struct {
	Importer clusterset.ClusterID `json:"importer"`
	Exporter clusterset.ClusterID `json:"exporter"`
	Path     Path                 `json:"path"`
	// Message is what was seen, if the path does not work or some gateways do not reach the exporter.
	Message string `json:"message,omitempty"`
}

// paths returns the paths of a service that are not direct, sorted by importer and exporter.
func (a *assessment) paths(known sources.Hub, importers []clusterset.ClusterID) []PathStatus {
	var result []PathStatus
	for _, importer := range importers {
		for _, export := range known.Exports {
			if export.Cluster == importer || !export.IsGrantedTo(importer) {
				continue
			}
			if path := a.path(importer, known.Exporters[export.Cluster], export); path.Path != PathDirect {
				result = append(result, path)
				a.notePath(path)
			}
		}
	}
	return result
}

func (a *assessment) path(importer clusterset.ClusterID, exporter reach.Cluster, export clusterset.Export) PathStatus {
	objects, local := a.objects[importer], a.hub.Records.Cluster(importer)
	seen := objects.Gateways[export.Cluster]
	local.Gateway = objects.Gateways != nil
	result := PathStatus{Importer: importer, Exporter: export.Cluster, Path: PathNotKnown}
	chosen, obstacle := reach.ChoosePath(local, exporter, export)
	switch {
	case chosen == reach.Direct:
		result.Path = PathDirect
	case len(objects.Errs) > 0 && objects.Gateways == nil:
		result.Message = objects.Errs[0].Error()
	case chosen == reach.None:
		result.Path, result.Message = PathNone, obstacle.Error()
	case chosen != reach.Gateway:
		result.Message = fmt.Sprintf("the path is %q", chosen)
	default:
		result.Path, result.Message = pathThrough(seen, export.Cluster)
	}
	return result
}

// pathThrough returns the path that gateways report, and what was seen if not all of them reach the other cluster.
func pathThrough(r survey.GatewayReach, to clusterset.ClusterID) (Path, string) {
	switch {
	case r.Reached > 0:
		return PathGateways, r.Message
	case r.Unreached > 0:
		return PathGatewaysUnreached, r.Message
	case r.Ready == 0:
		return PathGatewaysUnreached, "none of its gateways is ready"
	case !r.Known:
		return PathGatewaysUnreached, fmt.Sprintf("its gateways do not know those of %s", to)
	}
	return PathNotKnown, fmt.Sprintf("none of its gateways has reported whether it reaches those of %s", to)
}

// notePath keeps a path between gateways that does not work, or is not known to work, for the problems of the importer.
func (a *assessment) notePath(p PathStatus) {
	if p.Path != PathGatewaysUnreached && p.Path != PathNotKnown {
		return // the agent reports the others in a condition of the import
	}
	if a.unreached[p.Importer] == nil {
		a.unreached[p.Importer] = map[clusterset.ClusterID]PathStatus{}
	}
	a.unreached[p.Importer][p.Exporter] = p
}

// problemsOfGateways adds a problem for each other cluster that the gateways of a member do not reach, or of which this is not known.
func (a *assessment) problemsOfGateways(s survey.MemberObjects) {
	found := maps.Clone(a.unreached[s.ID])
	if found == nil {
		found = map[clusterset.ClusterID]PathStatus{}
	}
	for id, reach := range s.Gateways {
		if path, message := pathThrough(reach, id); path == PathGatewaysUnreached && reach.Unreached > 0 {
			found[id] = PathStatus{s.ID, id, path, message}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(found)) {
		p := Problem{
			Severity: SeverityError, Reason: ReasonGatewayUnreachable, Member: s.ID,
			Message: fmt.Sprintf("No gateway of %s reaches those of %s: %s", s.ID, id, found[id].Message),
			Next: fmt.Sprintf("Check the gateways of %s, its Service tombolo-gateway, and firewalls between both: kubectl --context %s -n tombolo-system get remotegateways %s",
				id, s.Context, id),
		}
		if found[id].Path == PathNotKnown {
			p.Severity, p.Reason = SeverityWarning, ReasonNotKnown
			p.Message = fmt.Sprintf("It is not known whether the gateways of %s reach those of %s: %s", s.ID, id, found[id].Message)
			p.Next = fmt.Sprintf("See what they report: kubectl --context %s -n tombolo-system get gatewaystatuses -o yaml", s.Context)
		}
		a.add(p)
	}
}
