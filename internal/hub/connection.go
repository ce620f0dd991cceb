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

	"github.com/tombolo-mcs/tombolo/internal/rewind"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// Connection keeps a Store up to date with the hub. It reconnects until it is stopped.
type Connection struct {
	store  *Store
	client client.WithWatch
	log    logr.Logger
	// changed is called whenever the hub becomes reachable or unreachable.
	changed func(Reachability)

	mu         sync.Mutex
	succeeded  map[kind]bool
	lastErrors map[kind]error
	state      Reachability
	// since is the time of the last change of the state.
	since time.Time
}

// Reachability is the state of a Connection.
type Reachability string

// The states of a Connection.
const (
	// Reachable: the last request for each kind has succeeded.
	Reachable Reachability = "Reachable"
	// Unreachable: a last request has failed, or no request was made yet.
	Unreachable Reachability = "Unreachable"
)

// Client returns a client for the kinds of the hub and for tokens of ServiceAccounts. It has no cache and no rate limit (the API
// server's Priority and Fairness limits it), and each request has a deadline. Client does not connect to the hub.
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
	mapper.Add(definitions.WithKind("CustomResourceDefinition"), meta.RESTScopeRoot)
	gateways := hubv1alpha1.GroupVersion.WithResource(string(kindGateway)) // the mapper's own plural is "publishedgatewaies"
	mapper.AddSpecific(hubv1alpha1.GroupVersion.WithKind("PublishedGateway"), gateways, gateways, meta.RESTScopeNamespace)
	// The mapper is fixed, so that the agent can start if the hub is unreachable or has no CRDs yet.
	return client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: mapper})
}

// NewConnection returns a Connection that writes store. changed is called with every change of reachability.
func NewConnection(store *Store, c client.WithWatch, log logr.Logger, changed func(Reachability)) *Connection {
	return &Connection{
		store: store, client: c, log: log, changed: changed,
		succeeded: map[kind]bool{}, lastErrors: map[kind]error{}, state: Unreachable, since: time.Now(),
	}
}

// Unreached returns the time since which the hub is not reached; zero if it is.
func (c *Connection) Unreached() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == Reachable {
		return time.Time{}
	}
	return c.since
}

// NeedLeaderElection returns false: a replica that does not lead keeps its store up to date.
func (c *Connection) NeedLeaderElection() bool { return false }

// Start reads from the hub until ctx ends, and returns nil. Failed requests are retried.
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
	group.StartWithContext(ctx, func(ctx context.Context) {
		c.reflect(ctx, kindGateway, &hubv1alpha1.PublishedGatewayList{}, &hubv1alpha1.PublishedGateway{})
	})
	group.Wait()
	return nil
}

// reflect lists and watches one kind until ctx ends.
func (c *Connection) reflect(ctx context.Context, k kind, list client.ObjectList, object client.Object) {
	quiet := c.log.V(2) // recordResult logs each new error once
	// At most 2.5 to 5 s, so that the agent reconnects soon after an outage; the jitter spreads the members.
	backoff := wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 6, Cap: 2500 * time.Millisecond}
	if k == kindGateway { // an earlier version of the hub does not have the kind
		backoff.Steps, backoff.Cap = 9, 30*time.Second
	}
	reflector := cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(c.source(k, list), c.client), object, table{c.store, k},
		cache.ReflectorOptions{
			Name: "hub/" + string(k), Logger: &quiet, Backoff: &backoff,
		})
	reflector.RunWithContext(ctx)
}

// source returns the list and watch functions of one kind, for one goroutine. The first list is not streamed: a response from the API
// server's cache is faster to decode. Later lists are streamed, which saves memory on the hub when all members
// reconnect after an outage.
func (c *Connection) source(k kind, list client.ObjectList) *cache.ListWatch {
	listed := false
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			ctx, cancel := context.WithTimeout(ctx, listDeadline)
			defer cancel()
			into := list.DeepCopyObject().(client.ObjectList)
			err := c.client.List(ctx, into, &client.ListOptions{Raw: &options, Limit: options.Limit, Continue: options.Continue}) // the client ignores those in Raw
			if err != nil || !rewind.IsCheck(options) {
				c.handleResult(k, err)
				listed = listed || err == nil
			}
			return into, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			if !listed && options.SendInitialEvents != nil {
				return nil, errListFirst
			}
			watcher, err := c.client.Watch(ctx, list, &client.ListOptions{Raw: &options})
			c.handleResult(k, err)
			return watcher, err
		},
	}
	return rewind.Source(source, func() {
		c.log.Info("the hub is at an earlier state, as after a restore; listing again", "kind", k)
	})
}

// errListFirst makes a reflector list the objects instead of streaming them.
var errListFirst = apierrors.NewMethodNotSupported(schema.GroupResource{Group: hubv1alpha1.GroupVersion.Group}, "stream")

// handleResult processes the result of a request for a kind. When the hub becomes reachable, it enqueues all services: otherwise a
// service whose write has failed waits up to 10 s for its next attempt.
func (c *Connection) handleResult(k kind, err error) {
	unreachable, changed := c.recordResult(k, err)
	if unreachable {
		c.store.MarkUnreachable()
	}
	if changed == Reachable {
		c.store.Refresh()
	}
}

// recordResult stores the result of a request for a kind. The hub is unreachable if the last requests for all kinds have failed, or
// the last two for this kind: a busy hub may refuse a single request. changed is the new state of the connection, or empty if it has
// not changed.
func (c *Connection) recordResult(k kind, err error) (unreachable bool, changed Reachability) {
	c.mu.Lock()
	defer c.mu.Unlock()
	previous := c.lastErrors[k]
	c.succeeded[k], c.lastErrors[k] = err == nil, err
	if err != nil && (previous == nil || previous.Error() != err.Error()) {
		c.log.Info("cannot read from the hub; retrying. Imports stay as they are", "kind", k, "reason", err.Error())
	}
	if k == kindGateway { // a hub of an earlier version does not have the kind
		return false, ""
	}
	unreachable = err != nil && (previous != nil || !slices.ContainsFunc(kinds[:], func(k kind) bool { return c.lastErrors[k] == nil }))
	state := Reachable
	for _, k := range kinds {
		if !c.succeeded[k] {
			state = Unreachable
		}
	}
	if state == c.state {
		return unreachable, ""
	}
	c.state, c.since = state, time.Now()
	c.changed(state)
	if state == Reachable {
		c.log.Info("connected to the hub")
	}
	return unreachable, state
}
