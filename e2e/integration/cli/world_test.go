// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli_test runs "kubectl clusterset" as an administrator does, on real API servers.
package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/cli"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	framework "github.com/tombolo-mcs/tombolo/e2e/framework/world"
	"github.com/tombolo-mcs/tombolo/manifests"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// waitLimit bounds every wait.
const waitLimit = 3 * time.Minute

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "tombolo-clusterset-")
	if err != nil {
		panic(err)
	}
	programFolder = folder
	m.Run()
	if err := os.RemoveAll(folder); err != nil {
		panic(err)
	}
}

// programFolder has the programs that are built once for all tests, and is deleted after them.
var programFolder string

var (
	agent   = sync.OnceValues(func() (string, error) { return build(programFolder, "tombolo-agent") })
	coredns = sync.OnceValues(func() (string, error) { return build(programFolder, "coredns") })
	plugin  = sync.OnceValues(func() (string, error) { return build(programFolder, "kubectl-clusterset") })
)

// build builds a command into a folder as it is released, and returns its path.
func build(folder, name string) (string, error) {
	path := filepath.Join(folder, name)
	return path, lab.Build(context.Background(), "../../..", name, path)
}

// world is a hub and clusters that may become members, and the kubeconfig of an administrator of all of them.
type world struct {
	*lab.Lab
	kubeconfig string
	agent      string // the program
	build      cli.Build

	mu      sync.Mutex
	clients map[string]client.Client // by cluster
}

func start(t *testing.T, members ...string) *world {
	t.Helper()
	clusters := []lab.ClusterOptions{lab.Hub()}
	for _, name := range members {
		clusters = append(clusters, lab.ClusterOptions{Name: name, Controllers: lab.DefaultControllers()})
	}
	w := &world{Lab: lab.Start(t, clusters...), kubeconfig: filepath.Join(t.TempDir(), "kubeconfig"), build: release}
	w.connect(t)
	var err error
	w.agent, err = agent()
	lab.Must(t, err)
	return w
}

// connect writes the kubeconfig and drops the clients: the certificate of a cluster may have changed.
func (w *world) connect(t *testing.T) {
	t.Helper()
	lab.Must(t, lab.WriteContexts(w.kubeconfig, "", w.Clusters()...))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clients = map[string]client.Client{}
}

// release is the build of the command, unless a test sets another one.
var release = cli.Build{Version: "v0.0.0-test", Registry: "example.com/tombolo"}

// run runs "kubectl clusterset" with arguments, split at spaces, and returns what it prints and its exit code.
func (w *world) run(t *testing.T, command string) (string, int) {
	t.Helper()
	return w.runUntil(t.Context(), command)
}

// runUntil is run, interrupted when a context ends.
func (w *world) runUntil(ctx context.Context, command string) (string, int) {
	var out bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out}
	code := cli.Run(ctx, w.build, append(strings.Fields(command), "--kubeconfig", w.kubeconfig), streams)
	return out.String(), code
}

func (w *world) must(t *testing.T, command string) string {
	t.Helper()
	out, code := w.run(t, command)
	if code != cli.ExitOK {
		t.Fatalf("$ kubectl clusterset %s\n%sexit code %d", command, out, code)
	}
	return out
}

// initHub makes a cluster a hub. It restarts the hub's controllers, whose quotas know new kinds after up to half a minute otherwise: TestVerbs
// and the commands of docs/install.md do without.
func (w *world) initHub(t *testing.T, name string) {
	t.Helper()
	w.must(t, "init-hub --context "+name)
	lab.Must(t, w.Cluster(name).RestartControllers(t.Context()))
}

// unchanged runs a command that must change nothing, and returns what it prints.
func (w *world) unchanged(t *testing.T, command string) string {
	t.Helper()
	out := w.must(t, command)
	if strings.Contains(out, " created\n") || strings.Contains(out, " configured\n") {
		t.Errorf("$ kubectl clusterset %s\nonce more:\n%s", command, out)
	}
	return out
}

// refused runs a command that must end with an exit code and print these texts, the last of which is what to do.
func (w *world) refused(t *testing.T, command string, code int, texts ...string) {
	t.Helper()
	out, got := w.run(t, command)
	if got != code {
		t.Errorf("$ kubectl clusterset %s\n%sexit code %d, want %d", command, out, got, code)
	}
	for _, text := range texts {
		if !strings.Contains(out, text) {
			t.Errorf("$ kubectl clusterset %s\n%sdoes not contain %q", command, out, text)
		}
	}
}

// join returns the command line for a cluster of the lab, whose hub is on the loopback interface.
func (w *world) join(name, more string) string {
	return "join --context " + name + " --hub-context hub --cluster-id " + name + " --hub-server " + w.Cluster("hub").Config().Host + " " + more
}

// traces returns the objects of clusters that may be Tombolo's.
func (w *world) traces(t *testing.T, clusters ...string) map[string][]string {
	t.Helper()
	result := map[string][]string{}
	for _, name := range clusters {
		result[name] = membership.Traces(t, w.Cluster(name))
	}
	return result
}

// client returns a client with an administrator's rights. It is kept: a new one discovers all kinds again.
func (w *world) client(t *testing.T, cluster string) client.Client {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.clients[cluster] == nil {
		w.clients[cluster] = membership.Client(t, w.Cluster(cluster))
	}
	return w.clients[cluster]
}

func (w *world) create(t *testing.T, cluster string, objects ...client.Object) {
	t.Helper()
	framework.Create(t, w.client(t, cluster), objects...)
}

func (w *world) get(t *testing.T, cluster string, object client.Object) {
	t.Helper()
	lab.Must(t, w.client(t, cluster).Get(t.Context(), client.ObjectKeyFromObject(object), object))
}

// deployment returns a Deployment of Tombolo in east.
func (w *world) deployment(t *testing.T, name string) *appsv1.Deployment {
	t.Helper()
	return framework.Read(t, w.client(t, "east"), framework.Key{Namespace: manifests.AgentNamespace, Name: name}, &appsv1.Deployment{})
}

// hasImages fails the test unless Deployments of Tombolo in east have these images, by their names.
func (w *world) hasImages(t *testing.T, when string, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	for name := range want {
		got[name] = w.deployment(t, name).Spec.Template.Spec.Containers[0].Image
	}
	lab.Equal(t, "images "+when, want, got)
}

// awaitCount waits until a list has n items.
func (w *world) awaitCount(t *testing.T, cluster string, list client.ObjectList, n int, options ...client.ListOption) {
	t.Helper()
	lab.Eventually(t, waitLimit, func(ctx context.Context) error {
		if err := w.client(t, cluster).List(ctx, list, options...); err != nil {
			return err
		}
		if got := meta.LenList(list); got != n {
			return fmt.Errorf("%s has %d items in %T, want %d", cluster, got, list, n)
		}
		return nil
	})
}

// edit changes an object that has other writers, too.
func (w *world) edit(t *testing.T, cluster string, object client.Object, change func()) {
	t.Helper()
	framework.Update(t, w.client(t, cluster), client.ObjectKeyFromObject(object), object, change)
}

// credentials returns the URL in the Secret of the agent, and checks that the hub accepts its token there.
func (w *world) credentials(t *testing.T) (server string, err error) {
	secret := framework.Read(t, w.client(t, "east"), framework.Key{Namespace: manifests.AgentNamespace, Name: manifests.HubSecret}, &corev1.Secret{})
	file, err := clientcmd.Load(secret.Data[clusterset.HubSecretKubeconfig])
	if err != nil {
		return "", err
	}
	server = file.Clusters["hub"].Server
	api, err := kubernetes.NewForConfig(&rest.Config{
		Host: server, BearerToken: string(secret.Data[clusterset.HubSecretToken]), TLSClientConfig: rest.TLSClientConfig{CAData: secret.Data[clusterset.HubSecretCA]},
	})
	if err != nil {
		return "", err
	}
	who, err := api.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return server, err
	}
	if got := who.Status.UserInfo.Username; got != "system:serviceaccount:member-east:tombolo-agent" {
		err = fmt.Errorf("the token is of %s", got)
	}
	return server, err
}
