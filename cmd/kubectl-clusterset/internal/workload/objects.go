// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/definition"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/identity"
	"github.com/tombolo-mcs/tombolo/manifests"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
)

// AllObjects returns the objects of all profiles, of the gateways and of automatic export, in the order in which they can be deleted,
// without the kinds of which users have written objects.
func AllObjects() ([]*unstructured.Unstructured, error) {
	objects, err := manifests.Install(manifests.InstallOptions{Parts: manifests.Production, Gateway: true, AutoExport: true})
	slices.Reverse(objects)
	return slices.DeleteFunc(objects, IsRuleDefinition), err
}

// IsRuleDefinition reports whether an object defines a kind of grants or policies.
func IsRuleDefinition(object *unstructured.Unstructured) bool {
	return definition.Is(object) && strings.HasSuffix(object.GetName(), "."+policyv1alpha1.GroupVersion.Group)
}

// AgentDeployment returns the agent's Deployment among the manifests.
func AgentDeployment(objects []*unstructured.Unstructured) (*unstructured.Unstructured, error) {
	for _, object := range objects {
		if object.GetKind() == "Deployment" && object.GetName() == manifests.AgentDeployment {
			return object, nil
		}
	}
	return nil, fmt.Errorf("the manifests have no Deployment %s", manifests.AgentDeployment)
}

// NewCheckPod returns a pod that runs the agent's image without any rights, for at most its lifetime.
func NewCheckPod(namespace, name, image string, lifetime time.Duration, args []string) (*unstructured.Unstructured, error) {
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{identity.LabelPartOf: identity.PartOf}},
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

// PodState returns why a pod has not succeeded, from its status.
func PodState(pod *corev1.Pod) string {
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
