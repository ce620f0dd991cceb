// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	framework "github.com/tombolo-mcs/tombolo/e2e/framework/world"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
)

// The agents have fewer listening ports than those that are released, and a shorter quarantine (few-ports.patch), so that a test can use
// all ports and wait for the end of a quarantine.
const (
	fewPorts   = 60
	quarantine = 10 * time.Second
)

// filler has as many ports as the services of clients leave, and waiting one more.
const (
	filler  = "filler"
	waiting = "waiting"
)

// fewPortsPrograms builds an agent and a gateway with few listening ports, and with the bug that CHAOS_BUG names, if it does.
func fewPortsPrograms(t *testing.T) (agent, gateway string) {
	t.Helper()
	patches := []string{"few-ports.patch"}
	if name := os.Getenv("CHAOS_BUG"); name != "" {
		patches = append(patches, patchOf(name))
	}
	folder := t.TempDir()
	file, err := overlay(folder, patches...)
	lab.Must(t, err)
	agent, gateway = filepath.Join(folder, "tombolo-agent"), filepath.Join(folder, "tombolo-gateway")
	for _, path := range []string{agent, gateway} {
		lab.Must(t, lab.Build(context.Background(), filepath.Join("..", ".."), filepath.Base(path), path, "-overlay="+file))
	}
	return agent, gateway
}

// offerFillers creates the Services filler, to whose ports nothing listens, waiting and large. They are not exported yet.
func (n *networks) offerFillers(t *testing.T) {
	t.Helper()
	var ports []corev1.ServicePort
	for i := range int32(fewPorts - len(servicesAcross)) {
		ports = append(ports, corev1.ServicePort{Name: fmt.Sprintf("p%d", i), Protocol: corev1.ProtocolTCP, Port: i + 1, TargetPort: intstr.FromInt32(1)})
	}
	one := corev1.ServicePort{Name: "lines", Protocol: corev1.ProtocolTCP, Port: 80, TargetPort: intstr.FromInt32(n.requests.serve(t, waiting))}
	sends := corev1.ServicePort{
		Name: "bytes", Protocol: corev1.ProtocolTCP, Port: 80, TargetPort: intstr.FromInt32(int32(lab.ServeTCP(t, "0.0.0.0:0", sendLarge).Port)),
	}
	for _, service := range []*corev1.Service{
		framework.Service(n.key(filler), ports...), framework.Service(n.key(waiting), one), framework.Service(n.key(large), sends),
	} {
		lab.Must(t, n.Members["b"].Create(t.Context(), service))
		lab.Must(t, n.Members["b"].Create(t.Context(), framework.Slice(service, "v4", host(5), host(6))))
	}
}

func (n *networks) key(service string) framework.Key {
	return framework.Key{Namespace: n.namespace, Name: service}
}

// usePorts returns when no listening port is free, and the import of another service says so.
func usePorts(ctx context.Context, n *networks) error {
	if err := errors.Join(n.fillPorts(ctx), n.export(ctx, waiting)); err != nil {
		return err
	}
	return n.lacksPort(ctx)
}

// withdrawWhenFull withdraws a service of clients while no listening port is free, and exports another one at once. That must not get
// the port before the end of the quarantine, because clients that have not read the change use it.
func withdrawWhenFull(ctx context.Context, n *networks) error {
	err := n.fillPorts(ctx)
	return errors.Join(err, n.Members["b"].Delete(ctx, framework.Export(n.key(servicesAcross[0]))), n.export(ctx, waiting))
}

// fillPorts returns when filler uses all ports that are left.
func (n *networks) fillPorts(ctx context.Context) error {
	if err := n.export(ctx, filler); err != nil {
		return err
	}
	return soon(ctx, func(ctx context.Context) error {
		slices, err := n.Members["a"].Mirrored(ctx, n.key(filler))
		if err == nil && (len(slices) == 0 || len(slices[0].Ports) < fewPorts-len(servicesAcross)) {
			err = fmt.Errorf("%s does not use all ports: %v", filler, slices)
		}
		return err
	})
}

// soon is eventually for what happens within a minute, a few quarantines.
func soon(ctx context.Context, check func(context.Context) error) error {
	return lab.Await(ctx, 100*time.Millisecond, time.Minute, check)
}

func (n *networks) export(ctx context.Context, service string) error {
	return n.Members["b"].Create(ctx, framework.Export(n.key(service)))
}

// lacksPort returns when the import of waiting says that no port is free.
func (n *networks) lacksPort(ctx context.Context) error {
	want := fmt.Sprintf("the gateways' %d listening ports are all in use", fewPorts)
	return soon(ctx, func(ctx context.Context) error {
		found := &mcsv1beta1.ServiceImport{}
		if err := n.Members["a"].Get(ctx, n.key(waiting), found); err != nil {
			return err
		}
		c := apimeta.FindStatusCondition(found.Status.Conditions, conditions.TypeSourceUnusable)
		if c == nil || c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, want) {
			return fmt.Errorf("no condition of the import says %q: %v", want, found.Status.Conditions)
		}
		return nil
	})
}

// freePorts withdraws filler, and returns when waiting has got one of its ports and is answered.
func freePorts(ctx context.Context, n *networks) error {
	b := n.Members["b"]
	err := errors.Join(b.Delete(ctx, framework.Export(n.key(filler))), n.gotPort(ctx))
	return errors.Join(err, b.Delete(ctx, framework.Export(n.key(waiting))), n.vanished(ctx, filler), n.vanished(ctx, waiting))
}

// reuseAfterQuarantine returns when waiting has got the port of the service that was withdrawn, and then exports that again.
func reuseAfterQuarantine(ctx context.Context, n *networks) error {
	return errors.Join(n.gotPort(ctx), freePorts(ctx, n), n.export(ctx, servicesAcross[0]))
}

// gotPort returns when waiting is answered, and its import no longer says that it has no port.
func (n *networks) gotPort(ctx context.Context) error {
	return soon(ctx, func(ctx context.Context) error {
		addresses, err := n.addresses(ctx, waiting)
		if err != nil || len(addresses) == 0 {
			return errors.Join(err, fmt.Errorf("%s has no listening port", waiting))
		}
		found := &mcsv1beta1.ServiceImport{}
		if err := n.Members["a"].Get(ctx, n.key(waiting), found); err != nil {
			return err
		}
		if c := apimeta.FindStatusCondition(found.Status.Conditions, conditions.TypeSourceUnusable); c != nil {
			return errors.New(c.Message)
		}
		return ask(ctx, addresses[0], waiting, n.requests.line(waiting))
	})
}

func (n *networks) vanished(ctx context.Context, service string) error {
	return soon(ctx, func(ctx context.Context) error {
		return framework.Absent(n.Members["a"].Get(ctx, n.key(service), &mcsv1beta1.ServiceImport{}))
	})
}

// deleteNamespace deletes the namespace of the imports while their ports are in use, and returns when it does not exist.
func deleteNamespace(ctx context.Context, n *networks) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n.namespace}}
	return errors.Join(n.Members["a"].Delete(ctx, namespace), soon(ctx, func(ctx context.Context) error {
		return framework.Absent(n.Members["a"].Get(ctx, client.ObjectKeyFromObject(namespace), namespace))
	}))
}

func createNamespace(ctx context.Context, n *networks) error {
	return n.Members["a"].Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n.namespace}})
}
