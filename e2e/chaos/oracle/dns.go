// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// zone is the clusterset's.
const zone = ".svc.clusterset.local."

// Question is what a pod may ask its cluster's DNS: a name, and A, AAAA or SRV.
type Question struct{ Name, Type string }

// Answer is what it says: a code as in NXDOMAIN, and the data of the records, sorted; of an SRV record port and target.
type Answer struct {
	Code    string
	Records string
}

// answers collects what the DNS of a cluster must say, and of which service each question is.
type answers struct {
	must map[Question]map[string]bool
	of   map[Question]Key
}

// Questions returns all that can be asked of a cluster about the services that there are, exported or not, sorted.
func (w World) Questions(id string) []Question {
	return slices.SortedFunc(maps.Keys(w.answers(w.cluster(id)).must), compareQuestions)
}

func compareQuestions(a, b Question) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Type, b.Type))
}

// compareAnswers compares what a cluster's DNS has said with what it must say (spec N2-N6).
func (w World) compareAnswers(c Cluster) []Finding {
	all := w.answers(c)
	var found []Finding
	for _, q := range slices.SortedFunc(maps.Keys(c.Answers), compareQuestions) {
		l := &list{cluster: c.ID, key: all.of[q]}
		l.same(Answered, q.Name+" "+q.Type, c.Answers[q], all.answer(q))
		found = append(found, l.found...)
	}
	return found
}

// answer returns the answer to a question: a name of which there is nothing at all does not exist.
func (a answers) answer(q Question) Answer {
	result := Answer{Code: "NXDOMAIN", Records: strings.Join(slices.Sorted(maps.Keys(a.must[q])), ",")}
	for _, other := range []string{"A", "AAAA", "SRV"} {
		if len(a.must[Question{q.Name, other}]) > 0 {
			result.Code = "NOERROR"
		}
	}
	return result
}

func (a answers) ask(key Key, name, kind string, records ...string) {
	q := Question{name, kind}
	if a.of[q] = key; a.must[q] == nil {
		a.must[q] = map[string]bool{}
	}
	for _, record := range records {
		a.must[q][record] = true
	}
}

// answers returns what the DNS of a cluster must say of each service that is exported or that the cluster has itself.
func (w World) answers(c Cluster) answers {
	all := answers{map[Question]map[string]bool{}, map[Question]Key{}}
	keys := w.keys()
	for _, s := range c.Services {
		if key := (Key{Namespace: s.Namespace, Name: s.Name}); !isDerived(s) && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	for _, key := range keys {
		if i := c.serviceImport(key); i != nil && !isOurImport(*i) {
			continue // another user's, of whom we know nothing
		}
		name := key.Name + "." + key.Namespace + zone
		all.ask(key, name, "A")
		all.ask(key, name, "AAAA")
		exports, derived := w.exports(key), c.derived(key)
		switch {
		case len(exports) == 0 || !c.takes(key.Namespace) || len(derived) != 1:
		case exports[0].headless():
			all.headless(key, name, w.serving(c, key, exports, derived[0].Spec.IPFamilies))
		default:
			all.shared(key, name, derived[0], union(exports))
		}
	}
	return all
}

// shared has a service's name lead to the addresses of its derived Service (spec N2).
func (a answers) shared(key Key, name string, derived corev1.Service, ports []port) {
	for i, ip := range derived.Spec.ClusterIPs { // one that is still headless is another rule's business
		a.ask(key, name, kindOf(discoveryv1.AddressType(derived.Spec.IPFamilies[i])), ip)
	}
	for _, p := range ports {
		if p.name != "" {
			a.ask(key, "_"+p.name+"._"+strings.ToLower(p.protocol)+"."+name, "SRV", strconv.Itoa(int(p.number))+" "+name)
		}
	}
}

// headless has a service's name lead to all endpoints that are ready, and gives each of them a name (spec N3).
func (a answers) headless(key Key, name string, all []serving) {
	for _, s := range all {
		if !isReady(s.endpoint) {
			continue
		}
		for _, address := range s.endpoint.Addresses {
			host := hostname(s.endpoint, address) + "." + s.source + "." + name
			a.ask(key, name, kindOf(s.family), address)
			a.ask(key, host, kindOf(s.family), address)
			if s.portName != "" {
				a.ask(key, "_"+s.portName+"._"+strings.ToLower(s.protocol)+"."+name, "SRV", s.number+" "+host)
			}
		}
	}
}

func kindOf(family discoveryv1.AddressType) string {
	if family == discoveryv1.AddressTypeIPv4 {
		return "A"
	}
	return "AAAA"
}

// hostname returns the name of an endpoint: its own, else its address.
func hostname(e discoveryv1.Endpoint, address string) string {
	if name := text(e.Hostname); name != "" {
		return name
	}
	return strings.NewReplacer(".", "-", ":", "-").Replace(address)
}
