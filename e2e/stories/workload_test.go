// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/complete"
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
	p.eventually("Deployment "+name+" in cluster "+p.cluster.Name, func(ctx context.Context) error {
		var d appsv1.Deployment
		if err := p.client.Get(ctx, p.key(name), &d); err != nil {
			return err
		}
		want := *d.Spec.Replicas
		if s := d.Status; s.ObservedGeneration < d.Generation || s.UpdatedReplicas != want || s.ReadyReplicas != want || s.Replicas != want {
			return fmt.Errorf("%d of %d pods are ready, %d updated, %d in all", s.ReadyReplicas, want, s.UpdatedReplicas, s.Replicas)
		}
		return nil
	})
}

// service returns a dual-stack Service for the pods of a Deployment of the same name: TCP 80 to 8080, named http, and UDP
// 80 to 8080, named udp. Change it before it is created.
func service(name string) *corev1.Service {
	both := corev1.IPFamilyPolicyRequireDualStack
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{
			IPFamilyPolicy: &both,
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

// withdraw deletes an export.
func (p *place) withdraw(name string) {
	p.Helper()
	p.remove(export(name))
}
