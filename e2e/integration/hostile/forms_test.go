// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// metadata are labels and annotations, of services and of records, and other things of an object's metadata.
func metadata() []act {
	labelled := func(name, label string) act {
		return refused(name,
			writeService(func(s *published) { s.Spec.Labels = map[string]hubv1alpha1.LabelValue{label: "x"} }),
			byPolicy("records", "label or annotation "+label+" is reserved"),
			byImporter(fmt.Sprintf("label %q is illegal or reserved", label)))
	}
	annotated := func(name, key string) act {
		return refused(name,
			writeService(func(s *published) { s.Spec.Annotations = map[string]hubv1alpha1.AnnotationValue{key: "x"} }),
			byPolicy("records", "label or annotation "+key+" is reserved"),
			byImporter(fmt.Sprintf("annotation %q is illegal, too long or reserved", key)))
	}
	return []act{
		labelled("a label of Kubernetes", "service.kubernetes.io/headless"),
		labelled("another source cluster as a label", "multicluster.kubernetes.io/source-cluster"),
		labelled("another manager as a label", "app.kubernetes.io/managed-by"),
		annotated("an annotation of a cloud", "service.beta.kubernetes.io/aws-load-balancer-internal"),
		annotated("an annotation that makes names", "external-dns.alpha.kubernetes.io/hostname"),
		foreign("metadata of a GitOps tool", "argocd.argoproj.io/instance", "kustomize.toolkit.fluxcd.io/prune"),
		foreign("metadata of a mesh", "kuma.io/mesh", "consul.hashicorp.com/service-name"),
		foreign("metadata of a network", "antrea.io/x", "k8s.ovn.org/x"),
		foreign("metadata of a load balancer", "purelb.io/x", "Kube-VIP.io/loadbalancerIPs"),
		refused("annotations of 256 KiB",
			writeService(func(s *published) {
				s.Spec.Annotations = map[string]hubv1alpha1.AnnotationValue{}
				for i := range 64 {
					s.Spec.Annotations["example.com/"+strconv.Itoa(i)] = hubv1alpha1.AnnotationValue(strings.Repeat("x", 4096))
				}
			}),
			byPolicy("records", "the annotations have more than 256 KiB in all"), byImporter("its annotations have ")),
		refused("an annotation of 1 MB",
			writeService(func(s *published) {
				s.Spec.Annotations = map[string]hubv1alpha1.AnnotationValue{"example.com/a": hubv1alpha1.AnnotationValue(strings.Repeat("x", 1<<20))}
			}),
			bySchema("spec.annotations.example.com/a: Too long"), byImporter(`annotation "example.com/a" is illegal, too long or reserved`)),
		refused("5,000 labels",
			writeService(func(s *published) {
				s.Spec.Labels = map[string]hubv1alpha1.LabelValue{}
				for i := range 5000 {
					s.Spec.Labels["example.com/"+strconv.Itoa(i)] = "x"
				}
			}),
			bySchema("spec.labels: Too many: 5000"), byImporter("it has more than 64 labels or annotations")),
		refused("1 MB of labels on a record",
			writeService(func(s *published) {
				s.Labels = map[string]string{}
				for i := range 10_000 {
					s.Labels[fmt.Sprintf("app.kubernetes.io/%022d", i)] = strings.Repeat("x", 63)
				}
			}),
			byPolicy("metadata", "what a member writes has no labels")).
			otherwise("no program reads them", isImported),
		refused("1 MB of annotations on a record",
			writeService(func(s *published) { s.Annotations = map[string]string{"a": strings.Repeat("x", 1<<20)} }),
			byServer("metadata.annotations: Too long")),
		refused("a finalizer on a record",
			writeService(func(s *published) { s.Finalizers = []string{"example.com/stay"} }),
			byPolicy("metadata", "what a member writes has no finalizers")).
			otherwise("only the member's namespace waits for it", isImported),
		refused("a record that owns itself",
			writeService(func(s *published) {
				s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"}}
			}),
			byPolicy("metadata", "what a member writes has no ownerReferences")).
			otherwise("the hub's garbage collector deletes the record", isGone),
		refused("a deletion that leaves the record behind",
			func(ctx context.Context, a *attempt) error {
				service, endpoints := a.records()
				if err := a.write(ctx, endpoints, service); err != nil {
					return err
				}
				return a.Delete(ctx, service, client.PropagationPolicy(metav1.DeletePropagationOrphan))
			},
			byPolicy("deletions", "a record must not outlive its deletion")).
			otherwise("the hub's garbage collector deletes the record", isGone),
	}
}

// foreign is a service with metadata of other programs.
func foreign(name, label, annotation string) act {
	write := writeService(func(s *published) {
		s.Spec.Labels = map[string]hubv1alpha1.LabelValue{label: "x"}
		s.Spec.Annotations = map[string]hubv1alpha1.AnnotationValue{annotation: "x"}
	})
	const why = "the importer leaves out what its administrators do not admit, and says so on the import"
	return harmless(name, write, why, func(t *testing.T, w *env, k key) {
		t.Helper()
		i, derived := w.c.Imported(t, k)
		ready := meta.FindStatusCondition(i.Status.Conditions, string(mcsv1beta1.ServiceImportConditionReady))
		_, onImport := i.Labels[label]
		_, onService := derived.Labels[label]
		_, annotated := i.Annotations[annotation]
		if onImport || onService || annotated || !strings.Contains(ready.Message, "Left out: labels and annotations of these domains: ") {
			t.Errorf("%s: labels %v and %v, annotations %v, condition %q", name, i.Labels, derived.Labels, i.Annotations, ready.Message)
		}
	})
}

// forms are records that this version cannot read, or only in part: poison for a decoder, and what other versions of the
// hub's kinds may have.
func forms() []act {
	const unreadable = "it cannot be read: it has no form that this version knows"
	future := metav1.NewMicroTime(time.Now().AddDate(1000, 0, 0).Truncate(time.Second).Add(time.Microsecond))
	poison := func(name, kind, field string, value any, says string) act {
		poisoned := refused(name, writeField(kind, field, value), bySchema(says+": Invalid value"), byImporter(unreadable))
		poisoned.rest = kind == "PublishedEndpoints"
		return poisoned
	}
	ports := func(port any) []any { return []any{map[string]any{"protocol": "TCP", "port": port}} }
	return []act{
		harmless("a heartbeat from the future", writeHeartbeat(func(b *hubv1alpha1.Heartbeat) { b.Spec.RenewTime = future }),
			"no clocks are compared", othersContinue),
		harmless("a heartbeat with another cluster's UID",
			writeHeartbeat(func(b *hubv1alpha1.Heartbeat) { b.Spec.ClusterUID = "6d2f1c3e-7a52-4f0e-9a0b-6f2f6f6f6f6f" }),
			"it is compared within the member's own namespace only", othersContinue),
		refused("a second heartbeat", writeHeartbeat(func(b *hubv1alpha1.Heartbeat) { b.Name = "heartbeat2" }),
			bySchema("a member's namespace has one Heartbeat, named heartbeat")).
			otherwise("it counts as the one that the member has", othersContinue),
		refused("a heartbeat with a time that cannot be read",
			func(ctx context.Context, a *attempt) error {
				beat, err := withField(heartbeat(), "Heartbeat", "renewTime", "2026-01-01T00:00:00Z") // a date-time, but of no microseconds
				if err != nil {
					return err
				}
				beat.SetName("heartbeat")
				return a.beat(ctx, beat)
			},
			bySchema("spec.renewTime: Invalid value")).
			otherwise("it says nothing; those of the others are read", othersContinue),
		harmless("a field of a version to come", writeField("PublishedService", "gateway", "10.0.0.1"),
			"what the field says is not heeded", isServed),
		refused("a type of a version to come", writeService(func(s *published) { s.Spec.Type = "Gateway" }),
			bySchema(`spec.type: Unsupported value: "Gateway"`), byImporter(`"Gateway" is no type`)),
		refused("an affinity of a version to come", writeService(func(s *published) { s.Spec.SessionAffinity = "Cookie" }),
			bySchema(`spec.sessionAffinity: Unsupported value: "Cookie"`), byImporter(`"Cookie" is no session affinity`)),
		refused("a protocol of a version to come", writeService(func(s *published) { s.Spec.Ports[0].Protocol = "QUIC" }),
			bySchema(`spec.ports[0].protocol: Unsupported value: "QUIC"`), byImporter(`"QUIC" is no protocol`)),
		refusedPart("a family of a version to come", writeEndpoints(func(e *endpoints) { e.Spec.AddressType = "FQDN" }),
			bySchema(`spec.addressType: Unsupported value: "FQDN"`), byImporter("is no slice of family IPv4 or IPv6")),
		refused("a record of an older version, without families", writeService(func(s *published) { s.Spec.IPFamilies = nil }),
			bySchema("spec.ipFamilies: "), byImporter("[] are no IP families of a Service")),
		refused("10,000 hostnames", writeService(withHostnames(10_000, func(i int) string { return fmt.Sprint("db-", i) })),
			bySchema("spec.headless.hostnames: Too many"), byImporter("it has 10000 hostnames, more than 100")),
		refused("a hostname for all names", writeService(withHostnames(1, func(int) string { return "*" })),
			bySchema("spec.headless.hostnames[0].hostname in body should match"), byImporter(`hostname "*" is no DNS label`)),
		poison("a port beyond all numbers", "PublishedService", "ports", ports(int64(1)<<40+80), "spec.ports[0].port"),
		poison("a port that is a text", "PublishedEndpoints", "ports", ports("http"), "spec.ports[0].port"),
		poison("a service's name that is a map", "PublishedService", "service", map[string]any{}, "spec.service"),
		poison("a trigger that cannot be read", "PublishedEndpoints", "triggerTime", "2026-01-01T00:00:00Z", "spec.triggerTime"),
		poison("addresses that are numbers", "PublishedEndpoints", "groups",
			[]any{map[string]any{"addresses": []any{int64(10)}}}, "spec.groups[0].addresses[0]"),
		poison("an age that cannot be read", "PublishedService", "exportedAt", "2026-01-01t00:00:00z", "spec.exportedAt"),
		poison("endpoints that are no list", "PublishedEndpoints", "groups", map[string]any{"all": "of them"}, "spec.groups"),
		poison("labels that are a list", "PublishedService", "labels", []any{"team"}, "spec.labels"),
	}
}

// heartbeat returns a good one of the hostile member.
func heartbeat() *hubv1alpha1.Heartbeat { return world.Heartbeat("mallory") }

// writeHeartbeat writes a heartbeat that is changed.
func writeHeartbeat(change func(*hubv1alpha1.Heartbeat)) try {
	return func(ctx context.Context, a *attempt) error {
		beat := heartbeat()
		change(beat)
		return a.beat(ctx, beat)
	}
}

// beat creates or updates a heartbeat.
func (a *attempt) beat(ctx context.Context, beat client.Object) error {
	existing := &hubv1alpha1.Heartbeat{}
	if err := a.Get(ctx, client.ObjectKeyFromObject(beat), existing); err != nil {
		return errors.Join(client.IgnoreNotFound(err), a.Create(ctx, beat))
	}
	beat.SetResourceVersion(existing.ResourceVersion)
	return a.Update(ctx, beat)
}

// eldersSettingsStay checks that the older export of the shared service decides, though another one counts as well.
func eldersSettingsStay(t *testing.T, w *env, k key) {
	t.Helper()
	world.Eventually(t, func(ctx context.Context) error {
		found := &mcsv1beta1.ServiceImport{}
		if err := w.c.Get(ctx, k, found); err != nil {
			return err
		}
		if len(found.Status.Clusters) != 2 {
			return fmt.Errorf("exporters of %s: %+v", k, found.Status.Clusters)
		}
		return nil
	})
	w.witness(t)
	lab.Equal(t, fmt.Sprintf("%s has other settings", k), w.olderSettings, w.c.settings(t, k))
}

// withHostnames makes a record that of a headless service with hostnames.
func withHostnames(n int, hostname func(int) string) func(*published) {
	return func(s *published) {
		s.Spec.Type, s.Spec.SessionAffinity = "Headless", ""
		s.Spec.Headless = &hubv1alpha1.PublishedHeadless{PortGroups: []hubv1alpha1.PublishedPortGroup{{TargetPorts: slices.Repeat([]int32{80}, len(s.Spec.Ports))}}}
		for i := range n {
			s.Spec.Headless.Hostnames = append(s.Spec.Headless.Hostnames, hubv1alpha1.PublishedHostname{Hostname: hostname(i)})
		}
	}
}
