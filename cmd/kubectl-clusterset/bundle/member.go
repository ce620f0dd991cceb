// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"fmt"
	"io"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/manifests"
	gatewayv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/gateway/v1alpha1"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Limits of the log of one container.
const (
	logLines = 5000
	logBytes = 2 << 20
)

// member adds the objects of Tombolo in a member, and the logs.
func (a *archive) member(ctx context.Context, m *survey.Member) error {
	ours := client.MatchingLabels{clusterset.LabelManagedBy: clusterset.ManagedBy}
	mirrored := client.MatchingLabels{discoveryv1.LabelManagedBy: clusterset.ManagedBy}
	system := client.InNamespace(manifests.AgentNamespace)
	for _, kind := range []struct {
		name    string
		list    client.ObjectList
		take    fields
		options []client.ListOption
	}{
		{"serviceexports", &mcsv1beta1.ServiceExportList{}, exportFacts, nil},
		{"serviceimports", &mcsv1beta1.ServiceImportList{}, whole, []client.ListOption{ours}},
		{"derived-services", &corev1.ServiceList{}, whole, []client.ListOption{ours}},
		{"endpointslices", &discoveryv1.EndpointSliceList{}, whole, []client.ListOption{mirrored}},
		{"serviceexportgrants", &policyv1alpha1.ServiceExportGrantList{}, whole, nil},
		{"clusterserviceaccesspolicies", &policyv1alpha1.ClusterServiceAccessPolicyList{}, whole, nil},
		{"serviceimportroutingpolicies", &policyv1alpha1.ServiceImportRoutingPolicyList{}, whole, nil},
		{"remotegateways", &gatewayv1alpha1.RemoteGatewayList{}, gatewayFacts, []client.ListOption{system}},
		{"gatewaystatuses", &gatewayv1alpha1.GatewayStatusList{}, gatewayFacts, []client.ListOption{system}},
		{"deployments", &appsv1.DeploymentList{}, agentFacts, []client.ListOption{system}},
		{"pods", &corev1.PodList{}, podFacts, []client.ListOption{system}},
		{"events-of-tombolo", &corev1.EventList{}, eventFacts, []client.ListOption{system}},
		{"events-of-exports", &corev1.EventList{}, eventFacts, []client.ListOption{client.MatchingFields{"involvedObject.kind": "ServiceExport"}}},
		{"events-of-imports", &corev1.EventList{}, eventFacts, []client.ListOption{client.MatchingFields{"involvedObject.kind": "ServiceImport"}}},
	} {
		if err := a.list(ctx, m.Client, fmt.Sprintf("members/%s/%s.json", m.ID, kind.name), kind.list, kind.take, kind.options...); err != nil {
			return err
		}
	}
	return a.logs(ctx, m)
}

// logs adds the logs of the agent and the DNS.
func (a *archive) logs(ctx context.Context, m *survey.Member) error {
	pods := &corev1.PodList{}
	if err := m.Client.List(ctx, pods, client.InNamespace(manifests.AgentNamespace)); err != nil {
		a.unreadf("members/%s/logs: %v", m.ID, err)
		return nil
	}
	api, err := kubernetes.NewForConfig(m.KubeContext.Config)
	if err != nil {
		return err
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		for _, container := range pod.Spec.Containers {
			name := fmt.Sprintf("members/%s/logs/%s.%s", m.ID, pod.Name, container.Name)
			if err := a.log(ctx, api, pod, name+".log", corev1.PodLogOptions{Container: container.Name}); err != nil {
				return err
			}
			if !hasRestarted(pod, container.Name) {
				continue
			}
			if err := a.log(ctx, api, pod, name+".previous.log", corev1.PodLogOptions{Container: container.Name, Previous: true}); err != nil {
				return err
			}
		}
	}
	return nil
}

// hasRestarted reports whether a container has ended and was started again: the log of the ended one says why.
func hasRestarted(pod *corev1.Pod, container string) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Name == container && s.RestartCount > 0 })
}

// log adds the end of the log of a container.
func (a *archive) log(ctx context.Context, api kubernetes.Interface, pod *corev1.Pod, name string, options corev1.PodLogOptions) error {
	lines, bytes := int64(logLines), int64(logBytes)
	options.TailLines, options.LimitBytes, options.Timestamps = &lines, &bytes, true
	text, err := read(ctx, api.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &options))
	switch {
	case apierrors.IsBadRequest(err) || apierrors.IsNotFound(err): // the container has not started, or its last log is deleted
		a.notef("%s: %v", name, err)
		return nil
	case err != nil:
		a.unreadf("%s: %v", name, err)
		return nil
	}
	return a.text(name, text)
}

func read(ctx context.Context, request *rest.Request) (string, error) {
	stream, err := request.Stream(ctx)
	if err != nil {
		return "", err
	}
	defer stream.Close()
	content, err := io.ReadAll(io.LimitReader(stream, logBytes))
	return string(content), err
}

// serverVersion adds the version of an API server.
func (a *archive) serverVersion(versions map[string]string, name string, config *rest.Config) {
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		a.unreadf("version of %s: %v", name, err)
		return
	}
	info, err := d.ServerVersion()
	if err != nil {
		a.unreadf("version of %s: %v", name, err)
		return
	}
	versions["kubernetes of "+name] = info.GitVersion
}
