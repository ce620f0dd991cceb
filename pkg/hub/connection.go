// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hub connects to the hub, reads the records of all members into a Store, and decides which records are missing and which are
// deleted (absence.go).
package hub

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/rewind"
)

// Connection keeps a Store up to date with the hub for as long as it runs, however often the hub goes away.
type Connection struct {
	store  *Store
	client client.WithWatch
	log    logr.Logger
	// changed is told whenever the hub becomes reachable or unreachable.
	changed func(Reachability)

	mu       sync.Mutex
	answered map[kind]bool
	broken   map[kind]error
	state    Reachability
}

// Reachability says whether the hub can be read.
type Reachability string

// Whether the hub can be read.
const (
	// Reachable: the last request for each kind went well.
	Reachable Reachability = "Reachable"
	// Unreachable: it did not, or there has been none yet.
	Unreachable Reachability = "Unreachable"
)

// Client returns a client for the hub that knows its kinds and can ask for tokens of ServiceAccounts, does not throttle
// itself (the API server's Priority and Fairness protects it), caches nothing and waits for no answer for good. It does not talk to the
// hub yet.
func Client(config *rest.Config) (client.WithWatch, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(hubv1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme), authenticationv1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return deadlines{next, requestDeadline} })
	mapper := meta.NewDefaultRESTMapper(nil)
	for kind := range scheme.KnownTypes(hubv1alpha1.GroupVersion) {
		mapper.Add(hubv1alpha1.GroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ServiceAccount"), meta.RESTScopeNamespace)
	// The mapper is fixed so that the agent starts, and learns what is wrong, while the hub is away or has no CRDs yet.
	return client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: mapper})
}

// NewConnection returns a Connection that fills store. changed is called with every change of reachability.
func NewConnection(store *Store, c client.WithWatch, log logr.Logger, changed func(Reachability)) *Connection {
	return &Connection{
		store: store, client: c, log: log, changed: changed,
		answered: map[kind]bool{}, broken: map[kind]error{}, state: Unreachable,
	}
}

// NeedLeaderElection returns false: a standby keeps its store warm.
func (c *Connection) NeedLeaderElection() bool { return false }

// Start reads from the hub until ctx ends. It never fails: what cannot be read is tried again.
func (c *Connection) Start(ctx context.Context) error {
	var group wait.Group
	group.StartWithContext(ctx, func(ctx context.Context) {
		c.reflect(ctx, kindMember, &hubv1alpha1.MemberList{}, &hubv1alpha1.Member{})
	})
	group.StartWithContext(ctx, func(ctx context.Context) {
		c.reflect(ctx, kindHeartbeat, &hubv1alpha1.HeartbeatList{}, &hubv1alpha1.Heartbeat{})
	})
	group.StartWithContext(ctx, func(ctx context.Context) {
		c.reflect(ctx, kindService, &hubv1alpha1.PublishedServiceList{}, &hubv1alpha1.PublishedService{})
	})
	group.StartWithContext(ctx, func(ctx context.Context) {
		c.reflect(ctx, kindEndpoints, &hubv1alpha1.PublishedEndpointsList{}, &hubv1alpha1.PublishedEndpoints{})
	})
	group.Wait()
	return nil
}

// reflect lists and watches one kind until ctx ends.
func (c *Connection) reflect(ctx context.Context, k kind, list client.ObjectList, object client.Object) {
	quiet := c.log.V(2) // what goes wrong is noted by the source, once
	reflector := cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(c.source(k, list), c.client), object, table{c.store, k},
		cache.ReflectorOptions{
			Name:   "hub/" + string(k),
			Logger: &quiet,
			// Short enough to be back soon after the hub is, with jitter so that not all members come at once: at the
			// longest 2.5 to 5 s.
			Backoff: &wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 6, Cap: 2500 * time.Millisecond},
		})
	reflector.RunWithContext(ctx)
}

// source returns how one kind is listed and watched, by one goroutine. What is listed first comes in one answer from the API
// server's cache: an agent that starts is mostly the only one, and a stream, decoded event by event, takes it longer. Later lists, which
// all members ask for at once where the hub was away, are streamed, as that spares its memory.
func (c *Connection) source(k kind, list client.ObjectList) *cache.ListWatch {
	listed := false
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			ctx, cancel := context.WithTimeout(ctx, listDeadline)
			defer cancel()
			into := list.DeepCopyObject().(client.ObjectList)
			err := c.client.List(ctx, into, &client.ListOptions{Raw: &options})
			c.note(k, err)
			listed = listed || err == nil
			return into, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			if !listed && options.SendInitialEvents != nil {
				return nil, errListFirst
			}
			watcher, err := c.client.Watch(ctx, list, &client.ListOptions{Raw: &options})
			c.note(k, err)
			return watcher, err
		},
	}
	return rewind.Source(source, func() {
		c.log.Info("the hub is back at an earlier state, as after a restore; reading everything anew", "kind", k)
	})
}

// errListFirst has a reflector list what it cannot have streamed.
var errListFirst = apierrors.NewMethodNotSupported(schema.GroupResource{Group: hubv1alpha1.GroupVersion.Group}, "stream")

// note records how a request for a kind went, and says so where that is news. When the hub is back, everything is looked at
// again: whoever could not write to it meanwhile is waiting to try once more, each service for itself and up to 10 s.
func (c *Connection) note(k kind, err error) {
	away, news := c.record(k, err)
	if away {
		c.store.Missed()
	}
	if news == Reachable {
		c.store.Refresh()
	}
}

// record records how a request for a kind went. It returns whether the hub is away, which one failure alone does not say, as a
// hub may be busy: the requests for all kinds have failed, or this one twice. news is the connection's state, where it is another.
func (c *Connection) record(k kind, err error) (away bool, news Reachability) {
	c.mu.Lock()
	defer c.mu.Unlock()
	previous := c.broken[k]
	c.answered[k], c.broken[k] = err == nil, err
	away = err != nil && (previous != nil || !slices.ContainsFunc(kinds[:], func(k kind) bool { return c.broken[k] == nil }))
	if err != nil && (previous == nil || previous.Error() != err.Error()) {
		c.log.Info("cannot read from the hub; what was last seen stays in force, trying again", "kind", k, "reason", err.Error())
	}
	state := Reachable
	for _, k := range kinds {
		if !c.answered[k] {
			state = Unreachable
		}
	}
	if state == c.state {
		return away, ""
	}
	c.state = state
	c.changed(state)
	if state == Reachable {
		c.log.Info("connected to the hub")
	}
	return away, state
}
