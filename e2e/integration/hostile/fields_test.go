// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile_test

import (
	"fmt"
	"slices"
	"strconv"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// fields are values that no Service, and no EndpointSlice, can have: an importer that took one over could write nothing of its import.
func fields() []act {
	return slices.Concat(fieldsOfServices(), fieldsOfSelections(), fieldsOfEndpoints())
}

func fieldsOfServices() []act {
	service := func(name, hub, importer string, change func(*hubv1alpha1.PublishedServiceSpec)) act {
		return act{
			name: name, try: publishing(func(s *published) { change(&s.Spec) }), refused: []refusal{bySchema(hub), byImporter(importer)},
		}
	}
	illegal := func(name, key, importer string, change func(*hubv1alpha1.PublishedServiceSpec)) act {
		return act{
			name: name, try: publishing(func(s *published) { change(&s.Spec) }),
			refused: []refusal{byPolicy("records", "a label, annotation or selector key is no qualified name"), byImporter(fmt.Sprintf(importer, key))},
		}
	}
	another := func(name string, number int32) func(*hubv1alpha1.PublishedServiceSpec) {
		return func(s *hubv1alpha1.PublishedServiceSpec) {
			s.Ports = append(s.Ports, hubv1alpha1.PublishedPort{Name: name, Protocol: "TCP", Port: number})
		}
	}
	affinity := func(seconds int32) func(*hubv1alpha1.PublishedServiceSpec) {
		return func(s *hubv1alpha1.PublishedServiceSpec) {
			s.SessionAffinity, s.SessionAffinityTimeoutSeconds = "ClientIP", seconds
		}
	}
	return []act{
		service("a port twice", "two ports have the same protocol and number", "port again:80/TCP is there twice", another("again", 80)),
		service("a port's name twice", "each port needs a name of its own", "port http:81/TCP is there twice", another("http", 81)),
		service("a port's name that is none", `spec.ports[0].name: Invalid value: "HTTP"`, `port name "HTTP" is no DNS label`,
			func(s *hubv1alpha1.PublishedServiceSpec) { s.Ports[0].Name = "HTTP" }),
		service("an application protocol that is none", `spec.ports[0].appProtocol: Invalid value: "a/b/c"`, `application protocol "a/b/c" is no qualified name`,
			func(s *hubv1alpha1.PublishedServiceSpec) { s.Ports[0].AppProtocol = "a/b/c" }),
		service("a cluster IP without ports", "a ClusterSetIP service needs a port", "it has no port, which only a headless service can be without",
			func(s *hubv1alpha1.PublishedServiceSpec) { s.Ports = nil }),
		service("an affinity of more than a day", "spec.sessionAffinityTimeoutSeconds: Invalid value: 86401", "a session affinity timeout of 86401 s is out of range", affinity(86401)),
		service("an affinity of less than no time", "spec.sessionAffinityTimeoutSeconds: Invalid value: -1", "a session affinity timeout of -1 s is out of range", affinity(-1)),
		service("an internal traffic policy that can be none", `spec.internalTrafficPolicy: Invalid value: "a b"`, `"a b" is no internal traffic policy`,
			func(s *hubv1alpha1.PublishedServiceSpec) { s.InternalTrafficPolicy = "a b" }),
		service("a traffic distribution that can be none", `spec.trafficDistribution: Invalid value: "a b"`, `"a b" is no traffic distribution`,
			func(s *hubv1alpha1.PublishedServiceSpec) { s.TrafficDistribution = "a b" }),
		illegal("a label's key that is none", "not a key", "label %q is illegal or reserved",
			func(s *hubv1alpha1.PublishedServiceSpec) {
				s.Labels = map[string]hubv1alpha1.LabelValue{"not a key": ""}
			}),
		service("a label's value that is none", `spec.labels.team: Invalid value: "a b"`, `label "team" is illegal or reserved`,
			func(s *hubv1alpha1.PublishedServiceSpec) { s.Labels = map[string]hubv1alpha1.LabelValue{"team": "a b"} }),
		illegal("an annotation's key that is none", "not a key", "annotation %q is illegal, too long or reserved",
			func(s *hubv1alpha1.PublishedServiceSpec) {
				s.Annotations = map[string]hubv1alpha1.AnnotationValue{"not a key": ""}
			}),
	}
}

// fieldsOfSelections are refused even if no agent uses them.
func fieldsOfSelections() []act {
	type labels = map[string]hubv1alpha1.LabelValue
	selection := func(name string, labels labels, targets []hubv1alpha1.TargetPort, refused ...refusal) act {
		return act{
			name: name, refused: refused,
			try: publishing(func(s *published) {
				s.Spec.Selection = &hubv1alpha1.PublishedSelection{Labels: labels, TargetPorts: targets}
			}),
		}
	}
	app, http := labels{"app": "web"}, []hubv1alpha1.TargetPort{"http"}
	many := labels{}
	for i := range hubv1alpha1.MaxMetadataKeys + 1 {
		many["key-"+strconv.Itoa(i)] = ""
	}
	return []act{
		selection("a selection without target ports", app, nil, byImporter("it has 0 target ports for 1 ports")),
		selection("a target port too many", app, []hubv1alpha1.TargetPort{"http", "https"}, byImporter("it has 2 target ports for 1 ports")),
		selection("target port 0", app, []hubv1alpha1.TargetPort{"0"}, byImporter("0 is no port number")),
		selection("a target port that is none", app, []hubv1alpha1.TargetPort{"a--b"}, byImporter(`"a--b" is no name of a port`)),
		selection("a selection by no label", labels{}, http,
			bySchema("spec.selection.labels in body should have at least 1 properties"), byImporter("its selector has 0 labels, not 1 to 64")),
		selection("a selection by 65 labels", many, http, bySchema("spec.selection.labels: Too many: 65"), byImporter("its selector has 65 labels, not 1 to 64")),
		selection("a selection by a key that is none", labels{"not a key": ""}, http,
			byPolicy("records", "a label, annotation or selector key is no qualified name"), byImporter(`"not a key" is no label of a selector`)),
		selection("a selection by a value that is none", labels{"app": "a b"}, http,
			bySchema(`spec.selection.labels.app: Invalid value: "a b"`), byImporter(`"app" is no label of a selector`)),
	}
}

func fieldsOfEndpoints() []act {
	slice := func(name, hub, importer string, change func(*hubv1alpha1.PublishedEndpointsSpec)) act {
		return act{
			name: name, try: serving(func(e *endpoints) { change(&e.Spec) }), rest: true, refused: []refusal{bySchema(hub), byImporter(importer)},
		}
	}
	grouped := func(perEndpoint int32, addresses int, hostnames ...hubv1alpha1.Hostname) func(*hubv1alpha1.PublishedEndpointsSpec) {
		return func(s *hubv1alpha1.PublishedEndpointsSpec) {
			s.Groups[0].Addresses = manyPods(0, addresses).Addresses
			s.Groups[0].AddressesPerEndpoint, s.Groups[0].Hostnames = perEndpoint, hostnames
		}
	}
	return []act{
		slice("101 ports of endpoints", "spec.ports: Too many: 101", "it has 101 ports, more than 100", func(s *hubv1alpha1.PublishedEndpointsSpec) {
			s.Ports = nil
			for i := range int32(101) {
				s.Ports = append(s.Ports, hubv1alpha1.PublishedEndpointPort{Name: "p" + strconv.Itoa(int(i)), Protocol: "TCP", Port: i + 1})
			}
		}),
		slice("a port's name twice on endpoints", "two ports have the same name", `port name "http" is there twice`,
			func(s *hubv1alpha1.PublishedEndpointsSpec) { s.Ports = append(s.Ports, s.Ports[0]) }),
		slice("101 groups of endpoints", "spec.groups: Too many: 101", "it has 101 groups, more than 100",
			func(s *hubv1alpha1.PublishedEndpointsSpec) { s.Groups = slices.Repeat(s.Groups, 101) }),
		slice("an endpoint of 101 addresses", "spec.groups[0].addressesPerEndpoint: Invalid value: 101", "endpoints of 101 addresses each have more than 100", grouped(101, 101)),
		slice("endpoints of one address and a half", "the addresses are no multiple of addressesPerEndpoint", "3 addresses do not make endpoints of 2 each", grouped(2, 3)),
		slice("a hostname for two endpoints", "hostnames must have one entry for each endpoint", "1 hostnames for 2 endpoints", grouped(0, 2, "web-0")),
	}
}
