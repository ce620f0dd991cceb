// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
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

// waitLimit is how long anything may take on a busy machine.
const waitLimit = 90 * time.Second

// startVariable makes this test binary start a lab, which it does not close.
const startVariable = "TOMBOLO_LAB_TEST_START"

func TestMain(m *testing.M) {
	if os.Getenv(startVariable) == "" {
		os.Exit(m.Run())
	}
	l, err := startComplete()
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	defer runtime.KeepAlive(l) // it ends when nothing refers to it any more
	fmt.Println("started", l.Cluster("a").Config().Host)
	select {}
}

// runPod runs a pod of the image probe that serves.
func runPod(ctx context.Context, cl client.Client) error {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "server"},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{
				Name: "probe", Image: "tombolo.example/probe:lab", ImagePullPolicy: corev1.PullNever, Args: []string{"serve", "-tcp", "8080"},
			}},
		},
	}
	// The service account may not be there yet.
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := cl.Create(ctx, pod)
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("creating pod %s: %w", pod.Name, err)
	}
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := cl.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		return pod.Status.Phase == corev1.PodRunning, err
	})
	if err != nil {
		return fmt.Errorf("pod %s, %+v: %w", pod.Name, pod.Status, err)
	}
	return nil
}

// TestNothingStaysBehindOfCompleteClusters kills the process that runs a lab with a node and a pod: its processes, also
// those that are no children of ours, its interfaces, mounts, cgroups and files are gone.
func TestNothingStaysBehindOfCompleteClusters(t *testing.T) {
	lab.NeedComplete(t)
	folder, err := os.MkdirTemp("/tmp", "lab-test-")
	lab.Must(t, err)
	defer os.Remove(folder)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), startVariable+"=1", "TMPDIR="+folder)
	stdout, err := cmd.StdoutPipe()
	lab.Must(t, err)
	lab.Must(t, cmd.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	lab.Must(t, err)
	var network int // the API server's address is in the network of the interface tombolo<n>
	if _, err := fmt.Sscanf(line, "started https://198.18.%d.", &network); err != nil {
		t.Fatalf("the lab did not start: %q, %v", line, err)
	}
	link, err := net.InterfaceByName(fmt.Sprintf("tombolo%d", network))
	lab.Must(t, err)
	labs, err := os.ReadDir(folder)
	if err != nil || len(labs) != 1 {
		t.Fatalf("the folder has %v, %v; want a lab", labs, err)
	}
	name := labs[0].Name()
	if cgroups(t, name) == "" {
		t.Error("a node with a pod has no cgroups")
	}
	lab.Must(t, cmd.Process.Kill())
	if err := cmd.Wait(); err == nil {
		t.Error("the process ended well; it should have been killed")
	}
	lab.Eventually(t, waitLimit, func(ctx context.Context) error {
		left, err := leftovers(ctx, folder) // among them a machine's first process, which outlives all others of it
		if err != nil {
			return err
		}
		if now, err := net.InterfaceByName(link.Name); err == nil && now.Index == link.Index { // another may have its name
			left += link.Name
		}
		if left += cgroups(t, name) + mounts(t, name); left != "" {
			return errors.New("left behind: " + left)
		}
		return nil
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
	return l, runPod(context.Background(), cl)
}

// cgroups returns those of a lab.
func cgroups(t *testing.T, name string) string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/"} {
		found, err := filepath.Glob(pattern + name)
		lab.Must(t, err)
		all = append(all, found...)
	}
	return strings.Join(all, " ")
}

// mounts returns those of the host that are a lab's.
func mounts(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile("/proc/self/mountinfo")
	lab.Must(t, err)
	var all strings.Builder
	for line := range strings.Lines(string(content)) {
		if strings.Contains(line, name) {
			all.WriteString(line)
		}
	}
	return all.String()
}

// leftovers returns a line for each file in a folder and each process that has the folder's path in its arguments.
func leftovers(ctx context.Context, folder string) (string, error) {
	var left strings.Builder
	entries, err := os.ReadDir(folder)
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		fmt.Fprintln(&left, e.Name())
	}
	processes, err := exec.CommandContext(ctx, "ps", "-A", "-o", "args").Output()
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(processes)) {
		if strings.Contains(line, folder) {
			left.WriteString(line)
		}
	}
	return left.String(), nil
}
