// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/chaos/oracle"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// waitLimit is how long the clusters may take to agree once a fault has ended: an API server that was restarted takes half
// a minute until its admission policies find the Members again, and a token that was renewed a minute until it is read.
const waitLimit = 5 * time.Minute

// ending is the member whose namespaces are deleted.
const ending = "c"

// world is a hub, its members with their agents, and the checker that watches them.
type world struct {
	// t is the test that is under way.
	t       *testing.T
	hub     *lab.Cluster
	hubKube client.Client
	members []*member
	watch   *recorder
	random  *rand.Rand
	// silent are the members whose agent is down for so long that everybody has noticed.
	silent map[string]bool
	// authority issues client certificates that the hub accepts.
	authority authority
	// backups counts them, and young is the hub's of before the last member joined.
	backups int
	young   string
	// resolver is the DNS of one member; nil if there is none.
	resolver *resolver
}

type member struct {
	client.Client
	id                             string
	cluster                        *lab.Cluster
	index                          int
	agent                          *agent
	localKubeconfig, hubKubeconfig string
	// line and localLine are the agent's ways to the hub and to its own API server, localConfig and hubConfig lead there.
	line, localLine        *line
	localConfig, hubConfig *rest.Config
}

func (m *member) folder() string { return filepath.Dir(m.cluster.Kubeconfig()) }

// newWorld starts a hub and members, whose agents are of the program at path but do not run yet.
func newWorld(t *testing.T, path string, random *rand.Rand, ids ...string) *world {
	t.Helper()
	authority, err := newAuthority()
	lab.Must(t, err)
	clientCA := filepath.Join(t.TempDir(), "client-ca.pem")
	lab.Must(t, os.WriteFile(clientCA, pemOf(authority.certificate.Raw), 0o600))
	hub := membership.Hub()
	hub.APIServerArgs = []string{"--client-ca-file=" + clientCA}
	options := []lab.ClusterOptions{hub}
	for _, id := range ids {
		o := lab.Member(id)
		if id == ending { // without controllers a namespace never ends
			o.Controllers = []string{"namespace-controller", "serviceaccount-controller"}
		}
		options = append(options, o)
	}
	l := lab.Start(t, options...)
	w := &world{t: t, hub: l.Cluster("hub"), random: random, silent: map[string]bool{}, authority: authority}
	w.hubKube = membership.Client(t, w.hub)
	lab.Must(t, membership.InitHub(t.Context(), w.hub))
	for i, id := range ids {
		if i == len(ids)-1 {
			w.young = w.backup()
			lab.Must(t, w.hub.Backup(t.Context(), w.young))
		}
		w.members = append(w.members, w.join(t, l.Cluster(id), i+1))
		w.members[i].agent = agentOf(t, w.members[i], path)
	}
	w.watch = newRecorder(t, w.hub, w.members)
	return w
}

// join makes a cluster the n-th member, whose pods have addresses of 10.<n>.0.0/16 and fd00:<n>::/64.
func (w *world) join(t *testing.T, cluster *lab.Cluster, n int) *member {
	t.Helper()
	m := &member{Client: membership.Client(t, cluster), id: cluster.Name, cluster: cluster, index: n}
	config, err := membership.Join(t.Context(), w.hub, cluster, m.options())
	lab.Must(t, err)
	m.line, m.hubConfig = newLine(t, config)
	local, err := membership.InstallAgent(t.Context(), cluster)
	lab.Must(t, err)
	m.localLine, m.localConfig = newLine(t, local)
	m.localKubeconfig = filepath.Join(m.folder(), "agent.kubeconfig")
	lab.Must(t, lab.WriteKubeconfig(m.localKubeconfig, m.localConfig))
	m.hubKubeconfig = filepath.Join(m.folder(), "hub.kubeconfig")
	lab.Must(t, errors.Join(m.renew(config.BearerToken), lab.ReplaceFile(m.authorityFile(), config.CAData)))
	lab.Must(t, m.writeKubeconfig(m.hubKubeconfig, map[string]any{"tokenFile": m.tokenFile()}))
	return m
}

func (m *member) options() manifests.MemberOptions {
	return manifests.MemberOptions{PodCIDRs: membership.PodCIDRs(m.index), MaxServices: 1000, MaxEndpoints: 2000}
}

func (m *member) tokenFile() string { return filepath.Join(m.folder(), "hub.token") }

// renew gives the agent another token for the hub, as a kubelet would: by replacing the file.
func (m *member) renew(token string) error {
	m.hubConfig.BearerToken = token
	return lab.ReplaceFile(m.tokenFile(), []byte(token))
}

func (m *member) authorityFile() string { return filepath.Join(m.folder(), "hub.ca") }

// writeKubeconfig writes a kubeconfig for the hub. What is to change is in files of its own.
func (m *member) writeKubeconfig(path string, user map[string]any) error {
	content, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "hub",
		"clusters": []any{map[string]any{"name": "hub", "cluster": map[string]any{
			"server": m.hubConfig.Host, "certificate-authority": m.authorityFile(),
		}}},
		"users":    []any{map[string]any{"name": "hub", "user": user}},
		"contexts": []any{map[string]any{"name": "hub", "context": map[string]any{"cluster": "hub", "user": "hub"}}},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o600)
}

// must ends the test that is under way if there is an error. Only the goroutine of the test may call it.
func (w *world) must(errs ...error) {
	w.t.Helper()
	lab.Must(w.t, errors.Join(errs...))
}

func (w *world) look(ctx context.Context) (oracle.World, error) {
	var result oracle.World
	members, records := &hubv1alpha1.MemberList{}, &hubv1alpha1.PublishedServiceList{}
	for _, list := range []client.ObjectList{members, records} {
		if err := w.hubKube.List(ctx, list); err != nil {
			return result, fmt.Errorf("hub: %w", err)
		}
	}
	result.Members, result.Records = members.Items, records.Items
	for _, m := range w.members {
		namespaces, services, slices := &corev1.NamespaceList{}, &corev1.ServiceList{}, &discoveryv1.EndpointSliceList{}
		exports, imports := &mcsv1beta1.ServiceExportList{}, &mcsv1beta1.ServiceImportList{}
		for _, list := range []client.ObjectList{namespaces, services, slices, exports, imports} {
			if err := m.List(ctx, list); err != nil {
				return result, fmt.Errorf("%s: %w", m.id, err)
			}
		}
		result.Clusters = append(result.Clusters, oracle.Cluster{
			ID: m.id, ServiceCIDRs: m.cluster.ServiceCIDRs, Silent: w.silent[m.id], Denied: []string{"tombolo-system"},
			Namespaces: namespaces.Items, Services: services.Items, Slices: slices.Items, Exports: exports.Items, Imports: imports.Items,
		})
	}
	return result, nil
}

// settled waits until all clusters hold what they must, and the watches have seen all of it. It returns how long that
// took, what must never have happened and did since the last time, and what is still wrong after waitLimit.
func (w *world) settled(ctx context.Context) (took time.Duration, never, wrong []oracle.Finding, err error) {
	begin := time.Now()
	err = wait.PollUntilContextTimeout(ctx, 250*time.Millisecond, waitLimit, true, func(ctx context.Context) (bool, error) {
		seen, unseen := w.look(ctx)
		if unseen != nil { // an API server is not back yet, or the time is over
			if ctx.Err() == nil {
				wrong = []oracle.Finding{{Text: unseen.Error()}}
			}
			return false, ctx.Err()
		}
		if wrong = seen.Compare(); len(wrong) > 0 {
			return false, nil
		}
		if wrong = w.asked(ctx, seen); len(wrong) > 0 {
			return false, nil
		}
		if took == 0 {
			took = time.Since(begin)
		}
		behind := w.watch.behind(seen)
		if len(behind) > 0 {
			wrong = []oracle.Finding{{Text: "the watches have not seen " + strings.Join(behind, ", ")}}
			return false, nil
		}
		never = w.watch.begin(seen)
		return true, nil
	})
	if err != nil && len(wrong) > 0 && ctx.Err() == nil {
		return time.Since(begin), w.watch.begin(oracle.World{}), wrong, nil
	}
	return took, never, nil, err
}

// asked returns what is wrong when DNS is asked as well.
func (w *world) asked(ctx context.Context, seen oracle.World) []oracle.Finding {
	if w.resolver == nil {
		return nil
	}
	if err := w.resolver.ask(ctx, &seen); err != nil {
		return []oracle.Finding{{Rule: oracle.Answered, Cluster: w.resolver.member.id, Text: err.Error()}}
	}
	return seen.Compare()
}

// eventually waits until check succeeds; on a timeout it returns check's last error.
func eventually(ctx context.Context, check func(context.Context) error) error {
	return lab.Await(ctx, 100*time.Millisecond, waitLimit, check)
}

// shown waits until an object can be read and passes a check; on a timeout it returns the last error.
func shown(ctx context.Context, c client.Client, k client.ObjectKey, o client.Object, check func() error) error {
	return eventually(ctx, func(ctx context.Context) error {
		reflect.ValueOf(o).Elem().SetZero() // decoding keeps keys of maps that are gone
		if err := c.Get(ctx, k, o); err != nil {
			return err
		}
		return check()
	})
}

// pause waits for a time, while a fault lasts.
func pause(ctx context.Context, d time.Duration) {
	passed, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-passed.Done()
}

func meta(k oracle.Key) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: k.Namespace, Name: k.Name}
}
