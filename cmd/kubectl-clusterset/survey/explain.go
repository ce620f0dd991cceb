// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/hub"
	"github.com/tombolo-mcs/tombolo/pkg/merge"
)

// ExplanationKind says what a printed Explanation is; its version is StatusVersion.
const ExplanationKind = "ServiceExplanation"

// Explanation says how the exports of a service become one service.
type Explanation struct {
	metav1.TypeMeta `json:",inline"`
	Namespace       string                       `json:"namespace"`
	Name            string                       `json:"name"`
	Type            mcsv1beta1.ServiceImportType `json:"type,omitempty"`
	// Exports are those that are accepted, from the oldest, whose word counts, to the youngest.
	Exports []ExplainedExport `json:"exports"`
	Fields  []ExplainedField  `json:"fields,omitempty"`
	// Ports are the merged service's. LostPorts are those of exports that nobody can reach.
	Ports     []ExplainedPort `json:"ports,omitempty"`
	LostPorts []LostPort      `json:"lostPorts,omitempty"`
	// Refused says which records are not accepted, or what in them, and why.
	Refused []string `json:"refused,omitempty"`
}

// ExplainedExport is an export that takes part.
type ExplainedExport struct {
	Cluster clusterset.ClusterID `json:"cluster"`
	// State is that of its member.
	State State `json:"state"`
	// Since is its effective age, by which the oldest is found; Claimed is what its cluster says, where that is not believed.
	Since   metav1.Time  `json:"since"`
	Claimed *metav1.Time `json:"claimed,omitempty"`
	// Endpoints are its backends.
	Endpoints      int `json:"endpoints"`
	ReadyEndpoints int `json:"readyEndpoints"`
}

// ExplainedField is one of the things that exports should agree on.
type ExplainedField struct {
	Field string `json:"field"`
	// Using is the value that counts. From is whose it is; empty where it is made of all exports.
	Using    string               `json:"using"`
	From     clusterset.ClusterID `json:"from,omitempty"`
	Disagree []Disagreement       `json:"disagree,omitempty"`
	// Reason is that of the condition Conflict.
	Reason mcsv1beta1.ServiceExportConditionReason `json:"reason"`
}

// Disagreement is what a cluster says instead.
type Disagreement struct {
	Cluster clusterset.ClusterID `json:"cluster"`
	Says    string               `json:"says"`
}

// ExplainedPort is a port of the merged service.
type ExplainedPort struct {
	// Port is "name:number/protocol".
	Port        string `json:"port"`
	AppProtocol string `json:"appProtocol,omitempty"`
	// From is the oldest export with it, ServedBy who answers on it.
	From     clusterset.ClusterID   `json:"from"`
	ServedBy []clusterset.ClusterID `json:"servedBy"`
}

// LostPort is a port that an export has and the merged service has not, or not as the export has it.
type LostPort struct {
	Cluster clusterset.ClusterID `json:"cluster"`
	Port    string               `json:"port"`
	Why     string               `json:"why"`
}

// Explain returns how the exports of a service become one, as nobody in particular sees it; false where the hub has no
// record of it.
func (h *Hub) Explain(key clusterset.ServiceKey) (Explanation, bool) {
	known := h.Records.Service(key)
	result := Explanation{
		TypeMeta: metav1.TypeMeta{APIVersion: StatusVersion, Kind: ExplanationKind}, Namespace: key.Namespace, Name: key.Name, Exports: []ExplainedExport{},
	}
	for _, err := range known.Refused {
		result.Refused = append(result.Refused, err.Error())
	}
	merged, ok := merge.Merge(known.Exports)
	if !ok {
		return result, len(result.Refused) > 0
	}
	result.Type = merged.Type
	byAge := slices.SortedFunc(slices.Values(known.Exports), merge.Older)
	result.Exports = h.explainExports(byAge, known)
	for _, f := range merge.Fields(known.Exports) {
		result.Fields = append(result.Fields, explainField(f, merged, byAge))
	}
	result.Ports = explainPorts(merged, byAge)
	result.LostPorts = lostPorts(merged, byAge)
	return result, true
}

func (h *Hub) explainExports(byAge []clusterset.Export, known hub.Service) []ExplainedExport {
	counts := endpointCounts(known.Slices)
	var result []ExplainedExport
	for _, export := range byAge {
		e := ExplainedExport{
			Cluster: export.Cluster, State: h.lifeOf(export.Cluster).state(), Since: metav1.NewTime(export.Age),
			Endpoints: counts[export.Cluster].Endpoints, ReadyEndpoints: counts[export.Cluster].ReadyEndpoints,
		}
		own := h.Records.Record(export.Cluster, export.Key)
		if own != nil && !own.Spec.ExportedAt.UTC().Equal(export.Age) {
			claimed := metav1.NewTime(own.Spec.ExportedAt.UTC())
			e.Claimed = &claimed
		}
		result = append(result, e)
	}
	return result
}

func explainField(f merge.Field, merged merge.Merged, byAge []clusterset.Export) ExplainedField {
	result := ExplainedField{Field: f.Name, Using: f.Using, From: merged.Oldest, Reason: f.Reason}
	if f.Reason == mcsv1beta1.ServiceExportReasonPortConflict || f.Reason == mcsv1beta1.ServiceExportReasonIPFamilyConflict {
		result.From = ""
	}
	for _, export := range byAge {
		if slices.Contains(f.Disagree, export.Cluster) {
			result.Disagree = append(result.Disagree, Disagreement{export.Cluster, f.Said[export.Cluster]})
		}
	}
	return result
}

func explainPorts(merged merge.Merged, byAge []clusterset.Export) []ExplainedPort {
	var result []ExplainedPort
	for _, port := range merged.Ports {
		p := ExplainedPort{Port: port.String(), AppProtocol: port.AppProtocol, From: origin(port, byAge), ServedBy: []clusterset.ClusterID{}}
		for _, export := range byAge {
			for _, own := range export.Ports {
				if _, served := merged.PortNames[export.Cluster][own.Name]; served && own.ID() == port.ID() {
					p.ServedBy = append(p.ServedBy, export.Cluster)
				}
			}
		}
		slices.Sort(p.ServedBy)
		result = append(result, p)
	}
	return result
}

// origin returns the oldest export with a port.
func origin(port clusterset.Port, byAge []clusterset.Export) clusterset.ClusterID {
	for _, export := range byAge {
		if slices.Contains(export.Ports, port) {
			return export.Cluster
		}
	}
	return ""
}

// lostPorts returns which ports of the exports are not as their clusters want them, and why.
func lostPorts(merged merge.Merged, byAge []clusterset.Export) []LostPort {
	var result []LostPort
	for _, export := range byAge {
		for _, own := range export.Ports {
			if why := fate(own, merged, byAge); why != "" {
				result = append(result, LostPort{export.Cluster, own.String(), why})
			}
		}
	}
	return result
}

// fate returns why a port is not as its cluster wants it; empty where it is.
func fate(own clusterset.Port, merged merge.Merged, byAge []clusterset.Export) string {
	for _, port := range merged.Ports {
		from := origin(port, byAge)
		switch {
		case port == own:
			return ""
		case port.ID() == own.ID() && port.Name != own.Name:
			return fmt.Sprintf("it is served under %s, as the older export of %s has it", named(port), from)
		case port.ID() == own.ID():
			return fmt.Sprintf("it is served with application protocol %s, as the older export of %s has it, instead of %s",
				quoted(port.AppProtocol), from, quoted(own.AppProtocol))
		}
	}
	for _, port := range merged.Ports {
		if port.Name == own.Name {
			return fmt.Sprintf("no client reaches it: %s means %s, of the older export of %s. Give it another name, or the same number",
				named(port), port.ID(), origin(port, byAge))
		}
	}
	return "no client reaches it"
}

func named(port clusterset.Port) string {
	if port.Name == "" {
		return "the port without a name"
	}
	return "the name " + port.Name
}

func quoted(value string) string {
	if value == "" {
		return "none"
	}
	return fmt.Sprintf("%q", value)
}

// maxSimilar is how many names are proposed.
const maxSimilar = 5

// Similar returns the services that somebody may mean who names one that does not exist: those of the same name elsewhere;
// then, of the namespace, those whose names contain each other; then the rest of the namespace. At most 5.
func Similar(key clusterset.ServiceKey, known []clusterset.ServiceKey) []clusterset.ServiceKey {
	var same, near, rest []clusterset.ServiceKey
	for _, k := range sortedKeys(known) {
		switch {
		case k == key:
		case k.Name == key.Name:
			same = append(same, k)
		case k.Namespace != key.Namespace:
		case resemble(k.Name, key.Name):
			near = append(near, k)
		default:
			rest = append(rest, k)
		}
	}
	all := slices.Concat(same, near, rest)
	return all[:min(maxSimilar, len(all))]
}

// resemble reports whether one name contains the other. A single letter is in many.
func resemble(a, b string) bool {
	return len(a) > 1 && strings.Contains(b, a) || len(b) > 1 && strings.Contains(a, b)
}
