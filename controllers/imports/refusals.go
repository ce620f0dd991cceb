// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"errors"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/conditions"
)

// Refusals stores the last reported refusals of each service, so that each is reported once.
type Refusals struct {
	mu       sync.Mutex
	reported map[clusterset.ServiceKey]string
}

// NewRefusals returns empty Refusals.
func NewRefusals() *Refusals { return &Refusals{reported: map[clusterset.ServiceKey]string{}} }

// isNew stores the refusals of a service, and reports whether they are new and not empty.
func (r *Refusals) isNew(key clusterset.ServiceKey, text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reported[key] == text {
		return false
	}
	r.reported[key] = text
	if text == "" {
		delete(r.reported, key)
	}
	return text != ""
}

// announceRefusals sends an Event with the refused records of a service. It regards the ServiceImport, even if that does not exist.
func (r *Reconciler) announceRefusals(v view) {
	text := ""
	if err := errors.Join(v.sources.Hub.Refused...); err != nil {
		text = err.Error()
	}
	if !r.Refusals.isNew(v.sources.Key, text) {
		return
	}
	var regarding runtime.Object = &corev1.ObjectReference{
		APIVersion: mcsv1beta1.GroupVersion.String(), Kind: mcsv1beta1.ServiceImportKindName,
		Namespace: v.sources.Key.Namespace, Name: v.sources.Key.Name,
	}
	if v.serviceImport != nil {
		regarding = v.serviceImport
	}
	r.Events.Eventf(regarding, nil, corev1.EventTypeWarning, "RecordRefused", "Import",
		"%s", conditions.EventNote(text))
}
