// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"errors"
	"maps"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// maxUnknown bounds how many settings are remembered: what members write is without end.
const maxUnknown = 1000

// Unknown remembers which settings this cluster's API server does not know, so that each is tried once in the life of
// an agent, not at every look. An upgraded API server gets a new try when the agent is restarted.
type Unknown struct {
	mu sync.Mutex
	// all is replaced, never changed: views hold it.
	all map[clusterset.Setting]bool
}

// NewUnknown returns an Unknown of an API server that is taken to know everything.
func NewUnknown() *Unknown { return &Unknown{} }

// settings returns the settings that the API server does not know.
func (u *Unknown) settings() map[clusterset.Setting]bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.all
}

// learn adds settings that the API server does not know. Where they become too many, the others are forgotten and will
// be tried again.
func (u *Unknown) learn(settings []clusterset.Setting) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.all)+len(settings) > maxUnknown {
		u.all = nil
	}
	u.all = with(u.all, settings)
}

// with returns a set of settings with some more.
func with(set map[clusterset.Setting]bool, more []clusterset.Setting) map[clusterset.Setting]bool {
	result := map[clusterset.Setting]bool{}
	maps.Copy(result, set)
	for _, setting := range more {
		result[setting] = true
	}
	return result
}

// fieldsOf returns the fields because of which an API server refused an object as invalid.
func fieldsOf(err error) []string {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	var fields []string
	for _, cause := range status.Status().Details.Causes {
		fields = append(fields, cause.Field)
	}
	return fields
}

// announceLeftOut says, once for each import, what it does without.
func (r *Reconciler) announceLeftOut(before, after *mcsv1beta1.ServiceImport, reason, text string) {
	if text != "" && strings.Contains(readyMessage(after), text) && !strings.Contains(readyMessage(before), text) {
		r.Events.Eventf(after, nil, corev1.EventTypeWarning, reason, "Import", "%s", text)
	}
}

func readyMessage(serviceImport *mcsv1beta1.ServiceImport) string {
	if ready := meta.FindStatusCondition(serviceImport.Status.Conditions, string(mcsv1beta1.ServiceImportConditionReady)); ready != nil {
		return ready.Message
	}
	return ""
}
