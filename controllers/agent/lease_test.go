// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// podReader has one Pod.
type podReader struct {
	corev1client.PodInterface

	pod *corev1.Pod
	err error
}

func (r podReader) Get(context.Context, string, metav1.GetOptions) (*corev1.Pod, error) {
	return r.pod, r.err
}

// TestHasEnded: a process that holds the lease has ended only if that is proven: it ran in the Pod of this one, or the kubelet says that
// its Pod has terminated.
//
// spec: K2
func TestHasEnded(t *testing.T) {
	t.Parallel()
	own := clusterset.LeaseHolder{Pod: "own", PodUID: "1", Nonce: "own"}
	terminated := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	pod := func(uid types.UID, phase corev1.PodPhase, states ...corev1.ContainerState) podReader {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}, Status: corev1.PodStatus{Phase: phase}}
		for _, state := range states {
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{State: state})
		}
		return podReader{pod: p}
	}
	other := clusterset.LeaseHolder{Pod: "other", PodUID: "2", Nonce: "x"}
	for name, test := range map[string]struct {
		holder clusterset.LeaseHolder
		pods   podReader
		want   bool
	}{
		"the same Pod":                  {clusterset.LeaseHolder{Pod: "own", PodUID: "1", Nonce: "x"}, podReader{err: errors.New("not read")}, true},
		"this process":                  {own, pod("1", corev1.PodRunning, running), false},
		"a Pod that has failed":         {other, pod("2", corev1.PodFailed, terminated), true},
		"a Pod that has succeeded":      {other, pod("2", corev1.PodSucceeded, terminated, terminated), true},
		"a Pod that runs":               {other, pod("2", corev1.PodRunning, running), false},
		"a container to be restarted":   {other, pod("2", corev1.PodRunning, terminated), false},
		"a Pod of a node that is lost":  {other, pod("2", corev1.PodFailed, running), false},
		"a Pod without statuses":        {other, pod("2", corev1.PodFailed), false},
		"another Pod of that name":      {other, pod("3", corev1.PodFailed, terminated), false},
		"an absent Pod":                 {other, podReader{err: apierrors.NewNotFound(corev1.Resource("pods"), "other")}, false},
		"a Pod that cannot be read":     {other, podReader{err: apierrors.NewForbidden(corev1.Resource("pods"), "other", nil)}, false},
		"an older agent":                {clusterset.LeaseHolder{Pod: "other"}, pod("2", corev1.PodFailed, terminated), false},
		"an agent whose Pod is unknown": {clusterset.LeaseHolder{Pod: "host", Nonce: "x"}, pod("2", corev1.PodFailed, terminated), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &lease{own: own, pods: test.pods}
			check.Equal(t, "has ended", test.want, l.hasEnded(t.Context(), test.holder))
		})
	}
	unknown := &lease{own: clusterset.LeaseHolder{Pod: "host", Nonce: "own"}}
	check.Equal(t, "without a Pod", false, unknown.hasEnded(t.Context(), clusterset.LeaseHolder{Pod: "host", Nonce: "x"}))
}
