// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/chaos/oracle"
	framework "github.com/tombolo-mcs/tombolo/e2e/framework/world"
	"github.com/tombolo-mcs/tombolo/internal/apply"
)

// The namespaces of the clusterset. Services of moving change all the time, those of still only where a fault changes
// them: for these, the checker can detect a forbidden change at any time.
const (
	moving = "moving"
	still  = "still"
	// scratch is for what faults make of their own.
	scratch = "scratch"
	// plain holds what is not exported.
	plain = "plain"
)

const stillServices = 12

func namespaces() []string { return []string{moving, still, scratch, plain} }

func stillKey(i int) oracle.Key {
	return oracle.Key{Namespace: still, Name: fmt.Sprintf("still-%02d", i)}
}

// aloneKey is of the service that stays and that a member alone exports.
func aloneKey(id string) oracle.Key { return oracle.Key{Namespace: still, Name: "alone-" + id} }

// service returns a Service; its shape, ports and settings are those of a number.
func service(k oracle.Key, shape uint) *corev1.Service {
	s := &corev1.Service{ObjectMeta: meta(k)}
	s.Spec.IPFamilyPolicy = new(corev1.IPFamilyPolicyPreferDualStack)
	s.Spec.Ports = []corev1.ServicePort{framework.Port("http", 80+int32(shape%2))}
	if shape%3 == 1 {
		s.Spec.Ports = append(s.Spec.Ports, framework.Port("extra", 90))
		s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
	}
	if shape%3 == 2 {
		s.Spec.Ports[0].Name = ""
		s.Spec.TrafficDistribution = new(corev1.ServiceTrafficDistributionPreferClose)
	}
	if shape%5 == 4 {
		s.Spec.ClusterIP, s.Spec.SessionAffinity = corev1.ClusterIPNone, ""
		s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
		s.Spec.IPFamilyPolicy = new(corev1.IPFamilyPolicyRequireDualStack)
	}
	return s
}

// slice returns an EndpointSlice of a Service as Kubernetes would write it, with as many endpoints as are asked for.
func (m *member) slice(s *corev1.Service, family discoveryv1.AddressType, endpoints int, random *rand.Rand) *discoveryv1.EndpointSlice {
	suffix, format := "v4", "10.%d.%d.%d"
	if family == discoveryv1.AddressTypeIPv6 {
		suffix, format = "v6", "fd00:%d::%x:%x"
	}
	var addresses []string
	for i := range endpoints {
		addresses = append(addresses, fmt.Sprintf(format, m.index, random.IntN(250)+1, i+1))
	}
	result := framework.Slice(s, suffix, addresses...)
	result.AddressType = family
	for i := range result.Endpoints {
		result.Endpoints[i].Conditions.Ready = new(random.IntN(4) > 0)
	}
	return result
}

// offer creates a Service with slices, and the export, whatever is there already.
func (w *world) offer(ctx context.Context, m *member, s *corev1.Service, random *rand.Rand) error {
	k := client.ObjectKeyFromObject(s)
	w.watch.will(oracle.Source, m.id, k)
	err := retry.OnError(wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Steps: 8}, isInvalidNow, func() error { return m.Create(ctx, s.DeepCopy()) })
	if err != nil {
		return err
	}
	for _, family := range []discoveryv1.AddressType{"IPv4", "IPv6"} {
		slice := m.slice(s, family, 1+random.IntN(3), random)
		w.watch.offers(m.id, slice)
		if err := m.Create(ctx, slice); err != nil {
			return err
		}
	}
	export := framework.Export(k)
	w.watch.offers(m.id, export)
	return m.Create(ctx, export)
}

// createServices makes namespaces in all members, services that stay as they are, and services without an export. Every third
// of those that stay is exported by all, the others by the first two members, and two by one of these alone; of two more, one port
// is served by one of these alone.
func (w *world) createServices(ctx context.Context) error {
	for _, m := range w.members {
		for _, name := range namespaces() {
			w.must(m.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
		}
		hidden := service(oracle.Key{Namespace: plain, Name: "hidden"}, 0)
		w.must(m.Create(ctx, hidden), m.Create(ctx, m.slice(hidden, "IPv4", 2, w.random)))
		// A neighbour of the services that stay: no member exports it either.
		neighbour := service(oracle.Key{Namespace: still, Name: "neighbour"}, 0)
		w.must(m.Create(ctx, neighbour), m.Create(ctx, m.slice(neighbour, "IPv4", 2, w.random)))
		for i := range stillServices {
			if m.index == 3 && i%3 > 0 {
				continue
			}
			w.must(w.offer(ctx, m, service(stillKey(i), uint(i)), w.random))
		}
	}
	for _, m := range w.members[:2] {
		w.must(w.offer(ctx, m, service(aloneKey(m.id), 0), w.random))
		for _, other := range w.members[:2] {
			partly := service(oracle.Key{Namespace: still, Name: "partly-" + m.id}, 1)
			if other != m {
				partly.Spec.Ports = partly.Spec.Ports[:1]
			}
			w.must(w.offer(ctx, other, partly, w.random))
		}
	}
	// The name of another service that stays, of the first member, is that of an unmanaged ServiceImport of the second one.
	k := oracle.Key{Namespace: still, Name: "theirs"}
	return errors.Join(w.obstruct(ctx, w.members[1], k), w.offer(ctx, w.members[0], service(k, 0), w.random))
}

// churn changes services of the moving namespace until it is stopped, each change after a moment's pause.
type churn struct {
	w       *world
	random  *rand.Rand
	changes atomic.Int64
	cancel  context.CancelFunc
	done    sync.WaitGroup
	failed  error
}

func (w *world) startChurn(ctx context.Context) *churn {
	ctx, cancel := context.WithCancel(ctx)
	c := &churn{w: w, random: rand.New(rand.NewPCG(w.random.Uint64(), 1)), cancel: cancel}
	c.done.Go(func() {
		for ctx.Err() == nil {
			if err := c.change(ctx); err != nil && ctx.Err() == nil && !isTransient(err) {
				c.failed = err
				return
			}
			pause(ctx, time.Duration(50+c.random.IntN(200))*time.Millisecond)
		}
	})
	return c
}

// stop ends the changes and returns what went wrong with them.
func (c *churn) stop() error {
	c.cancel()
	c.done.Wait()
	if c.failed != nil {
		return fmt.Errorf("change services: %w", c.failed)
	}
	return nil
}

// isTransient reports whether a fault causes an error: an API server is unreachable, or an object was deleted. An API server that is
// starting refuses Services as invalid, because it cannot allocate an address.
func isTransient(err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return true // the connection
	}
	return apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) || apierrors.IsForbidden(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err) || apierrors.IsUnauthorized(err) || isInvalidNow(err)
}

// isInvalidNow reports whether an API server refuses an object as invalid for another reason than its content.
func isInvalidNow(err error) bool { return apierrors.IsInvalid(err) && !apply.IsFinal(err) }

func (c *churn) change(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	m := c.w.members[c.random.IntN(len(c.w.members))]
	k := oracle.Key{Namespace: moving, Name: fmt.Sprintf("svc-%d", c.random.IntN(8))}
	c.w.watch.will(oracle.Source, m.id, k)
	found := &corev1.Service{}
	err := m.Get(ctx, k, found)
	switch {
	case apierrors.IsNotFound(err):
		c.changes.Add(1)
		if c.random.IntN(2) == 0 { // the export may still be there
			return m.Create(ctx, service(k, uint(c.random.IntN(30))))
		}
		return c.w.renew(ctx, m, service(k, uint(c.random.IntN(30))), c.random)
	case err != nil:
		return err
	}
	c.changes.Add(1)
	switch c.random.IntN(6) {
	case 0:
		return c.w.withdraw(ctx, m, k)
	case 1:
		return m.Delete(ctx, framework.Export(k))
	case 2:
		return m.Delete(ctx, found)
	case 3:
		found.Spec.Ports[0].Port = 80 + int32(c.random.IntN(3))
		return m.Update(ctx, found)
	case 4:
		export := &mcsv1beta1.ServiceExport{}
		if err := m.Get(ctx, k, export); err != nil {
			return err
		}
		export.Spec.ExportedLabels = map[string]string{"team": fmt.Sprint(c.random.IntN(2)), "app.kubernetes.io/instance": "x"}
		return m.Update(ctx, export)
	default:
		slice := &discoveryv1.EndpointSlice{}
		if err := m.Get(ctx, client.ObjectKey{Namespace: k.Namespace, Name: k.Name + "-v4"}, slice); err != nil {
			return err
		}
		slice.Endpoints = m.slice(found, "IPv4", c.random.IntN(4), c.random).Endpoints
		c.w.watch.offers(m.id, slice)
		return m.Update(ctx, slice)
	}
}

// renew makes a service anew, with what is left of an older one.
func (w *world) renew(ctx context.Context, m *member, s *corev1.Service, random *rand.Rand) error {
	k := client.ObjectKeyFromObject(s)
	for _, family := range []string{"-v4", "-v6"} {
		old := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: k.Name + family}}
		if err := client.IgnoreNotFound(m.Delete(ctx, old)); err != nil {
			return err
		}
	}
	if err := client.IgnoreNotFound(m.Delete(ctx, framework.Export(k))); err != nil {
		return err
	}
	return w.offer(ctx, m, s, random)
}

// withdraw takes away an export with its Service and slices.
func (w *world) withdraw(ctx context.Context, m *member, k oracle.Key) error {
	w.watch.will(oracle.Source, m.id, k)
	for _, o := range []client.Object{
		framework.Export(k), &corev1.Service{ObjectMeta: meta(k)},
		&discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: k.Name + "-v4"}},
		&discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: k.Name + "-v6"}},
	} {
		if err := client.IgnoreNotFound(m.Delete(ctx, o)); err != nil {
			return err
		}
	}
	return nil
}
