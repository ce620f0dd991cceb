// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package world runs a hub and its members for tests through API servers, with agents in the process of the test, and
// has the builders of the objects and the readers of the results that these tests share.
//
//	w := world.New(t, membership.Hub(), lab.Member("a"), lab.Member("b"))
//	a, b := w.Members["a"], w.Members["b"]
//	a.Start(t)
//	b.Start(t)
//	k := world.Key{Namespace: world.Namespace(t, a, b), Name: "web"}
//	a.ExportWeb(t, k, "10.1.0.1")
//	b.Endpoints(t, k, "a 10.1.0.1:http:8080")
package world

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/manifests"
)

// Within is how long a test waits for a result. Users see it within a second; but tests share a machine, and an API server
// that was restarted takes half a minute until its admission policies find the Members again.
const Within = 90 * time.Second

// Key identifies a service, or any other object.
type Key = client.ObjectKey

// World is a hub and its members.
type World struct {
	Hub *lab.Cluster
	// HubClient has the rights of the hub's administrator.
	HubClient client.Client
	Members   map[string]*Member
}

// Member is a member cluster as its users and its agent see it.
type Member struct {
	client.Client
	ID      string
	Cluster *lab.Cluster
	// Local and Hub are the agent's credentials in its cluster and on the hub.
	Local, Hub *rest.Config
	// Registry and Output have the metrics and the log of the agent since its last start.
	Registry *prometheus.Registry
	Output   *Output
}

// New starts a hub, and the clusters as its members, without agents. The pods of the n-th member have addresses of
// 10.<n>.0.0/16 and fd00:<n>::/64.
func New(t testing.TB, hub lab.ClusterOptions, clusters ...lab.ClusterOptions) *World {
	t.Helper()
	l := lab.Start(t, append([]lab.ClusterOptions{hub}, clusters...)...)
	lab.Must(t, membership.InitHub(t.Context(), l.Cluster("hub")))
	return Join(t, l)
}

// Join makes all clusters of a lab but the hub members, and returns them.
func Join(t testing.TB, l *lab.Lab) *World {
	t.Helper()
	w := &World{Hub: l.Cluster("hub"), Members: map[string]*Member{}}
	w.HubClient = membership.Client(t, w.Hub)
	var joining errgroup.Group
	for i, cluster := range l.Clusters() {
		if cluster == w.Hub {
			continue
		}
		m := &Member{Client: membership.Client(t, cluster), ID: cluster.Name, Cluster: cluster}
		w.Members[cluster.Name] = m
		joining.Go(func() (err error) {
			if m.Hub, err = membership.Join(t.Context(), w.Hub, cluster, manifests.MemberOptions{PodCIDRs: membership.PodCIDRs(i)}); err != nil {
				return err
			}
			m.Local, err = membership.InstallAgent(t.Context(), cluster)
			return err
		})
	}
	lab.Must(t, joining.Wait())
	return w
}

// Namespace creates a namespace with the name of the test in each of the clusters, and returns its name.
func Namespace(t testing.TB, clusters ...client.Client) string {
	t.Helper()
	name := strings.ToLower(t.Name()[strings.LastIndex(t.Name(), "/")+1:])
	CreateNamespace(t, name, clusters...)
	return name
}

// CreateNamespace creates a namespace in each of the clusters.
func CreateNamespace(t testing.TB, name string, clusters ...client.Client) {
	t.Helper()
	for _, c := range clusters {
		Create(t, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
}

// Update reads an object, changes it and writes it, again after a conflict.
func Update(t testing.TB, c client.Client, k Key, object client.Object, change func()) {
	t.Helper()
	lab.Must(t, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := c.Get(t.Context(), k, object); err != nil {
			return err
		}
		change()
		return c.Update(t.Context(), object)
	}))
}

// Create creates objects in their order.
func Create(t testing.TB, c client.Client, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		lab.Must(t, c.Create(t.Context(), o))
	}
}

// Delete deletes objects in their order.
func Delete(t testing.TB, c client.Client, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		lab.Must(t, c.Delete(t.Context(), o))
	}
}

// Read returns an object as it is now.
func Read[T client.Object](t testing.TB, c client.Reader, k Key, into T) T {
	t.Helper()
	lab.Must(t, c.Get(t.Context(), k, into))
	return into
}

// List returns a list as it is now.
func List[T client.ObjectList](t testing.TB, c client.Reader, into T, options ...client.ListOption) T {
	t.Helper()
	lab.Must(t, c.List(t.Context(), into, options...))
	return into
}

// Each calls do for each object of some lists, as they are now.
func Each(
	ctx context.Context, c client.Reader, lists []client.ObjectList, do func(client.Object) error, options ...client.ListOption,
) error {
	for _, list := range lists {
		if err := c.List(ctx, list, options...); err != nil {
			return err
		}
		if err := meta.EachListItem(list, func(o runtime.Object) error { return do(o.(client.Object)) }); err != nil {
			return err
		}
	}
	return nil
}

// OfImports returns empty lists of the kinds that imports consist of.
func OfImports() []client.ObjectList {
	return []client.ObjectList{&mcsv1beta1.ServiceImportList{}, &corev1.ServiceList{}, &discoveryv1.EndpointSliceList{}}
}

// Await waits until there is an object for which check returns nil, and returns it. kind is any object of its kind.
func Await[T client.Object](t testing.TB, c client.Reader, k Key, kind T, check func(T) error) (found T) {
	t.Helper()
	Eventually(t, func(ctx context.Context) error {
		found = reflect.New(reflect.TypeOf(kind).Elem()).Interface().(T) // nothing of an earlier answer is left in it
		if err := c.Get(ctx, k, found); err != nil {
			return err
		}
		return check(found)
	})
	return found
}

// Absent returns nil for the error of a read that found nothing.
func Absent(err error) error {
	if err == nil {
		return errors.New("the object still exists")
	}
	return client.IgnoreNotFound(err)
}

// Eventually ends the test unless check succeeds within Within; then with check's last error.
func Eventually(t testing.TB, check func(context.Context) error) {
	t.Helper()
	lab.Eventually(t, Within, check)
}

// KeepScrape writes the metrics of a program into the folder SCRAPES, if that is set, for tools/monitoring.
func KeepScrape(t *testing.T, name string, text []byte) {
	t.Helper()
	folder := os.Getenv("SCRAPES")
	if folder == "" {
		return
	}
	lab.Must(t, os.MkdirAll(folder, 0o755))
	lab.Must(t, os.WriteFile(filepath.Join(folder, name), text, 0o600))
}
