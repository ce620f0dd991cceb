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

// Refusals remembers what was refused of each service, so that it is told once and not at every look.
type Refusals struct {
	mu   sync.Mutex
	told map[clusterset.ServiceKey]string
}

// NewRefusals returns Refusals of which nothing has been told.
func NewRefusals() *Refusals { return &Refusals{told: map[clusterset.ServiceKey]string{}} }

// news notes what is refused of a service now, and reports whether that is something and has not been told.
func (r *Refusals) news(key clusterset.ServiceKey, text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.told[key] == text {
		return false
	}
	r.told[key] = text
	if text == "" {
		delete(r.told, key)
	}
	return text != ""
}

// announceRefusals says what other members wrote about a service that is not accepted, on its import, whether or not
// there is one.
func (r *Reconciler) announceRefusals(v view) {
	text := ""
	if err := errors.Join(v.known.Hub.Refused...); err != nil {
		text = err.Error()
	}
	if !r.Refusals.news(v.known.Key, text) {
		return
	}
	var regarding runtime.Object = &corev1.ObjectReference{
		APIVersion: mcsv1beta1.GroupVersion.String(), Kind: mcsv1beta1.ServiceImportKindName,
		Namespace: v.known.Key.Namespace, Name: v.known.Key.Name,
	}
	if v.serviceImport != nil {
		regarding = v.serviceImport
	}
	r.Events.Eventf(regarding, nil, corev1.EventTypeWarning, "RecordRefused", "Import",
		"%s", conditions.EventNote(text))
}
