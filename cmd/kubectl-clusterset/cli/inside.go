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

// insidePod is the name of the pod that checks from inside the member that the hub can be reached.
const insidePod = "tombolo-check-hub"

// checkInside runs a pod in the member that sends a request to the hub, and deletes the pod.
func (j *joinCommand) checkInside(ctx context.Context) (err error) {
	if !j.checkFromInside {
		j.r.notef("whether pods of this cluster reach the hub was not checked (--check-from-inside=false)")
		return nil
	}
	if j.isDryRun() {
		j.r.notef("a pod %s/%s would look whether the hub can be reached from inside (not in a dry run)", j.namespace, insidePod)
		return nil
	}
	pod, err := j.insidePod()
	if err != nil {
		return err
	}
	installer := j.member.install.Force()
	// A pod of an interrupted run has an outdated result.
	if _, err := installer.Delete(ctx, pod); err != nil {
		return err
	}
	if err := awaitDeleted(ctx, j.member, pod); err != nil {
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
	return j.awaitInsidePod(ctx, pod)
}

func (j *joinCommand) awaitInsidePod(ctx context.Context, object *unstructured.Unstructured) error {
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
			"pass --image-registry with a mirror or --agent-image with an image that the nodes can pull, or --check-from-inside=false to go without", j.namespace, insidePod, j.checkTimeout, podState(pod))
	case err != nil:
		return fmt.Errorf("watch pod %s: %w", insidePod, err)
	case pod.Status.Phase == corev1.PodSucceeded:
		j.r.okf("pods of this cluster reach the hub at %s", j.hubAddress.server)
	default:
		j.r.failf("pods of this cluster do not reach the hub at %s (%s): pass --hub-server with a URL that they reach, --hub-ca with its certificate authority, or open the way", j.hubAddress.server, podState(pod))
	}
	return nil
}

// podState returns why a pod has not succeeded, from its status.
func podState(pod *corev1.Pod) string {
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

// insidePod returns the pod that sends a request to the hub.
func (j *joinCommand) insidePod() (*unstructured.Unstructured, error) {
	return newCheckPod(j.namespace, insidePod, j.agentImage, j.checkTimeout, j.hubAddress.flags())
}

// newCheckPod returns a pod that runs the agent's image without any rights, for at most its lifetime.
func newCheckPod(namespace, name, image string, lifetime time.Duration, args []string) (*unstructured.Unstructured, error) {
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

// awaitDeleted waits until an object does not exist.
func awaitDeleted(ctx context.Context, c *cluster, object *unstructured.Unstructured) error {
	existing := &unstructured.Unstructured{}
	existing.SetGroupVersionKind(object.GroupVersionKind())
	err := poll(ctx, func(ctx context.Context) (bool, error) {
		err := c.client.Get(ctx, client.ObjectKeyFromObject(object), existing)
		return isAbsentKind(err), ignoreTransient(err)
	})
	if err != nil {
		return fmt.Errorf("%s of %s is not gone (finalizers: %v): %w", nameOf(object), c.what, existing.GetFinalizers(), err)
	}
	return nil
}
