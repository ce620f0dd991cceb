// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/complete"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// probeContainer returns a container of the image that all pods of the stories run.
func probeContainer(command ...string) corev1.Container {
	return corev1.Container{
		Name:            "probe",
		Image:           complete.ProbeImage,
		ImagePullPolicy: corev1.PullNever,
		Command:         command,
	}
}

// serverSpec returns a pod that serves, over TCP and UDP on port 8080 and over TCP on 8081, and says who it is.
func (p *place) serverSpec() corev1.PodSpec {
	field := func(name, path string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
	}
	c := probeContainer("/probe", "serve", "-tcp", "8080,8081", "-udp", "8080", "-linger", "5s")
	c.Env = []corev1.EnvVar{{Name: "CLUSTER", Value: p.cluster.Name}, field("POD", "metadata.name"), field("NODE", "spec.nodeName")}
	c.ReadinessProbe = &corev1.Probe{
		ProbeHandler:     corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/readyz", Port: intstr.FromInt32(8080)}},
		PeriodSeconds:    1,
		FailureThreshold: 1,
		TimeoutSeconds:   10, // a busy machine makes no pod unready
	}
	return corev1.PodSpec{Containers: []corev1.Container{c}}
}

// deploy creates a Deployment of servers and waits until they are ready.
func (p *place) deploy(name string, replicas int32) {
	p.Helper()
	p.deployPods(name, replicas, p.serverSpec())
}

// deployPods creates a Deployment of such pods and waits until they are ready.
func (p *place) deployPods(name string, replicas int32, pods corev1.PodSpec) {
	p.Helper()
	labels := map[string]string{"app": name}
	p.create(&appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pods},
		},
	})
	p.awaitDeployment(name)
}

// awaitDeployment waits until a Deployment's pods are those that it asks for, and all are ready.
func (p *place) awaitDeployment(name string) {
	p.Helper()
	var d appsv1.Deployment
	p.shows("Deployment "+name+" in cluster "+p.cluster.Name, name, &d, func() error {
		return completeOrWhy(&d)
	})
}

func completeOrWhy(d *appsv1.Deployment) error {
	want := *d.Spec.Replicas
	if s := d.Status; s.ObservedGeneration < d.Generation || s.UpdatedReplicas != want || s.ReadyReplicas != want || s.Replicas != want {
		return fmt.Errorf("%s: %d of %d pods are ready, %d updated, %d in all", d.Name, s.ReadyReplicas, want, s.UpdatedReplicas, s.Replicas)
	}
	return nil
}

// scale has a Deployment have so many pods, and waits until it has exactly these, all ready.
func (p *place) scale(name string, replicas int32) {
	p.Helper()
	change(p, name, &appsv1.Deployment{}, func(d *appsv1.Deployment) { d.Spec.Replicas = &replicas })
	p.awaitPods(name, int(replicas))
}

// awaitPods waits until a workload has so many pods, all ready and none about to end.
func (p *place) awaitPods(name string, count int) {
	p.Helper()
	p.within(podWaitLimit, fmt.Sprintf("%d pods of %s in cluster %s", count, name, p.cluster.Name), func(context.Context) error {
		pods := p.pods(name)
		if len(pods) != count {
			return fmt.Errorf("there are %d", len(pods))
		}
		for i := range pods {
			if err := readyOrWhy(&pods[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// pods returns those of a workload of the scene, but for those that are about to end.
func (p *place) pods(name string) []corev1.Pod {
	p.Helper()
	return p.podsWith(p.namespace, client.MatchingLabels{"app": name})
}

func (p *place) podsWith(namespace string, labels client.MatchingLabels) []corev1.Pod {
	p.Helper()
	var list corev1.PodList
	if err := p.client.List(p.Context(), &list, client.InNamespace(namespace), labels); err != nil {
		p.Fatalf("cluster %s: list the pods %v of namespace %s: %v", p.cluster.Name, labels, namespace, err)
	}
	return slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })
}

// podsOf returns those of a Deployment in any namespace, but for those that are about to end.
func (p *place) podsOf(namespace, deployment string) []corev1.Pod {
	p.Helper()
	var d appsv1.Deployment
	if err := p.client.Get(p.Context(), client.ObjectKey{Namespace: namespace, Name: deployment}, &d); err != nil {
		p.Fatalf("cluster %s: Deployment %s/%s: %v", p.cluster.Name, namespace, deployment, err)
	}
	return p.podsWith(namespace, d.Spec.Selector.MatchLabels)
}

// service returns a Service for the pods of a Deployment of the same name, with all IP families of its cluster: TCP 80 to 8080, named
// http, and UDP 80 to 8080, named udp. Change it before it is created.
func service(name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{
			IPFamilyPolicy: new(corev1.IPFamilyPolicyPreferDualStack),
			Selector:       map[string]string{"app": name},
			Ports: []corev1.ServicePort{
				{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80, TargetPort: intstr.FromInt32(8080)},
				{Name: "udp", Protocol: corev1.ProtocolUDP, Port: 80, TargetPort: intstr.FromInt32(8080)},
			},
		},
	}
}

// headless returns the same Service without an address of its own.
func headless(name string) *corev1.Service {
	s := service(name)
	s.Spec.ClusterIP = corev1.ClusterIPNone
	return s
}

func export(name string) *mcsv1beta1.ServiceExport {
	return &mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// offer deploys servers, makes a Service for them and exports it.
func (p *place) offer(name string, replicas int32) {
	p.Helper()
	p.deploy(name, replicas)
	p.create(service(name), export(name))
}

func (p *place) withdraw(name string) {
	p.Helper()
	p.remove(export(name))
}

// imported waits until a service is imported and returns its ServiceImport.
func (p *place) imported(name string) *mcsv1beta1.ServiceImport {
	p.Helper()
	var si mcsv1beta1.ServiceImport
	p.shows("the import of "+name+" in cluster "+p.cluster.Name, name, &si, func() error {
		if !meta.IsStatusConditionTrue(si.Status.Conditions, string(mcsv1beta1.ServiceImportConditionReady)) {
			return fmt.Errorf("it is not ready: %+v", si.Status.Conditions)
		}
		return nil
	})
	return &si
}

func (p *place) derived(name string) *corev1.Service {
	p.Helper()
	var s corev1.Service
	lab.Must(p, p.client.Get(p.Context(), p.key(p.imported(name).Annotations[clusterset.AnnotationDerivedService]), &s))
	return &s
}
