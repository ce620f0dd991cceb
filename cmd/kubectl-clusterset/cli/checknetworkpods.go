// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/install"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/manifests"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

const (
	// listeningPod sends back what comes to networkPort, and reachingPod sends it.
	listeningPod = "tombolo-check-network-listen"
	reachingPod  = "tombolo-check-network-reach"
	networkPort  = "8082"
)

// networkPods are the pods of a check-network.
type networkPods struct {
	check *networkCheck
	at    []*podPlace
}

// podPlace is a cluster in which pods are started.
type podPlace struct {
	member  *survey.Member
	install install.Installer
	image   string
}

// listener is a pod that sends back what comes.
type listener struct {
	id        clusterset.ClusterID
	addresses []netip.Addr
}

// add starts the listening pod of a cluster.
func (p *networkPods) add(ctx context.Context, m *survey.Member) error {
	place := &podPlace{member: m, install: install.New(m.Client).Force(), image: p.check.image}
	if place.image == "" && m.Agent != nil {
		place.image = imageIn(m.Agent)
	}
	if place.image == "" {
		return usageError{fmt.Errorf("%s has no agent whose image could be used: pass --agent-image", m.ID)}
	}
	p.at = append(p.at, place)
	return place.start(ctx, p.check, listeningPod, "--check-network-listen=:"+networkPort)
}

// start starts a pod anew: one that an interrupted run has left says nothing about now.
func (p *podPlace) start(ctx context.Context, check *networkCheck, name string, args ...string) error {
	pod, err := checkingPod(manifests.AgentNamespace, name, p.image, 3*check.timeout, args)
	if err != nil {
		return err
	}
	if err := p.remove(ctx, name); err != nil {
		return err
	}
	if err := awaitGone(ctx, &cluster{what: "cluster " + string(p.member.ID), client: p.member.Client}, pod); err != nil {
		return err
	}
	if _, err := p.install.Apply(ctx, pod); err != nil {
		return fmt.Errorf("start pod %s in cluster %s: %w", name, p.member.ID, err)
	}
	return nil
}

func (p *podPlace) remove(ctx context.Context, name string) error {
	pod := &unstructured.Unstructured{}
	pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	pod.SetNamespace(manifests.AgentNamespace)
	pod.SetName(name)
	if _, err := p.install.Delete(ctx, pod); err != nil {
		return fmt.Errorf("remove pod %s of cluster %s: %w", name, p.member.ID, err)
	}
	return nil
}

// remove removes all pods that have been started.
func (p *networkPods) remove(ctx context.Context) error {
	var errs []error
	for _, place := range p.at {
		errs = append(errs, place.remove(ctx, listeningPod), place.remove(ctx, reachingPod))
	}
	return errors.Join(errs...)
}

// listen returns the listening pods once all run.
func (p *networkPods) listen(ctx context.Context) ([]listener, error) {
	var result []listener
	for _, place := range p.at {
		pod, err := p.await(ctx, place, listeningPod, corev1.PodRunning)
		if err != nil {
			return nil, err
		}
		l := listener{id: place.member.ID}
		for _, ip := range pod.Status.PodIPs {
			address, err := netip.ParseAddr(ip.IP)
			if err != nil {
				return nil, fmt.Errorf("the address of pod %s of cluster %s: %w", listeningPod, l.id, err)
			}
			l.addresses = append(l.addresses, address)
		}
		p.check.r.okf("%s: %v", l.id, l.addresses)
		result = append(result, l)
	}
	return result, nil
}

// reach has a pod of one cluster send packets to those of all others, and returns what became of them, by address.
func (p *networkPods) reach(ctx context.Context, m *survey.Member, listeners []listener) (map[string]string, error) {
	place := p.of(m)
	var targets []string
	for _, l := range listeners {
		for _, address := range l.addresses {
			if l.id != m.ID {
				targets = append(targets, net.JoinHostPort(address.String(), networkPort))
			}
		}
	}
	if err := place.start(ctx, p.check, reachingPod, "--check-network-reach="+strings.Join(targets, ",")); err != nil {
		return nil, err
	}
	if _, err := p.await(ctx, place, reachingPod, corev1.PodSucceeded); err != nil {
		return nil, err
	}
	set, err := kubernetes.NewForConfig(m.Place.Config)
	if err != nil {
		return nil, err
	}
	log, err := set.CoreV1().Pods(manifests.AgentNamespace).GetLogs(reachingPod, &corev1.PodLogOptions{}).Do(ctx).Raw()
	if err != nil {
		return nil, fmt.Errorf("read the log of pod %s of cluster %s: %w", reachingPod, m.ID, err)
	}
	var told []struct{ Address, Error string }
	if err := json.Unmarshal(log, &told); err != nil {
		return nil, fmt.Errorf("the log of pod %s of cluster %s: %w: %.200q", reachingPod, m.ID, err, log)
	}
	results := map[string]string{}
	for _, t := range told {
		results[t.Address] = t.Error
	}
	return results, nil
}

func (p *networkPods) of(m *survey.Member) *podPlace {
	for _, place := range p.at {
		if place.member == m {
			return place
		}
	}
	return nil
}

// await returns a pod that has come to a phase.
func (p *networkPods) await(ctx context.Context, place *podPlace, name string, phase corev1.PodPhase) (*corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, p.check.timeout)
	defer cancel()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: manifests.AgentNamespace, Name: name}}
	err := poll(ctx, func(ctx context.Context) (bool, error) {
		err := place.member.Client.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		if err == nil && pod.Status.Phase == corev1.PodFailed {
			return false, errors.New("it has failed")
		}
		return err == nil && pod.Status.Phase == phase, ignoreTransient(err)
	})
	if err != nil {
		return nil, fmt.Errorf("pod %s of cluster %s is not %s (%s): %w: where its image cannot be pulled, pass --agent-image",
			name, place.member.ID, phase, stateOf(pod), err)
	}
	return pod, nil
}
