// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/pkg/apply"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/conditions"
)

// refusalsOf returns what the API server refuses of an import, by the reasons, for its condition. Virtual IPs are named by their hostnames,
// because users do not know the names of their Services.
func refusalsOf(err error) []conditions.Refusal {
	var result []conditions.Refusal
	for _, failure := range apply.WriteErrors(err) {
		reason, part := apply.Cause(failure), partOf(failure.Object)
		i := slices.IndexFunc(result, func(r conditions.Refusal) bool { return r.Reason == reason })
		if i < 0 {
			i = len(result)
			result = append(result, conditions.Refusal{Reason: reason})
			if apierrors.IsForbidden(failure) {
				result[i].Next = "raise the quota, or change the rights or the policy that refuse it"
			}
		}
		if !slices.Contains(result[i].Parts, part) { // the Service and the slices of a virtual IP are one part
			result[i].Parts = append(result[i].Parts, part)
		}
	}
	if len(result) == 0 {
		return []conditions.Refusal{{Parts: []string{"the import"}, Reason: err.Error()}}
	}
	return result
}

// partOf names an object of an import.
func partOf(object client.Object) string {
	ip, isVirtual := caches.VirtualIP(object)
	switch {
	case isVirtual && ip.Hostname == "":
		return "endpoints without a hostname of cluster " + string(ip.Cluster)
	case isVirtual:
		return fmt.Sprintf("hostname %s of cluster %s", ip.Hostname, ip.Cluster)
	}
	return fmt.Sprintf("%s %s", clusterset.KindOf(object), client.ObjectKeyFromObject(object))
}
