// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package join

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/connection"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/workload"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/writing"
)

// insidePod is the name of the pod that checks from inside the member that the hub can be reached.
const insidePod = "tombolo-check-hub"

// checkInside runs a pod in the member that sends a request to the hub, and deletes the pod.
func (j *command) checkInside(ctx context.Context) (err error) {
	if !j.checkFromInside {
		j.r.Notef("whether pods of this cluster reach the hub was not checked (--check-from-inside=false)")
		return nil
	}
	if j.IsDryRun() {
		j.r.Notef("a pod %s/%s would look whether the hub can be reached from inside (not in a dry run)", j.namespace, insidePod)
		return nil
	}
	pod, err := j.insidePod()
	if err != nil {
		return err
	}
	installer := j.member.Install.Force()
	// A pod of an interrupted run has an outdated result.
	if _, err := installer.Delete(ctx, pod); err != nil {
		return err
	}
	if err := writing.AwaitDeleted(ctx, j.member, pod); err != nil {
		return err
	}
	defer func() {
		cleanUp, cancel := context.WithTimeout(context.WithoutCancel(ctx), connection.RequestTimeout)
		defer cancel()
		_, gone := installer.Delete(cleanUp, pod)
		err = errors.Join(err, gone)
	}()
	if _, err := installer.Apply(ctx, pod); err != nil {
		return fmt.Errorf("start a pod that looks whether the hub can be reached from inside this cluster: %w (--check-from-inside=false goes without)", err)
	}
	return j.awaitInsidePod(ctx, pod)
}

func (j *command) awaitInsidePod(ctx context.Context, object *unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(ctx, j.checkTimeout)
	defer cancel()
	pod := &corev1.Pod{}
	err := connection.Poll(ctx, func(ctx context.Context) (bool, error) {
		err := j.member.Client.Get(ctx, client.ObjectKeyFromObject(object), pod)
		return err == nil && (pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed), connection.IgnoreTransient(err)
	})
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		j.r.Failf("the pod %s/%s, which looks whether the hub can be reached from inside, has not ended within %s (%s): "+
			"pass --image-registry with a mirror or --agent-image with an image that the nodes can pull, or --check-from-inside=false to go without", j.namespace, insidePod, j.checkTimeout, workload.PodState(pod))
	case err != nil:
		return fmt.Errorf("watch pod %s: %w", insidePod, err)
	case pod.Status.Phase == corev1.PodSucceeded:
		j.r.Okf("pods of this cluster reach the hub at %s", j.HubAddress.Server)
	default:
		j.r.Failf("pods of this cluster do not reach the hub at %s (%s): pass --hub-server with a URL that they reach, --hub-ca with its certificate authority, or open the way", j.HubAddress.Server, workload.PodState(pod))
	}
	return nil
}

// insidePod returns the pod that sends a request to the hub.
func (j *command) insidePod() (*unstructured.Unstructured, error) {
	return workload.NewCheckPod(j.namespace, insidePod, j.AgentImage, j.checkTimeout, j.HubAddress.CheckFlags())
}
