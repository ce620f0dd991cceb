// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	framework "github.com/tombolo-mcs/tombolo/e2e/framework/world"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// awaitExport waits until a condition of a ServiceExport has this status and reason, and returns its message.
func (p *place) awaitExport(name string, kind mcsv1beta1.ServiceExportConditionType, status metav1.ConditionStatus, reason mcsv1beta1.ServiceExportConditionReason) string {
	p.Helper()
	var message string
	var e mcsv1beta1.ServiceExport
	p.shows(fmt.Sprintf("ServiceExport %s in cluster %s to be %s=%s/%s", name, p.cluster.Name, kind, status, reason), name, &e, func() error {
		c := meta.FindStatusCondition(e.Status.Conditions, string(kind))
		if c == nil || c.Status != status || c.Reason != string(reason) {
			return fmt.Errorf("its conditions are %+v", e.Status.Conditions)
		}
		message = c.Message
		return nil
	})
	return message
}

// awaitImport waits until a service is imported from these clusters, which are sorted, and no other, and returns the import.
func (p *place) awaitImport(name string, exporters ...string) *mcsv1beta1.ServiceImport {
	p.Helper()
	var imported mcsv1beta1.ServiceImport
	p.eventually(fmt.Sprintf("the import of %s from %v in cluster %s", name, exporters, p.cluster.Name), func(ctx context.Context) error {
		imported = mcsv1beta1.ServiceImport{}
		if err := p.client.Get(ctx, p.key(name), &imported); err != nil {
			return err
		}
		var got []string
		for _, c := range imported.Status.Clusters {
			got = append(got, c.Cluster)
		}
		if !slices.Equal(got, exporters) || !meta.IsStatusConditionTrue(imported.Status.Conditions, string(mcsv1beta1.ServiceImportConditionReady)) {
			return fmt.Errorf("its status is %+v", imported.Status)
		}
		return nil
	})
	return &imported
}

// remains returns what a cluster has of an import, or of all if none is named: ServiceImports, derived Services and EndpointSlices.
func (p *place) remains(ctx context.Context, name string) ([]string, error) {
	var found []string
	err := framework.Each(ctx, p.client, framework.OfImports(), func(o client.Object) error {
		service := o.GetLabels()[mcsv1beta1.LabelServiceName]
		if _, isImport := o.(*mcsv1beta1.ServiceImport); isImport {
			service = o.GetName()
		}
		if service != "" && (name == "" || name == service) {
			found = append(found, fmt.Sprintf("%T %s", o, o.GetName()))
		}
		return nil
	}, client.InNamespace(p.namespace))
	return found, err
}

func (p *place) mirrored(ctx context.Context, name string) ([]discoveryv1.EndpointSlice, error) {
	var list discoveryv1.EndpointSliceList
	err := p.client.List(ctx, &list, client.InNamespace(p.namespace), client.MatchingLabels{mcsv1beta1.LabelServiceName: name})
	return list.Items, err
}

// awaitGone waits until nothing is left of an import in this cluster, its name included. The question to DNS is one that no
// cache has an answer to: it was not asked before.
func (p *place) awaitGone(name string) {
	p.Helper()
	p.awaitNothingOf(name)
	p.awaitNoName(name)
}

// awaitNothingOf waits until this cluster has no object of an import, or of all if none is named.
func (p *place) awaitNothingOf(name string) {
	p.Helper()
	p.eventually("the end of imports ("+cmp.Or(name, "all")+") in cluster "+p.cluster.Name, func(ctx context.Context) error {
		found, err := p.remains(ctx, name)
		if err == nil && len(found) > 0 {
			err = fmt.Errorf("there are still %v", found)
		}
		return err
	})
}

// awaitNoName waits until the port http of a service has no name in the clusterset.
func (p *place) awaitNoName(name string) {
	p.Helper()
	p.eventually("the end of the name of "+name+" in cluster "+p.cluster.Name, func(context.Context) error {
		if r := p.resolve("SRV", "_http._tcp."+p.name(name)); r.Rcode != "NXDOMAIN" {
			return fmt.Errorf("DNS says %+v", r)
		}
		return nil
	})
}

// awaitRecordsDeleted waits until the hub has no record of a service.
func (s *scene) awaitRecordsDeleted(name string) {
	s.Helper()
	s.eventually("the hub to delete the records of "+name, func(ctx context.Context) error {
		records := []client.ObjectList{&hubv1alpha1.PublishedServiceList{}, &hubv1alpha1.PublishedEndpointsList{}}
		return framework.Each(ctx, s.clients[s.Hub.Name], records, func(r client.Object) error {
			if strings.HasPrefix(r.GetName()+".", s.namespace+"."+name+".") {
				return fmt.Errorf("there is %T %s/%s", r, r.GetNamespace(), r.GetName())
			}
			return nil
		})
	})
}
