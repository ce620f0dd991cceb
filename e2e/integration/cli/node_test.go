// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/manifests"
)

// hubMount is where the agent's Deployment mounts the Secret that leads to the hub.
const hubMount = "/etc/tombolo/hub"

// syncPeriod is the time between two runs of sync, each of which sends several requests.
const syncPeriod = 250 * time.Millisecond

// node replaces the nodes of a cluster that has none: it runs the pods of Tombolo as processes, with the command lines,
// the rights and the Secret that they would have, and reports their ends as a kubelet does.
type node struct {
	t       *testing.T
	cluster *lab.Cluster
	client  client.Client
	api     kubernetes.Interface
	program string // tombolo-agent
	folder  string // what pods have mounted

	end     func()                  // ends the agent that runs, nil where none does
	running *corev1.PodTemplateSpec // what runs
}

// startNode starts a node that ends with the test, or with stop.
func startNode(t *testing.T, cluster *lab.Cluster, program string) (stop func()) {
	t.Helper()
	c, err := cluster.Client(nil)
	lab.Must(t, err)
	api, err := kubernetes.NewForConfig(cluster.Config())
	lab.Must(t, err)
	n := &node{t: t, cluster: cluster, client: c, api: api, program: program, folder: t.TempDir()}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		wait.UntilWithContext(ctx, n.sync, syncPeriod)
		n.stopAgent()
	}()
	stop = func() { cancel(); <-ended }
	t.Cleanup(stop)
	return stop
}

// sync starts and stops processes as the cluster's objects require.
func (n *node) sync(ctx context.Context) {
	if err := errors.Join(n.syncCheck(ctx), n.syncAgent(ctx)); err != nil && ctx.Err() == nil {
		n.t.Logf("node of %s: %v", n.cluster.Name, err)
	}
}

// syncCheck runs the pod that checks whether the hub is reachable.
func (n *node) syncCheck(ctx context.Context) error {
	pod, err := n.api.CoreV1().Pods("default").Get(ctx, "tombolo-check-hub", metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && pod.Status.Phase != corev1.PodPending {
		return nil
	}
	if err != nil {
		return err
	}
	var output bytes.Buffer
	cmd := exec.CommandContext(ctx, n.program, pod.Spec.Containers[0].Args...)
	cmd.Stderr = &output
	pod.Status.Phase = corev1.PodSucceeded
	if err := cmd.Run(); err != nil {
		pod.Status.Phase = corev1.PodFailed
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: pod.Spec.Containers[0].Name, Image: pod.Spec.Containers[0].Image,
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: int32(cmd.ProcessState.ExitCode()), Message: output.String()}},
	}}
	_, err = n.api.CoreV1().Pods("default").UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return err
}

// syncAgent runs the agent while there is its Deployment.
func (n *node) syncAgent(ctx context.Context) error {
	deployment := &appsv1.Deployment{}
	err := n.client.Get(ctx, client.ObjectKey{Namespace: manifests.AgentNamespace, Name: manifests.AgentDeployment}, deployment)
	switch {
	case apierrors.IsNotFound(err):
		n.stopAgent()
		return nil
	case err != nil:
		return err
	}
	if n.running != nil && !reflect.DeepEqual(n.running, &deployment.Spec.Template) {
		n.stopAgent() // a rollout
	}
	n.running = &deployment.Spec.Template
	if err := n.mount(ctx); err != nil || n.end != nil {
		return client.IgnoreNotFound(err)
	}
	kubeconfig, err := n.cluster.ServiceAccountKubeconfig(ctx, manifests.AgentNamespace, deployment.Spec.Template.Spec.ServiceAccountName)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	// It runs alone: with a lease, a busy machine on which it is not renewed in time would end the agent.
	args := []string{
		"--kubeconfig=" + kubeconfig, "--namespace=" + manifests.AgentNamespace, "--leader-elect=false",
		"--metrics-bind-address=0", "--health-probe-bind-address=0", "--log-format=text",
		"--heartbeat-interval=2s", // some parts wait for the next; what the Deployment says comes after it, and wins
	}
	for _, arg := range deployment.Spec.Template.Spec.Containers[0].Args {
		args = append(args, strings.ReplaceAll(arg, hubMount, n.folder))
	}
	// The pod shows that the agent runs: leave waits until it is deleted.
	pod := &corev1.Pod{ObjectMeta: *deployment.Spec.Template.ObjectMeta.DeepCopy(), Spec: *deployment.Spec.Template.Spec.DeepCopy()}
	pod.Namespace, pod.Name = manifests.AgentNamespace, manifests.AgentDeployment
	if err := client.IgnoreAlreadyExists(n.client.Create(ctx, pod)); err != nil {
		return client.IgnoreNotFound(err)
	}
	return n.startAgent(ctx, args)
}

// startAgent starts the agent, which is to run until it is stopped: an end of its own fails the test.
func (n *node) startAgent(ctx context.Context, args []string) error {
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, n.program, args...)
	cmd.Stderr = n.t.Output()
	if err := cmd.Start(); err != nil {
		cancel()
		return err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := cmd.Wait(); ctx.Err() == nil {
			n.t.Errorf("the agent of %s has ended by itself: %v", n.cluster.Name, err)
		}
	}()
	n.end = func() { cancel(); <-ended }
	return nil
}

// mount writes the keys of the Secret as files, each in one step, as a kubelet does.
func (n *node) mount(ctx context.Context) error {
	secret := &corev1.Secret{}
	if err := n.client.Get(ctx, client.ObjectKey{Namespace: manifests.AgentNamespace, Name: manifests.HubSecret}, secret); err != nil {
		return err
	}
	for key, content := range secret.Data {
		path := filepath.Join(n.folder, key)
		if there, err := os.ReadFile(path); err == nil && bytes.Equal(there, content) {
			continue
		}
		if err := errors.Join(os.WriteFile(path+".new", content, 0o600), os.Rename(path+".new", path)); err != nil {
			return err
		}
	}
	return nil
}

func (n *node) stopAgent() {
	if n.end == nil {
		return
	}
	n.end()
	n.end = nil
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: manifests.AgentNamespace, Name: manifests.AgentDeployment}}
	if err := client.IgnoreNotFound(n.client.Delete(context.Background(), pod, client.GracePeriodSeconds(0))); err != nil {
		n.t.Logf("node of %s: %v", n.cluster.Name, err)
	}
}
