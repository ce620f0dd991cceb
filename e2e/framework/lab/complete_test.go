// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// needComplete skips a test of complete clusters where those cannot run, or nobody has asked for them.
func needComplete(t *testing.T) {
	t.Helper()
	if os.Getenv("TOMBOLO_E2E") == "" || runtime.GOOS != "linux" || os.Geteuid() != 0 {
		t.Skip("complete clusters need Linux and root: make e2e")
	}
}

// TestCompleteNetwork: pods of one cluster reach pods of the other and machines, over both families, and keep their own
// addresses. While a node is frozen nothing on it answers; when it is back, all does.
func TestCompleteNetwork(t *testing.T) {
	needComplete(t)
	l := lab.Start(t, lab.CompleteMember("a"), lab.CompleteMember("b"))
	a, b := l.Cluster("a"), l.Cluster("b")
	probe := archive(t, "probe.tar")
	for _, c := range l.Clusters() {
		if err := c.Node.LoadImages(t.Context(), probe); err != nil {
			t.Fatal(err)
		}
	}
	server := startPod(t, a, "server", "serve", "-tcp", "8080")
	for i, address := range server {
		target := netip.AddrPortFrom(address, 8080).String()
		client := startPod(t, b, "client-"+strconv.Itoa(i), "ask", "-timeout", "10s", target)
		said := podLog(t, b, "client-"+strconv.Itoa(i))
		if want := fmt.Sprintf(`"client":%q`, client[i]); !strings.Contains(said, want) {
			t.Errorf("%s answered %s; want %s: the client's own address", target, said, want)
		}
		if _, err := request(t, b, target); err != nil {
			t.Errorf("the machine of b cannot ask a pod of a: %v", err)
		}
	}
	frozen(t, a, b, netip.AddrPortFrom(server[0], 8080).String())
}

// TestCompleteOldest: a cluster of the oldest Kubernetes that members may run has a node that runs pods.
func TestCompleteOldest(t *testing.T) {
	needComplete(t)
	if os.Getenv("OLDEST") == "no" {
		t.Skip("OLDEST=no")
	}
	options := lab.CompleteMember("a")
	options.Release = lab.Oldest
	a := lab.Start(t, options).Cluster("a")
	version, err := clientset(t, a).ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if version.Minor != "30" {
		t.Errorf("the cluster runs %s, want 1.30", version.GitVersion)
	}
	if err := a.Node.LoadImages(t.Context(), archive(t, "probe.tar")); err != nil {
		t.Fatal(err)
	}
	server := startPod(t, a, "server", "serve", "-tcp", "8080")
	if _, err := request(t, a, netip.AddrPortFrom(server[0], 8080).String()); err != nil {
		t.Error(err)
	}
}

// frozen freezes and thaws the node of a.
func frozen(t *testing.T, a, b *lab.Cluster, target string) {
	t.Helper()
	if err := a.Node.Freeze(t.Context()); err != nil {
		t.Fatal(err)
	}
	if said, err := request(t, b, target); err == nil {
		t.Errorf("a pod of a frozen node answers: %s", said)
	}
	if err := a.Node.Thaw(t.Context()); err != nil {
		t.Fatal(err)
	}
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		_, last = request(t, b, target)
		return last == nil, nil
	})
	if err != nil {
		t.Errorf("a pod of a thawed node does not answer: %v", last)
	}
}

// request sends one from the machine of a cluster.
func request(t *testing.T, from *lab.Cluster, target string) (string, error) {
	t.Helper()
	root, err := lab.Root()
	if err != nil {
		t.Fatal(err)
	}
	out, err := from.Run(t.Context(), filepath.Join(root, "bin", "probe"), "ask", "-timeout", "2s", target)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(out), `"error"`) {
		return "", errors.New(string(out))
	}
	return string(out), nil
}

func archive(t *testing.T, name string) string {
	t.Helper()
	root, err := lab.Root()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, "bin", "images", name)
}

// startPod returns the addresses of a pod that runs, or has run to its end, IPv4 first.
func startPod(t *testing.T, c *lab.Cluster, name string, args ...string) []netip.Addr {
	t.Helper()
	cl, err := c.Client(nil)
	if err != nil {
		t.Fatal(err)
	}
	pod, err := runPod(t.Context(), cl, name, args...)
	if err != nil {
		t.Fatalf("cluster %s: %v", c.Name, err)
	}
	var addresses []netip.Addr
	for _, ip := range pod.Status.PodIPs {
		addresses = append(addresses, netip.MustParseAddr(ip.IP))
	}
	if len(addresses) != 2 || !addresses[0].Is4() || !addresses[1].Is6() {
		t.Fatalf("pod %s of cluster %s has the addresses %v", name, c.Name, addresses)
	}
	return addresses
}

// runPod returns a pod of the image probe that serves, or has run to its end.
func runPod(ctx context.Context, cl client.Client, name string, args ...string) (*corev1.Pod, error) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{
				Name: "probe", Image: "tombolo.example/probe:lab", ImagePullPolicy: corev1.PullNever, Args: args,
			}},
		},
	}
	// The service account may not be there yet.
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := cl.Create(ctx, pod)
		return err == nil, client.IgnoreNotFound(ignoreForbidden(err))
	})
	if err != nil {
		return nil, fmt.Errorf("creating pod %s: %w", name, err)
	}
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := cl.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		started := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodRunning && args[0] == "serve"
		return started, err
	})
	if err != nil {
		return nil, fmt.Errorf("pod %s, %+v: %w", name, pod.Status, err)
	}
	return pod, nil
}

func ignoreForbidden(err error) error {
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}

// podLog returns what a pod has printed.
func podLog(t *testing.T, c *lab.Cluster, name string) string {
	t.Helper()
	root, err := lab.Root()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(root, "bin", "kubectl"), "--kubeconfig", c.Kubeconfig(), "logs", name).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// TestNothingStaysBehindOfCompleteClusters kills the process that runs a lab with a node and a pod: its processes, also
// those that are no children of ours, its interfaces, mounts, cgroups and files are gone.
func TestNothingStaysBehindOfCompleteClusters(t *testing.T) {
	needComplete(t)
	folder, err := os.MkdirTemp("/tmp", "lab-test-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(folder)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), endVariable+"=complete", "TMPDIR="+folder)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || line != "started\n" {
		t.Fatalf("the lab did not start: %q, %v", line, err)
	}
	labs, err := os.ReadDir(folder)
	if err != nil || len(labs) != 1 {
		t.Fatalf("the folder has %v, %v; want a lab", labs, err)
	}
	name := labs[0].Name()
	namespaces := pidNamespaces(t, name)
	// The machine's first process, a program of the control plane, of the node, a shim, the pod's sandbox and the pod.
	if n := len(processesIn(t, namespaces)); n < 10 || cgroups(t, name) == "" {
		t.Errorf("a node with a pod has %d processes and the cgroups %q", n, cgroups(t, name))
	}
	link := hostLink(t, namespaces)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the process ended well; it should have been killed")
	}
	eventually(t, "all of a lab is gone", func(ctx context.Context) (bool, error) {
		left, err := leftovers(ctx, folder)
		if err != nil {
			return false, err
		}
		if now, err := net.InterfaceByName(link.Name); err == nil && now.Index == link.Index { // another may have its name
			left += link.Name
		}
		return left+cgroups(t, name)+mounts(t, name)+strings.Join(processesIn(t, namespaces), " ") == "", nil
	})
}

// startComplete is what the process that is killed runs.
func startComplete() (*lab.Lab, error) {
	l, err := lab.New(context.Background(), lab.Options{Clusters: []lab.ClusterOptions{lab.CompleteMember("a")}})
	if err != nil {
		return nil, err
	}
	cl, err := l.Cluster("a").Client(nil)
	if err != nil {
		return l, err
	}
	root, err := lab.Root()
	if err != nil {
		return l, err
	}
	if err := l.Cluster("a").Node.LoadImages(context.Background(), filepath.Join(root, "bin", "images", "probe.tar")); err != nil {
		return l, err
	}
	_, err = runPod(context.Background(), cl, "server", "serve", "-tcp", "8080")
	return l, err
}

// hostLink returns the host's interface to the network of the machines with these PID namespaces, by the address that their
// API servers are told: 198.18.<n>.10 is reached by tombolo<n>.
func hostLink(t *testing.T, namespaces []string) *net.Interface {
	t.Helper()
	for _, pid := range processesIn(t, namespaces) {
		command, err := os.ReadFile("/proc/" + pid + "/cmdline")
		if err != nil {
			continue // it has ended
		}
		if _, after, found := strings.Cut(string(command), "--advertise-address=198.18."); found {
			number, _, _ := strings.Cut(after, ".")
			link, err := net.InterfaceByName("tombolo" + number)
			if err != nil {
				t.Fatal(err)
			}
			return link
		}
	}
	t.Fatal("no API server runs on a machine")
	return nil
}

// pidNamespaces returns those of the machines of a lab, by the folder that their first processes are told.
func pidNamespaces(t *testing.T, name string) []string {
	t.Helper()
	var all []string
	for _, pid := range processes(t) {
		command, err := os.ReadFile("/proc/" + pid + "/cmdline")
		if err != nil || !bytes.HasPrefix(command, []byte("unshare\x00")) || !bytes.Contains(command, []byte(name)) {
			continue
		}
		if namespace, err := os.Readlink("/proc/" + pid + "/ns/pid_for_children"); err == nil && bytes.Contains(command, []byte("--pid")) {
			all = append(all, namespace)
		}
	}
	if len(all) == 0 {
		t.Error("no machine runs")
	}
	return all
}

// processesIn returns the processes in some PID namespaces.
func processesIn(t *testing.T, namespaces []string) []string {
	t.Helper()
	var all []string
	for _, pid := range processes(t) {
		if namespace, err := os.Readlink("/proc/" + pid + "/ns/pid"); err == nil && slices.Contains(namespaces, namespace) {
			all = append(all, pid)
		}
	}
	return all
}

func processes(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		all[i] = filepath.Base(all[i])
	}
	return all
}

// cgroups returns those of a lab.
func cgroups(t *testing.T, name string) string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/"} {
		found, err := filepath.Glob(pattern + name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	return strings.Join(all, " ")
}

// mounts returns those of the host that are a lab's.
func mounts(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for line := range strings.Lines(string(content)) {
		if strings.Contains(line, name) {
			all.WriteString(line)
		}
	}
	return all.String()
}
