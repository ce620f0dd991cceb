// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/controllers/sources"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/export"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/ports"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/reach"
	"github.com/tombolo-mcs/tombolo/pkg/hub"
	"github.com/tombolo-mcs/tombolo/pkg/liveness"
	"github.com/tombolo-mcs/tombolo/pkg/render"
	"github.com/tombolo-mcs/tombolo/pkg/route"
)

// view is the input of the decision about one service.
type view struct {
	// namespaceState is the state of the service's namespace (spec I1, E8).
	namespaceState namespaceState
	sources        sources.Sources
	localSlices    []clusterset.Slice
	// localFamilies are the IP families of this cluster's Services.
	localFamilies []corev1.IPFamily
	// unsupported are the settings that this cluster's API server does not support.
	unsupported map[clusterset.Setting]bool
	// metadataDomains are the domains whose labels and annotations are imported.
	metadataDomains []string
	// missing are the imported records that the hub lacks and whose deletion is not confirmed.
	missing map[clusterset.ClusterID]hub.Missing
	// states are the states of the other exporters, and policies the policies for silent ones.
	states   map[clusterset.ClusterID]liveness.State
	policies liveness.Policies
	// routing decides which sources serve.
	routing routing

	// path says how this cluster reaches the other exporters, and obstacles why it cannot reach some of them.
	path      map[clusterset.ClusterID]route.Path
	obstacles []error
	// headless are the exports that the import reaches, or could reach, through virtual IPs.
	headless map[clusterset.ClusterID]clusterset.Export
	// gateways are the EndpointSlices of this cluster's gateways, with those to use for each source cluster.
	gateways map[clusterset.ClusterID][]clusterset.Slice
	// ports are the listening ports of this cluster's gateways for the service, and closed those on which a gateway does not listen.
	ports  map[ports.Owner]int32
	closed reach.Closed
	// unopened are the owners on whose ports no gateway listens that can be used for them, and opening those that got their ports so lately
	// that one soon may. portsAfter is the time until then, or until more ports may be free; 0 if there is nothing to wait for.
	unopened, opening sets.Set[ports.Owner]
	portsAfter        time.Duration

	// serviceImport is the existing ServiceImport, nil if there is none. It may be unmanaged.
	serviceImport *mcsv1beta1.ServiceImport
	// services are the Services with one of the two possible names of the derived Service. They may be unmanaged.
	services []*corev1.Service
	// takenNames are those of the two names that other imports of the namespace have recorded.
	takenNames []string
	// selection is the selector of the existing derived Service; nil if it has none, or must not have one (spec D8).
	selection *clusterset.Selection
	// virtualIPs are the virtual IPs that the import has or gets, and virtualServices and virtualSlices those that exist (G9). The slices are
	// condensed as the mirrored ones.
	virtualIPs      []clusterset.VirtualIP
	virtualServices []*corev1.Service
	virtualSlices   []*discoveryv1.EndpointSlice
	// mirrored are the existing mirrored slices, condensed as in the cache. They must not be changed.
	mirrored []*discoveryv1.EndpointSlice
}

// isObstructed reports whether an unmanaged ServiceImport has the import's name.
func (v view) isObstructed() bool {
	return v.serviceImport != nil && !clusterset.IsManaged(v.serviceImport.Labels)
}

// namespaceState says whether services of a namespace are imported.
type namespaceState string

const (
	// namespaceAllowed: services are imported.
	namespaceAllowed namespaceState = "allowed"
	// namespaceDenied: no services are imported. Existing imports are deleted.
	namespaceDenied namespaceState = "denied"
	// namespaceNotFound: the namespace does not exist, or is being deleted.
	namespaceNotFound namespaceState = "not found"
)

// gather reads the input of the decision from caches. If the namespace is denied, it reads only existing objects.
func (r *Reconciler) gather(ctx context.Context, key clusterset.ServiceKey) (view, error) {
	state, err := r.namespaceState(ctx, key.Namespace)
	if err != nil {
		return view{}, err
	}
	if state != namespaceAllowed {
		r.Sources.Hub.RemoveWaiting(key)
		if _, err := r.GatewayPorts.assign(ctx, key, nil); err != nil {
			return view{}, err
		}
		if _, err := r.VirtualIPs.assign(ctx, key, nil, nil); err != nil {
			return view{}, err
		}
	}
	if state == namespaceNotFound {
		return view{namespaceState: state}, nil
	}
	if state == namespaceDenied {
		v := view{namespaceState: state, sources: sources.Sources{Key: key}}
		err = r.readExisting(ctx, key, &v)
		return v, err
	}
	v := view{namespaceState: state, sources: sources.Sources{Key: key}, localFamilies: r.IPFamilies, unsupported: r.Unsupported.settings(), metadataDomains: r.MetadataDomains, policies: r.Policies}
	if err := r.readExisting(ctx, key, &v); err != nil {
		return view{}, err
	}
	// Read the existing objects first, because ReadImport compares them with one state of the hub.
	if v.sources, err = r.Sources.ReadImport(ctx, key, v.imported(r.Sources.Hub)); err != nil {
		return view{}, err
	}
	v.missing = v.sources.Hub.Missing
	if v.knowsOwnExport(r.Sources.Cluster) {
		delete(v.missing, r.Sources.Cluster)
	}
	if v.sources.Local != nil {
		if v.localSlices, err = r.Sources.LocalSlices(ctx, key); err != nil {
			return view{}, err
		}
		for i := range v.localSlices {
			v.localSlices[i].Local = true
		}
	}
	v.choosePaths()
	used, unused := v.wantedVirtualIPs()
	if v.virtualIPs, err = r.VirtualIPs.assign(ctx, key, used, unused); err != nil {
		return view{}, err
	}
	wanted := v.wantedPorts()
	if v.ports, err = r.GatewayPorts.assign(ctx, key, wanted); err != nil {
		return view{}, err
	}
	if slices.ContainsFunc(wanted, func(owner ports.Owner) bool { return v.ports[owner] == 0 }) {
		v.portsAfter = r.GatewayPorts.retryAfter()
	}
	v.readStates(r.State)
	v.chooseGateways(r.GatewayReach)
	v.readOpenPorts(r.GatewayReach, r.GatewayPorts)
	v.routing, err = r.routing(ctx, v)
	return v, err
}

// readStates reads whether the sources are alive.
func (v *view) readStates(state func(clusterset.ClusterID) liveness.State) {
	v.states = map[clusterset.ClusterID]liveness.State{}
	for _, export := range v.sources.Hub.Exports {
		v.states[export.Cluster] = state(export.Cluster)
	}
	for id := range v.missing {
		v.states[id] = state(id)
	}
}

// readExisting reads the existing objects of the import.
func (r *Reconciler) readExisting(ctx context.Context, key clusterset.ServiceKey, v *view) error {
	serviceImport := &mcsv1beta1.ServiceImport{}
	exists, err := caches.Get(ctx, r.Member, key, serviceImport)
	if err != nil {
		return err
	}
	if exists {
		v.serviceImport = serviceImport
	}
	for _, name := range []string{clusterset.ShortDerivedName(key.Name), clusterset.LongDerivedName(key.Name)} {
		service := &corev1.Service{}
		exists, err := caches.Get(ctx, r.Member, client.ObjectKey{Namespace: key.Namespace, Name: name}, service)
		if err != nil {
			return err
		}
		if exists {
			v.services = append(v.services, service)
		}
	}
	for _, service := range v.derivedServices() {
		if r.Sources.Selector == clusterset.OldestSelector {
			v.selection = export.Selection(service)
		}
	}
	recorded, err := r.recordedByOthers(ctx, key)
	if err != nil {
		return err
	}
	v.takenNames = recorded
	list := &discoveryv1.EndpointSliceList{}
	if err := r.Member.List(ctx, list, client.InNamespace(key.Namespace), client.MatchingFields{caches.IndexMirror: key.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list mirrored EndpointSlices of %s: %w", key, err)
	}
	v.mirrored = caches.Pointers(list.Items)
	return r.readVirtualIPs(ctx, key, v)
}

// recordedByOthers returns the short name of a service's derived Service if another import has recorded it.
func (r *Reconciler) recordedByOthers(ctx context.Context, key clusterset.ServiceKey) ([]string, error) {
	short := clusterset.ShortDerivedName(key.Name)
	list := &mcsv1beta1.ServiceImportList{}
	if err := r.Member.List(ctx, list, client.InNamespace(key.Namespace), client.MatchingFields{caches.IndexDerived: short}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list ServiceImports whose derived Service is %s: %w", short, err)
	}
	for _, other := range list.Items {
		if other.Name != key.Name {
			return []string{short}, nil
		}
	}
	return nil, nil
}

// imported returns what this cluster has imported: the clusters that the import's status or its slices name, with the IDs of the
// slices. If they name no cluster, any member may be the exporter.
func (v view) imported(store *hub.Store) hub.Imported {
	have := hub.Imported{}
	if i := v.managedImport(); i != nil {
		for _, status := range i.Status.Clusters {
			have[clusterset.ClusterID(status.Cluster)] = nil
		}
	}
	for _, slice := range v.mirrored {
		source := keyOf(slice)
		ids := have[source.cluster]
		if !isGatewaySlice(slice) { // the hub has no record of a slice of gateways
			ids = append(ids, source.id)
		}
		have[source.cluster] = ids
	}
	for ip := range v.existingVirtualIPs() {
		if _, known := have[ip.Cluster]; !known {
			have[ip.Cluster] = nil
		}
	}
	if v.hasUnknownExporters() {
		for _, id := range store.Members() {
			have[id] = nil
		}
	}
	return have
}

// hasUnknownExporters reports whether a part of the import exists but names no exporter: a derived Service whose ServiceImport was
// deleted, or a ServiceImport that was restored from it.
func (v view) hasUnknownExporters() bool {
	i := v.managedImport()
	return len(v.mirrored) == 0 && (i != nil && len(i.Status.Clusters) == 0 || i == nil && len(v.derivedServices()) > 0)
}

// managedImport returns the ServiceImport if it is managed, else nil.
func (v view) managedImport() *mcsv1beta1.ServiceImport {
	if v.serviceImport == nil || !clusterset.IsManaged(v.serviceImport.Labels) {
		return nil
	}
	return v.serviceImport
}

// derivedServices returns the managed derived Services of the import: one, unless its name was changed by hand.
func (v view) derivedServices() []*corev1.Service {
	var ours []*corev1.Service
	for _, service := range v.services {
		if render.IsDerivedFor(service, v.sources.Key.Name) {
			ours = append(ours, service)
		}
	}
	return ours
}

// derivedNameTaken reports whether the Service with the name that the import has recorded is not its derived Service.
func (v view) derivedNameTaken() bool {
	recorded := v.serviceImport.Annotations[clusterset.AnnotationDerivedService]
	return slices.ContainsFunc(v.services, func(s *corev1.Service) bool {
		return s.Name == recorded && !render.IsDerivedFor(s, v.sources.Key.Name)
	})
}

func sourceOf(slice *discoveryv1.EndpointSlice) clusterset.ClusterID {
	return clusterset.ClusterID(slice.Labels[mcsv1beta1.LabelSourceCluster])
}
