// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/internal/plan"
	"github.com/tombolo-mcs/tombolo/internal/render"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Refused is a change that was not made, although an API server has answered.
type Refused struct {
	Change plan.Change[plan.Object]
	Kind   RefusalKind
	// Reason is the answer of the API server, without the name of the object. Fields are the fields that it refuses.
	Reason string
	Fields []string
	// Err is the error of the write; nil if a watch event reports when the reason is gone.
	Err error
}

// RefusalKind says who refuses a change.
type RefusalKind string

const (
	// Unmanaged means that the object is not managed by Tombolo.
	Unmanaged RefusalKind = "unmanaged"
	// Forbidden means that a quota, a right, an admission policy or a webhook refuses the change.
	Forbidden RefusalKind = "forbidden"
	// Invalid means that the API server refuses the content, or the state of the cluster does not allow it.
	Invalid RefusalKind = "invalid"
	// Changed means that the API server has stored other values, because a policy or a webhook of the cluster changes them.
	Changed RefusalKind = "changed"
	// Terminating means that the object is being deleted, and waits for the finalizers of other controllers.
	Terminating RefusalKind = "terminating"
)

// next returns what a user can do about a refusal; empty if the reason says it.
func (k RefusalKind) next() string {
	switch k {
	case Forbidden:
		return "raise the quota, or change the rights or the policy that refuse it"
	case Changed:
		return "change the policy or the webhook of this cluster that changes it"
	case Terminating:
		return "find the controller of the finalizer, or remove the finalizer"
	case Unmanaged, Invalid:
	}
	return ""
}

// refusalsOf returns what is refused of an import, by the reasons, for its condition. Virtual IPs are named by their hostnames, because
// users do not know the names of their Services.
func refusalsOf(refused []Refused) []conditions.Refusal {
	var result []conditions.Refusal
	for _, r := range refused {
		part := partOf(r.Change.Object)
		i := slices.IndexFunc(result, func(c conditions.Refusal) bool { return c.Reason == r.Reason })
		if i < 0 {
			i = len(result)
			result = append(result, conditions.Refusal{Reason: r.Reason, Next: r.Kind.next()})
		}
		if !slices.Contains(result[i].Parts, part) { // the Service and the slices of a virtual IP are one part
			result[i].Parts = append(result[i].Parts, part)
		}
	}
	return result
}

// partOf names an object of an import.
func partOf(object plan.Object) string {
	ip, isVirtual := render.VirtualIPOf(object)
	switch {
	case isVirtual && ip.Hostname == "":
		return "endpoints without a hostname of cluster " + string(ip.Cluster)
	case isVirtual:
		return fmt.Sprintf("hostname %s of cluster %s", ip.Hostname, ip.Cluster)
	}
	return fmt.Sprintf("%s %s/%s", clusterset.KindOf(object), object.GetNamespace(), object.GetName())
}

// Err returns the errors of the refused changes, from which the time of the next attempt follows; nil if watch events report when the reasons
// are gone.
func (p Plan) Err() error {
	var all []error
	for _, r := range p.Refused {
		all = append(all, r.Err)
	}
	return errors.Join(all...)
}

// possible returns the changes that may succeed, and those that cannot: a refused change is not tried again before the import is gathered
// again, and no object is created while another one of its name is being deleted.
func (o Observed) possible(changes []plan.Change[plan.Object]) (result []plan.Change[plan.Object], refused []Refused) {
	existing := map[Name]plan.Object{}
	if len(changes) > 0 {
		for _, object := range o.All() {
			existing[NameOf(object)] = object
		}
	}
	for _, change := range changes {
		if waits := waiting(change, existing[NameOf(change.Object)]); waits != nil {
			refused = append(refused, *waits)
			continue
		}
		i := slices.IndexFunc(o.Refused, func(r Refused) bool { return plan.IsSame(r.Change, change) })
		if i >= 0 {
			refused = append(refused, o.Refused[i])
			continue
		}
		result = append(result, change)
	}
	return result, refused
}

// waiting returns why a change waits until the existing object of its name is deleted; nil if it does not wait.
func waiting(change plan.Change[plan.Object], existing plan.Object) *Refused {
	if change.Verb != plan.Delete && change.Verb != plan.Create || existing == nil || change.Verb == plan.Delete && existing.GetDeletionTimestamp() == nil {
		return nil
	}
	if change.Verb == plan.Create && existing.GetDeletionTimestamp() == nil && (len(existing.GetFinalizers()) == 0 || clusterset.ManagerOf(existing) != clusterset.ManagedBy) {
		return nil // it is deleted before it is created
	}
	return &Refused{Change: change, Kind: Terminating, Reason: "it is being deleted, and waits for its finalizers " + strings.Join(existing.GetFinalizers(), ", ")}
}

// All returns all existing objects.
func (e Existing) All() []plan.Object {
	var result []plan.Object
	if e.ServiceImport != nil {
		result = append(result, e.ServiceImport)
	}
	for _, list := range [][]*corev1.Service{e.Services, e.VirtualServices} {
		for _, s := range list {
			result = append(result, s)
		}
	}
	for _, s := range slices.Concat(e.Mirrored, e.VirtualSlices) {
		result = append(result, s)
	}
	return result
}
