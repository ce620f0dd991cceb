// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package oracle says what every cluster of a clusterset must hold, and what must never happen to it. It is the second
// opinion that the product is compared with: small, slow, obviously right, written from the specification, and without
// a line of the product's own code (depguard checks that: .golangci.yml). It is pure.
//
// World.Compare is for times in which nothing moves, History for what happens between them.
package oracle

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// World is everything that exists, as a user sees it who may read all clusters while nothing moves.
type World struct {
	Clusters []Cluster
	// Members and Records are all that the hub holds of these kinds.
	Members []hubv1alpha1.Member
	Records []hubv1alpha1.PublishedService
}

// Cluster is a member and what it holds.
type Cluster struct {
	ID string
	// ServiceCIDRs are its ranges for Services, the primary one first.
	ServiceCIDRs []netip.Prefix
	// Denied are the namespaces into which its administrator wants nothing imported.
	Denied []string
	// Silent says that its agent does not run, and that all others have noticed. It is not checked itself then.
	Silent bool

	Namespaces []corev1.Namespace
	Services   []corev1.Service
	Slices     []discoveryv1.EndpointSlice
	Exports    []mcsv1beta1.ServiceExport
	Imports    []mcsv1beta1.ServiceImport
	// Answers are those of its DNS, to the questions that were asked.
	Answers map[Question]Answer
}

// Key is the namespace and name of a service, the same in all clusters.
type Key = types.NamespacedName

// Rule is what a Finding says is broken.
type Rule string

// The rules for times in which nothing moves, and those for all times.
const (
	// Imported: a ServiceImport is there exactly where it must be, and says what it must (spec I1-I8, R1-R7, C6).
	Imported Rule = "imported"
	// Derived: so is its derived Service (spec D1-D3).
	Derived Rule = "derived"
	// Endpoints: the mirrored slices hold exactly the endpoints that may serve, port by port (spec D4-D6, R2).
	Endpoints Rule = "endpoints"
	// Answered: DNS says what follows from all that (spec N2-N6).
	Answered Rule = "answered"
	// Conditions: a ServiceExport's conditions are right (spec C1-C4).
	Conditions Rule = "conditions"
	// Published: the hub holds a record of each export and of nothing else (spec E1-E3), but for inactive ones (spec E6).
	Published Rule = "published"

	// Unexported: no endpoint appears that its cluster has not exported (spec E1).
	Unexported Rule = "unexported"
	// ImportKept: no import goes while a cluster exports the service (spec I2).
	ImportKept Rule = "import kept"
	// EndpointKept: no endpoint goes before its cluster has said so, or has fallen silent (spec D9).
	EndpointKept Rule = "endpoint kept"
	// Unmanaged: what is not Tombolo's stays as it is (spec I7).
	Unmanaged Rule = "unmanaged"
	// Name: a derived Service keeps its name (spec D2).
	Name Rule = "name"
	// Address: it keeps its addresses while its type and families stay (spec I5).
	Address Rule = "address"
	// Withheld: no endpoint of a silent cluster comes back to a port that it has left (spec D9).
	Withheld Rule = "withheld"
	// AgeKept: an export keeps its record on the hub, which has its age, as long as the ServiceExport exists (spec E6, R8).
	AgeKept Rule = "age kept"
	// FewWrites: an object that no act changes, nor anything else of its service, is not written more than a few times
	// a minute.
	FewWrites Rule = "few writes"
)

// Rules returns all rules.
func Rules() []Rule {
	return []Rule{
		Imported, Derived, Endpoints, Answered, Conditions, Published,
		Unexported, ImportKept, EndpointKept, Unmanaged, Name, Address, Withheld, AgeKept, FewWrites,
	}
}

// Finding is one thing that is not as it must be.
type Finding struct {
	Rule    Rule
	Cluster string
	Key     Key
	Text    string
}

// String returns a line for people.
func (f Finding) String() string {
	return fmt.Sprintf("%s: %s in %s: %s", f.Rule, f.Key, f.Cluster, f.Text)
}

// Compare returns all that is not as it must be, sorted by cluster and service; nil where all is well.
func (w World) Compare() []Finding {
	var found []Finding
	for _, c := range w.Clusters {
		if c.Silent {
			continue
		}
		for _, key := range w.keys() {
			found = append(found, w.compareImport(c, key)...)
			found = append(found, w.compareExport(c, key)...)
			found = append(found, w.compareRecord(c, key)...)
		}
		found = append(found, w.compareAnswers(c)...)
	}
	return found
}

// keys returns every service that any object speaks of, sorted.
func (w World) keys() []Key {
	seen := map[Key]bool{}
	for _, c := range w.Clusters {
		for _, o := range slices.Concat(asObjects(c.Exports), asObjects(c.Imports), filter(c.objects(), isOurs)) {
			seen[keyOf(o)] = true
		}
	}
	for _, r := range w.Records {
		seen[keyOf(&r)] = true
	}
	return slices.SortedFunc(maps.Keys(seen), func(a, b Key) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
}

func (w World) member(id string) *hubv1alpha1.Member {
	for i := range w.Members {
		if w.Members[i].Spec.ClusterID == id {
			return &w.Members[i]
		}
	}
	return nil
}

func (w World) record(id string, key Key) *hubv1alpha1.PublishedService {
	for i, r := range w.Records {
		if r.Namespace == "member-"+id && string(r.Spec.Namespace) == key.Namespace && string(r.Spec.Service) == key.Name {
			return &w.Records[i]
		}
	}
	return nil
}
