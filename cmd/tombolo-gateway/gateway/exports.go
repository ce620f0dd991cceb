// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/internal/export"
	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// withdrawalGrace is the time for which a service is served after its export was withdrawn: importers read that a little later, and may
// have another source of the service then.
const withdrawalGrace = 5 * time.Second

// exports knows which services this cluster exports, and which it has exported a moment ago (G3).
type exports struct {
	cache client.Reader
	// changed is called when open streams may have to end.
	changed func()

	mu    sync.RWMutex
	known map[clusterset.ServiceKey]exported
}

// exported is a service that is exported, or was until a moment ago.
type exported struct {
	grantedOnly bool
	// proxied is the ServiceExport's metadata if it has ports with a PROXY protocol header; nil if it has none (G14).
	proxied metav1.Object
	// until is the end of the grace after a withdrawal; zero while the service is exported.
	until time.Time
}

// observe notes the state of a ServiceExport, which is nil if it was deleted. A service that is withdrawn is served for withdrawalGrace, and
// then its streams end. If the hub's administrator no longer allows it, they end at once.
func (e *exports) observe(key clusterset.ServiceKey, found *mcsv1beta1.ServiceExport) {
	e.mu.Lock()
	defer e.mu.Unlock()
	before, was := e.known[key]
	now := before
	if found != nil {
		now.grantedOnly, now.proxied = clusterset.IsGrantedOnly(found), proxiedBy(found)
	}
	switch {
	case found != nil && isExported(found):
		now.until = time.Time{}
	case !was:
		return
	case found != nil && isForbidden(found):
		e.end(key)
		return
	case before.until.IsZero():
		now.until = time.Now().Add(withdrawalGrace)
		time.AfterFunc(withdrawalGrace, func() { e.expire(key) })
	}
	e.known[key] = now
	if was && now.grantedOnly != before.grantedOnly {
		e.changed()
	}
}

// expire ends a service whose grace is over, unless it is exported again.
func (e *exports) expire(key clusterset.ServiceKey) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if until := e.known[key].until; !until.IsZero() && !time.Now().Before(until) {
		e.end(key)
	}
}

// end ends the streams of a service. The caller holds the lock.
func (e *exports) end(key clusterset.ServiceKey) {
	delete(e.known, key)
	e.changed()
}

// refusal returns why a service is not served; nil if it is exported, or was a moment ago.
func (e *exports) refusal(ctx context.Context, key clusterset.ServiceKey) *wire.Refusal {
	if _, ok := e.get(key); ok {
		return nil
	}
	var export mcsv1beta1.ServiceExport // its event is maybe on its path
	if err := e.cache.Get(ctx, key, &export, client.UnsafeDisableDeepCopy); err != nil {
		return missing(key, err)
	}
	if !isExported(&export) {
		return notExported(key, "the ServiceExport is not valid, or the hub's administrator does not allow it")
	}
	return nil
}

// hasProxyHeader reports whether connections to a port of a service begin with a PROXY protocol header (G14). A service that was withdrawn a
// moment ago is as it was.
func (e *exports) hasProxyHeader(ctx context.Context, key clusterset.ServiceKey, port clusterset.Port) bool {
	if now, ok := e.get(key); ok {
		return now.proxied != nil && export.HasProxyHeader(now.proxied, port)
	}
	var found mcsv1beta1.ServiceExport
	return e.cache.Get(ctx, key, &found, client.UnsafeDisableDeepCopy) == nil && export.HasProxyHeader(&found, port)
}

// proxiedBy returns the metadata of an export that HasProxyHeader needs.
func proxiedBy(from *mcsv1beta1.ServiceExport) metav1.Object {
	text, ok := from.Annotations[clusterset.AnnotationProxyProtocol]
	if !ok {
		return nil
	}
	return &metav1.ObjectMeta{Annotations: map[string]string{clusterset.AnnotationProxyProtocol: text}}
}

// isGrantedOnly reports whether an export is for granted clients only, or was when it was withdrawn, or may be.
func (e *exports) isGrantedOnly(ctx context.Context, key clusterset.ServiceKey) bool {
	if now, ok := e.get(key); ok {
		return now.grantedOnly
	}
	var export mcsv1beta1.ServiceExport
	err := e.cache.Get(ctx, key, &export, client.UnsafeDisableDeepCopy)
	return err != nil || clusterset.IsGrantedOnly(&export)
}

func (e *exports) get(key clusterset.ServiceKey) (exported, bool) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	now, ok := e.known[key]
	return now, ok
}

// isExported reports whether an export is valid, and the hub's administrator allows it. It also is while a change is on its way to the hub,
// the hub refuses the change, or is not reached: other clusters import what the hub stores. For example, the hub refuses addresses of a
// member that has moved to another network until its policies have read the Member.
func isExported(export *mcsv1beta1.ServiceExport) bool {
	return meta.FindStatusCondition(export.Status.Conditions, string(mcsv1beta1.ServiceExportConditionReady)) != nil && !isForbidden(export) &&
		meta.IsStatusConditionTrue(export.Status.Conditions, string(mcsv1beta1.ServiceExportConditionValid))
}

// isForbidden reports whether the hub's administrator does not allow an export.
func isForbidden(export *mcsv1beta1.ServiceExport) bool {
	ready := meta.FindStatusCondition(export.Status.Conditions, string(mcsv1beta1.ServiceExportConditionReady))
	return ready != nil && ready.Reason == string(conditions.ReasonNotAllowed)
}
