// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// insidePod is the name of that pod.
const insidePod = "tombolo-check-hub"

// checkInside starts a pod in the member that asks the hub, and takes it away again.
func (j *joining) checkInside(ctx context.Context) (err error) {
	if !j.checkFromInside {
		j.r.notef("whether pods of this cluster reach the hub was not checked (--check-from-inside=false)")
		return nil
	}
	if j.dryRun {
		j.r.notef("a pod %s/%s would look whether the hub can be reached from inside (not in a dry run)", j.namespace, insidePod)
		return nil
	}
	pod, err := j.insidePod()
	if err != nil {
		return err
	}
	installer := j.member.install.Force()
	// A pod that an interrupted run has left says nothing about now.
	if _, err := installer.Delete(ctx, pod); err != nil {
		return err
	}
	if err := awaitGone(ctx, j.member, pod); err != nil {
		return err
	}
	defer func() {
		cleanUp, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
		defer cancel()
		_, gone := installer.Delete(cleanUp, pod)
		err = errors.Join(err, gone)
	}()
	if _, err := installer.Apply(ctx, pod); err != nil {
		return fmt.Errorf("start a pod that looks whether the hub can be reached from inside this cluster: %w (--check-from-inside=false goes without)", err)
	}
	return j.awaitInside(ctx, pod)
}

func (j *joining) awaitInside(ctx context.Context, object *unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(ctx, j.checkTimeout)
	defer cancel()
	pod := &corev1.Pod{}
	err := poll(ctx, func(ctx context.Context) (bool, error) {
		err := j.member.client.Get(ctx, client.ObjectKeyFromObject(object), pod)
		return err == nil && (pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed), ignoreTransient(err)
	})
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		j.r.failf("the pod %s/%s, which looks whether the hub can be reached from inside, has not ended within %s (%s): "+
			"pass --agent-image with an image that the nodes can pull, or --check-from-inside=false to go without", j.namespace, insidePod, j.checkTimeout, stateOf(pod))
	case err != nil:
		return fmt.Errorf("watch pod %s: %w", insidePod, err)
	case pod.Status.Phase == corev1.PodSucceeded:
		j.r.okf("pods of this cluster reach the hub at %s", j.way.server)
	default:
		j.r.failf("pods of this cluster do not reach the hub at %s (%s): pass --hub-server with a URL that they reach, --hub-ca with its certificate authority, or open the way", j.way.server, stateOf(pod))
	}
	return nil
}

// stateOf returns what a pod's status says of why it is as it is.
func stateOf(pod *corev1.Pod) string {
	var parts []string
	for _, s := range pod.Status.ContainerStatuses {
		switch {
		case s.State.Terminated != nil:
			parts = append(parts, strings.TrimSpace(s.State.Terminated.Message))
		case s.State.Waiting != nil:
			parts = append(parts, strings.TrimSpace(s.State.Waiting.Reason+" "+s.State.Waiting.Message))
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status != corev1.ConditionTrue {
			parts = append(parts, c.Reason+": "+c.Message)
		}
	}
	if len(parts) == 0 {
		return "phase " + string(pod.Status.Phase)
	}
	return strings.Join(parts, "; ")
}

// insidePod returns the pod that asks the hub.
func (j *joining) insidePod() (*unstructured.Unstructured, error) {
	return checkingPod(j.namespace, insidePod, j.agentImage, j.checkTimeout, j.way.flags())
}

// checkingPod returns a pod that runs the agent's image with the rights of nobody, and ends after its lifetime at the latest.
func checkingPod(namespace, name, image string, lifetime time.Duration, args []string) (*unstructured.Unstructured, error) {
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{labelPartOf: partOf}},
		Spec: corev1.PodSpec{
			RestartPolicy:                corev1.RestartPolicyNever,
			ActiveDeadlineSeconds:        new(max(1, int64(lifetime.Seconds()))),
			AutomountServiceAccountToken: new(false),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), RunAsUser: new(int64(65532)),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "check", Image: image, Args: args,
				TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{Object: content}
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(object.Object, "status")
	return object, nil
}

// awaitGone returns when an object does not exist any more.
func awaitGone(ctx context.Context, c *cluster, object *unstructured.Unstructured) error {
	there := &unstructured.Unstructured{}
	there.SetGroupVersionKind(object.GroupVersionKind())
	err := poll(ctx, func(ctx context.Context) (bool, error) {
		err := c.client.Get(ctx, client.ObjectKeyFromObject(object), there)
		return isAbsentKind(err), ignoreTransient(err)
	})
	if err != nil {
		return fmt.Errorf("%s of %s is not gone (finalizers: %v): %w", nameOf(object), c.what, there.GetFinalizers(), err)
	}
	return nil
}
