// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package export implements the commands export and unexport, which select Services in the same way.
package export

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/connection"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/output"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/reading"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/internal/export"
	"github.com/tombolo-mcs/tombolo/internal/record"
)

const aboutExport = `Export Services of the current context's cluster: create a ServiceExport for each.

Select Services by name, by label with -l, or all of the namespace with --all. If a named Service cannot be exported, the
command fails before it changes anything; -l and --all skip such Services. Then the command waits until the hub stores the
exports, and reports conflicts with other clusters.`

const examplesExport = `  kubectl clusterset export shop/web
  kubectl clusterset export web cart -n shop --context east --dry-run=client -o yaml
  kubectl clusterset export -l tier=frontend -n shop --wait 1m`

// defaultExportWait is the default time to wait until the hub stores the exports.
const defaultExportWait = 10 * time.Second

// pollEvery is the time between two reads of an export.
const pollEvery = 100 * time.Millisecond

// errNotReady is returned if the exports have been created, but not all of them are ready.
var errNotReady = errors.New("the ServiceExports are there, but not all are ready: see above, and kubectl clusterset status")

// exportCommand is the state of the command export.
type exportCommand struct {
	selection
	wait time.Duration
}

// New returns the command export.
func New(usual *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	e := &exportCommand{}
	cmd := &cobra.Command{
		Use:     "export [NAMESPACE/]SERVICE...",
		Short:   "export Services of a cluster",
		Long:    aboutExport,
		Example: examplesExport,
	}
	e.define(cmd, usual, streams, connection.Completer{Usual: usual}.Services, e.run)
	e.AddObjectOutput(cmd)
	cmd.Flags().DurationVar(&e.wait, "wait", defaultExportWait, "how long to wait until the hub has the exports; 0 does not wait")
	return cmd
}

func (e *exportCommand) run(ctx context.Context) error {
	e.r.Titlef("Checking")
	names, err := e.check(ctx)
	if err != nil {
		return err
	}
	if err := e.r.CheckError(); err != nil {
		return err
	}
	e.r.Titlef("%s", e.Heading("In this cluster"))
	for _, name := range names {
		object := newServiceExport(e.namespace, name)
		outcome, err := e.member.Install.Apply(ctx, object)
		if err != nil {
			return err
		}
		if err := e.r.Applied(outcome, object); err != nil {
			return err
		}
	}
	if e.IsDryRun() || e.wait == 0 || len(names) == 0 {
		return nil
	}
	return e.await(ctx, names)
}

func newServiceExport(namespace, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(mcsv1beta1.SchemeGroupVersion.WithKind("ServiceExport"))
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

// check returns the Services that can be exported, sorted. It fails for a named one that cannot, and only reports a selected one.
func (e *exportCommand) check(ctx context.Context) ([]string, error) {
	if err := e.checkKinds(ctx); err != nil {
		return nil, err
	}
	services, err := e.services(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, service := range services {
		refusal := refusalOf(e.namespace, service)
		switch {
		case refusal == "":
			e.r.Okf("Service %s can be exported", service.name)
			names = append(names, service.name)
		case e.isSelector():
			e.r.Notef("Service %s is left out: %s", service.name, refusal)
		default:
			e.r.Failf("Service %s: %s", service.name, refusal)
		}
	}
	if e.isSelector() && len(names) == 0 {
		e.r.Notef("no Service of namespace %s is picked", e.namespace)
	}
	return names, nil
}

// refusalOf returns why a Service cannot be exported, and what to do; empty if it can.
func refusalOf(namespace string, s selectedService) string {
	wanted := &mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: s.name}}
	decided, rejection := export.Decide("this-cluster", wanted, s.service)
	switch {
	case rejection != nil && rejection.Reason == mcsv1beta1.ServiceExportReasonNoService:
		return fmt.Sprintf("there is none of that name in namespace %s: create it first, or pass -n with its namespace", namespace)
	case rejection != nil:
		return rejection.Message
	}
	if err := record.Check(decided); err != nil {
		return fmt.Sprintf("other clusters would refuse it: %v", err)
	}
	return ""
}

// await waits until the exports are ready or failed, and prints the results.
func (e *exportCommand) await(ctx context.Context, names []string) error {
	e.r.Titlef("Waiting up to %s for the hub", e.wait)
	waiting, cancel := context.WithTimeout(ctx, e.wait)
	defer cancel()
	var failed bool
	for _, name := range names {
		export := &mcsv1beta1.ServiceExport{}
		err := wait.PollUntilContextCancel(waiting, pollEvery, true, func(ctx context.Context) (bool, error) {
			err := e.member.Client.Get(ctx, client.ObjectKey{Namespace: e.namespace, Name: name}, export)
			return err == nil && isSettled(export), connection.IgnoreTransient(err)
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && waiting.Err() == nil {
			return fmt.Errorf("get ServiceExport %s/%s: %w", e.namespace, name, err)
		}
		if !e.printResult(export, name) {
			failed = true
		}
	}
	if failed {
		return errNotReady
	}
	return nil
}

// isSettled reports whether an export is ready, invalid or failed.
func isSettled(export *mcsv1beta1.ServiceExport) bool {
	valid := meta.FindStatusCondition(export.Status.Conditions, string(mcsv1beta1.ServiceExportConditionValid))
	ready := meta.FindStatusCondition(export.Status.Conditions, string(mcsv1beta1.ServiceExportConditionReady))
	switch {
	case valid != nil && valid.Status == metav1.ConditionFalse:
		return true
	case ready == nil:
		return false
	}
	return ready.Status == metav1.ConditionTrue || conditions.IsRefused(*ready)
}

// printResult prints the conditions of an export, and reports whether it is ready.
func (e *exportCommand) printResult(export *mcsv1beta1.ServiceExport, name string) bool {
	conditions := export.Status.Conditions
	if !meta.IsStatusConditionTrue(conditions, string(mcsv1beta1.ServiceExportConditionReady)) {
		e.r.Failf("%s: %s", name, output.Plain(reading.ExportMessage(export)))
		return false
	}
	e.r.Okf("%s: %s", name, output.Plain(meta.FindStatusCondition(conditions, string(mcsv1beta1.ServiceExportConditionReady)).Message))
	if c := meta.FindStatusCondition(conditions, string(mcsv1beta1.ServiceExportConditionConflict)); c != nil && c.Status == metav1.ConditionTrue {
		e.r.Notef("%s: %s See kubectl clusterset explain %s/%s", name, output.Plain(c.Message), e.namespace, name)
	}
	return true
}

// selectedService is a selected Service; service is nil if it does not exist.
type selectedService struct {
	name    string
	service *corev1.Service
}
