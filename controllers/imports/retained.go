// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tombolo-mcs/tombolo/internal/apply"
	"github.com/tombolo-mcs/tombolo/internal/plan"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Limits of the retained addresses. maxRetained are about 80 KiB.
const (
	retention       = time.Hour
	maxRetained     = 1000
	retainConfigMap = "tombolo-retained-addresses"
)

// Retained stores the addresses of imports that do not exist for a while, so that they get them again within an hour: clients and DNS caches
// have the addresses (I5). They are in a ConfigMap of the agent's namespace, which leave deletes.
type Retained struct {
	Namespace string
	// Live reads from the API server.
	Live   client.Reader
	Writer apply.Writer
	Clock  clock.PassiveClock

	mu sync.Mutex
	// entries are those of the ConfigMap, after it was loaded, and added ones. changes counts the additions, and written are those in the ConfigMap.
	entries          map[clusterset.ServiceKey]retainedEntry
	changes, written int
	isLoaded         bool
	stored           *corev1.ConfigMap
	// last are the addresses of existing imports, of which only the namespace may be known when they are deleted with it.
	last map[clusterset.ServiceKey][]string

	// writing is held while the ConfigMap is written.
	writing sync.Mutex
}

// retainedEntry are the addresses of an import, until a time.
type retainedEntry struct {
	addresses []string
	until     time.Time
}

// of returns the retained addresses of an import without a ServiceImport.
func (r *Retained) of(ctx context.Context, key clusterset.ServiceKey) ([]string, error) {
	if r == nil {
		return nil, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.load(ctx); err != nil {
		return nil, err
	}
	if entry := r.entries[key]; entry.until.After(r.Clock.Now()) {
		return entry.addresses, nil
	}
	return nil, nil
}

// see stores the addresses of an existing import.
func (r *Retained) see(key clusterset.ServiceKey, addresses []string) {
	if r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.last == nil {
			r.last = map[clusterset.ServiceKey][]string{}
		}
		r.last[key] = addresses
	}
}

// seen returns the addresses of an import that existed and is not retained since.
func (r *Retained) seen(key clusterset.ServiceKey) []string {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last[key]
}

// retain stores the addresses of an import that is deleted. Callers at the same time share a write. A refused write is logged: a withdrawal does
// not wait for it, and the addresses are retained while the agent runs.
func (r *Retained) retain(ctx context.Context, key clusterset.ServiceKey, addresses []string) error {
	if r == nil {
		return nil
	}
	change := r.add(key, addresses)
	r.writing.Lock()
	defer r.writing.Unlock()
	desired, stored, changes, err := r.desired(ctx, change)
	if err != nil || desired == nil {
		return err
	}
	written, err := apply.Do(ctx, r.Writer, plan.ConfigMap(desired, stored))
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case apply.IsRefused(err):
		log.FromContext(ctx).Info("the addresses of imports that are deleted are retained until the agent ends only", "refused", err.Error())
	case err != nil:
		r.isLoaded = false // another replica may have written it
		return errors.New("store the retained addresses: " + err.Error())
	case len(written) > 0:
		r.stored = written[0]
	}
	r.written = changes
	return nil
}

// desired returns the desired and the stored ConfigMap, and the number of the last addition in the desired one; nil if the ConfigMap has a
// change already.
func (r *Retained) desired(ctx context.Context, change int) (desired, stored *corev1.ConfigMap, changes int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.written >= change {
		return nil, nil, 0, nil
	}
	if err := r.load(ctx); err != nil {
		return nil, nil, 0, err
	}
	desired = &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: retainConfigMap, Labels: map[string]string{clusterset.LabelManagedBy: clusterset.ManagedBy}},
		Data:       map[string]string{},
	}
	for key, entry := range r.entries {
		desired.Data[key.Namespace+"."+key.Name] = strings.Join(entry.addresses, ",") + " " + entry.until.UTC().Format(time.RFC3339)
	}
	return desired, r.stored, r.changes, nil
}

// add adds an entry, and returns the number of the addition.
func (r *Retained) add(key clusterset.ServiceKey, addresses []string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.entries == nil {
		r.entries = map[clusterset.ServiceKey]retainedEntry{}
	}
	r.entries[key] = retainedEntry{addresses, r.Clock.Now().Add(retention)}
	delete(r.last, key)
	r.shrink()
	r.changes++
	return r.changes
}

// shrink removes entries whose time has passed, and the oldest ones if there are too many.
func (r *Retained) shrink() {
	now := r.Clock.Now()
	maps.DeleteFunc(r.entries, func(_ clusterset.ServiceKey, e retainedEntry) bool { return !e.until.After(now) })
	if surplus := len(r.entries) - maxRetained; surplus > 0 {
		byAge := slices.SortedFunc(maps.Keys(r.entries), func(a, b clusterset.ServiceKey) int { return r.entries[a].until.Compare(r.entries[b].until) })
		for _, key := range byAge[:surplus] {
			delete(r.entries, key)
		}
	}
}

// load reads the ConfigMap, unless its content is known. Added entries stay. An entry that is not as an agent writes it is ignored.
func (r *Retained) load(ctx context.Context) error {
	if r.isLoaded {
		return nil
	}
	stored := &corev1.ConfigMap{}
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: retainConfigMap}, stored)
	switch {
	case client.IgnoreNotFound(err) == nil:
	case apply.IsRefused(err): // by the rights of an earlier version
		log.FromContext(ctx).Info("the addresses that an earlier agent has retained cannot be read", "refused", err.Error())
	default:
		return fmt.Errorf("read the retained addresses: %w", err)
	}
	if r.entries == nil {
		r.entries = map[clusterset.ServiceKey]retainedEntry{}
	}
	for name, text := range stored.Data {
		key, entry, ok := parseRetained(name, text)
		if _, isKnown := r.entries[key]; ok && !isKnown {
			r.entries[key] = entry
		}
	}
	r.shrink()
	r.isLoaded, r.stored = true, nil
	if err == nil {
		r.stored = stored
	}
	return nil
}

// parseRetained returns an entry of the ConfigMap; false if it is none.
func parseRetained(name, text string) (clusterset.ServiceKey, retainedEntry, bool) {
	namespace, service, _ := strings.Cut(name, ".")
	list, time3339, _ := strings.Cut(text, " ")
	until, err := time.Parse(time.RFC3339, time3339)
	addresses := strings.Split(list, ",")
	isAddress := func(a string) bool {
		_, err := netip.ParseAddr(a)
		return err == nil
	}
	isValid := err == nil && service != "" && len(addresses) <= 2 && !slices.ContainsFunc(addresses, func(a string) bool { return !isAddress(a) })
	return clusterset.ServiceKey{Namespace: namespace, Name: service}, retainedEntry{addresses, until}, isValid
}
