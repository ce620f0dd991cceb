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

	"github.com/tombolo-mcs/tombolo/pkg/apply"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/plan"
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
	// entries are nil until they are read. changes counts their changes.
	entries map[clusterset.ServiceKey]retainedEntry
	changes int
	// last are the addresses of existing imports, of which only the namespace may be known when they are deleted with it.
	last map[clusterset.ServiceKey][]string

	// writing is held while the ConfigMap is written. stored is the ConfigMap, and written the changes that it contains.
	writing sync.Mutex
	stored  *corev1.ConfigMap
	written int
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

// see stores the addresses of an existing import, and returns the ones that it had before.
func (r *Retained) see(key clusterset.ServiceKey, addresses []string) []string {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.last[key]
	if r.last == nil {
		r.last = map[clusterset.ServiceKey][]string{}
	}
	if r.last[key] = addresses; len(addresses) == 0 {
		delete(r.last, key)
	}
	return before
}

// retain stores the addresses of an import that is deleted. Callers at the same time share a write. A refused write is logged: a withdrawal does
// not wait for it, and the addresses are retained while the agent runs.
func (r *Retained) retain(ctx context.Context, key clusterset.ServiceKey, addresses []string) error {
	if r == nil {
		return nil
	}
	change, err := r.add(ctx, key, addresses)
	if err != nil {
		return err
	}
	r.writing.Lock()
	defer r.writing.Unlock()
	if r.written >= change {
		return nil
	}
	data, changes := r.data()
	desired := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: retainConfigMap, Labels: map[string]string{clusterset.LabelManagedBy: clusterset.ManagedBy}},
		Data:       data,
	}
	written, err := apply.Do(ctx, r.Writer, plan.ConfigMap(desired, r.stored))
	switch {
	case apply.IsRefused(err):
		log.FromContext(ctx).Info("the addresses of imports that are deleted are retained until the agent ends only", "refused", err.Error())
	case err != nil:
		r.forget() // another replica may have written it
		return errors.New("store the retained addresses: " + err.Error())
	case len(written) > 0:
		r.stored = written[0]
	}
	r.written = changes
	return nil
}

// forget has the entries read again.
func (r *Retained) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries, r.stored = nil, nil
}

// add adds an entry, and returns the number of its change. Entries whose time has passed are removed, and the oldest if there are too many.
func (r *Retained) add(ctx context.Context, key clusterset.ServiceKey, addresses []string) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.load(ctx); err != nil {
		return 0, err
	}
	now := r.Clock.Now()
	maps.DeleteFunc(r.entries, func(_ clusterset.ServiceKey, e retainedEntry) bool { return !e.until.After(now) })
	r.entries[key] = retainedEntry{addresses, now.Add(retention)}
	if len(r.entries) > maxRetained {
		oldest := slices.MinFunc(slices.Collect(maps.Keys(r.entries)), func(a, b clusterset.ServiceKey) int { return r.entries[a].until.Compare(r.entries[b].until) })
		delete(r.entries, oldest)
	}
	r.changes++
	return r.changes, nil
}

// data returns the content of the ConfigMap, and the number of the last change in it.
func (r *Retained) data() (map[string]string, int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	result := map[string]string{}
	for key, entry := range r.entries {
		result[key.Namespace+"."+key.Name] = strings.Join(entry.addresses, ",") + " " + entry.until.UTC().Format(time.RFC3339)
	}
	return result, r.changes
}

// load reads the entries once. An entry that is not as an agent writes it is ignored.
func (r *Retained) load(ctx context.Context) error {
	if r.entries != nil {
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
	r.entries = map[clusterset.ServiceKey]retainedEntry{}
	for name, text := range stored.Data {
		if key, entry, ok := parseRetained(name, text); ok && len(r.entries) < maxRetained {
			r.entries[key] = entry
		}
	}
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
