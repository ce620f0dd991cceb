// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package explain describes one service: how its exports are merged, which sources of a policy serve, and which rules decide who may use it.
package explain

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/assess"
	"github.com/tombolo-mcs/tombolo/internal/access"
	"github.com/tombolo-mcs/tombolo/internal/merge"
	"github.com/tombolo-mcs/tombolo/internal/sources"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// ExplanationKind is the kind of a printed Explanation; its version is StatusVersion.
const ExplanationKind = "ServiceExplanation"

// Explanation describes how the exports of a service are merged.
type Explanation struct {
	metav1.TypeMeta `json:",inline"`
	Namespace       string                       `json:"namespace"`
	Name            string                       `json:"name"`
	Type            mcsv1beta1.ServiceImportType `json:"type,omitempty"`
	// Exports are the accepted exports, oldest first. The oldest wins conflicts.
	Exports []Export `json:"exports"`
	Fields  []Field  `json:"fields,omitempty"`
	// Ports are those of the merged service. LostPorts are ports of exports that cannot be reached as exported.
	Ports     []Port     `json:"ports,omitempty"`
	LostPorts []LostPort `json:"lostPorts,omitempty"`
	// Preferences say which sources of a ServiceImportRoutingPolicy serve in each reachable member that has one.
	Preferences []Preference `json:"preferences,omitempty"`
	// Refused describes the records, or parts of records, that are refused, and why.
	Refused []string `json:"refused,omitempty"`
	// Access are the rules about who may use the service through gateways.
	Access []ClusterRules `json:"access,omitempty"`
	// Seen are the objects of the service in the clusters that were read, if the hub could not be read. Then Exports, Fields, Ports and
	// Refused are not known.
	Seen []SeenObject `json:"seen,omitempty"`
}

// Export is an accepted export.
type Export struct {
	Cluster clusterset.ClusterID `json:"cluster"`
	// State is the state of its member.
	State survey.State `json:"state"`
	// Since is the effective time of the export, which decides which one is the oldest. Claimed is the time in the record if it
	// differs.
	Since   metav1.Time  `json:"since"`
	Claimed *metav1.Time `json:"claimed,omitempty"`
	// Endpoints and ReadyEndpoints count its endpoints. AtLeast is true if there may be more.
	Endpoints      int  `json:"endpoints"`
	ReadyEndpoints int  `json:"readyEndpoints"`
	AtLeast        bool `json:"atLeast,omitempty"`
	// GrantedTo are the other clusters that import it; absent if all do (A1).
	GrantedTo []clusterset.ClusterID `json:"grantedTo,omitzero"`
	// NoMembers are those of GrantedTo that are no members.
	NoMembers []clusterset.ClusterID `json:"noMembers,omitempty"`
}

// Field is a field of the exports that should be equal.
type Field struct {
	Field string `json:"field"`
	// Using is the value of the merged service. From is the cluster of that value; empty if it is computed from all exports.
	Using    string               `json:"using"`
	From     clusterset.ClusterID `json:"from,omitempty"`
	Disagree []Disagreement       `json:"disagree,omitempty"`
	// Reason is the reason of the condition Conflict.
	Reason mcsv1beta1.ServiceExportConditionReason `json:"reason"`
}

// Disagreement is a cluster that exports another value.
type Disagreement struct {
	Cluster clusterset.ClusterID `json:"cluster"`
	Value   string               `json:"says"`
}

// Port is a port of the merged service.
type Port struct {
	// Port is "name:number/protocol".
	Port        string `json:"port"`
	AppProtocol string `json:"appProtocol,omitempty"`
	// From is the oldest export with the port, ServedBy are the clusters that serve it.
	From     clusterset.ClusterID   `json:"from"`
	ServedBy []clusterset.ClusterID `json:"servedBy"`
}

// LostPort is a port of an export that the merged service lacks or changes.
type LostPort struct {
	Cluster clusterset.ClusterID `json:"cluster"`
	Port    string               `json:"port"`
	Reason  string               `json:"why"`
}

// Preference is the condition Preferred of an import.
type Preference struct {
	Importer clusterset.ClusterID `json:"importer"`
	Reason   string               `json:"reason"`
	Message  string               `json:"message"`
}

// Service describes how the exports of a service are merged, without a local cluster. It returns false if the hub has no record
// of the service.
func Service(h *survey.Hub, key clusterset.ServiceKey) (Explanation, bool) {
	known := h.Records.Service(key)
	result := Explanation{
		TypeMeta: metav1.TypeMeta{APIVersion: assess.StatusVersion, Kind: ExplanationKind}, Namespace: key.Namespace, Name: key.Name, Exports: []Export{},
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
	result.Exports = explainExports(h, byAge, known)
	for _, f := range merge.Fields(known.Exports) {
		result.Fields = append(result.Fields, explainField(f, merged, byAge))
	}
	result.Ports = explainPorts(merged, byAge)
	result.LostPorts = lostPorts(merged, byAge)
	return result, true
}

func explainExports(h *survey.Hub, byAge []clusterset.Export, known sources.Hub) []Export {
	counts := map[clusterset.ClusterID]assess.ExporterStatus{}
	for _, counted := range assess.Exporters(known) {
		counts[counted.Cluster] = counted
	}
	var result []Export
	for _, export := range byAge {
		counted := counts[export.Cluster]
		e := Export{
			Cluster: export.Cluster, State: h.LastHeartbeat(export.Cluster).State(), Since: metav1.NewTime(export.Age),
			Endpoints: counted.Endpoints, ReadyEndpoints: counted.ReadyEndpoints, AtLeast: counted.AtLeast,
			GrantedTo: export.GrantedTo, NoMembers: access.NoMembers(export.GrantedTo, h.Records.Properties()),
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

func explainField(f merge.Field, merged merge.Merged, byAge []clusterset.Export) Field {
	result := Field{Field: f.Name, Using: f.Using, From: merged.Oldest, Reason: f.Reason}
	if f.Reason == mcsv1beta1.ServiceExportReasonPortConflict || f.Reason == mcsv1beta1.ServiceExportReasonIPFamilyConflict {
		result.From = ""
	}
	for _, export := range byAge {
		if slices.Contains(f.Disagree, export.Cluster) {
			result.Disagree = append(result.Disagree, Disagreement{export.Cluster, f.Values[export.Cluster]})
		}
	}
	return result
}

func explainPorts(merged merge.Merged, byAge []clusterset.Export) []Port {
	var result []Port
	for _, port := range merged.Ports {
		p := Port{Port: port.String(), AppProtocol: port.AppProtocol, From: oldestWithPort(port, byAge), ServedBy: []clusterset.ClusterID{}}
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

// oldestWithPort returns the cluster of the oldest export with a port.
func oldestWithPort(port clusterset.Port, byAge []clusterset.Export) clusterset.ClusterID {
	for _, export := range byAge {
		if slices.Contains(export.Ports, port) {
			return export.Cluster
		}
	}
	return ""
}

// lostPorts returns the ports of the exports that the merged service lacks or changes, with the reason.
func lostPorts(merged merge.Merged, byAge []clusterset.Export) []LostPort {
	var result []LostPort
	for _, export := range byAge {
		for _, own := range export.Ports {
			if reason := lostReason(own, merged, byAge); reason != "" {
				result = append(result, LostPort{export.Cluster, own.String(), reason})
			}
		}
	}
	return result
}

// lostReason returns why the merged service lacks or changes a port; empty if it does not.
func lostReason(own clusterset.Port, merged merge.Merged, byAge []clusterset.Export) string {
	for _, port := range merged.Ports {
		from := oldestWithPort(port, byAge)
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
				named(port), port.ID(), oldestWithPort(port, byAge))
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

// maxSimilar is the number of names that Similar returns at most.
const maxSimilar = 5

// Similar returns at most maxSimilar services that are similar to one that does not exist: first those of the same name in other
// namespaces; then, in the same namespace, those whose names contain each other; then the rest of the namespace.
func Similar(key clusterset.ServiceKey, known []clusterset.ServiceKey) []clusterset.ServiceKey {
	var same, near, rest []clusterset.ServiceKey
	for _, k := range assess.SortedKeys(known) {
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

// resemble reports whether one name contains the other. It ignores names of one letter, which are part of many others.
func resemble(a, b string) bool {
	return len(a) > 1 && strings.Contains(b, a) || len(b) > 1 && strings.Contains(a, b)
}
