// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package output is what a user sees of a command: reports of checks and writes, tables, data, questions, completions, and the errors that
// decide the exit code. It replaces the control characters in the data of clusters.
package output

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/install"
)

// errChecks is returned if a check has failed, before anything is changed. The failed checks have been printed.
var errChecks = errors.New("nothing has been changed: see the failed checks above")

// errPartly is returned if a check has failed after other parts of the command have been written.
var errPartly = errors.New("a check has failed after the changes that are listed above, and nothing else has been changed: " +
	"remove the cause and run the same command again, which is safe")

// Report prints what a command does. It never gets a secret.
type Report struct {
	Out    io.Writer
	Failed int
	// Collect is true if the checks are printed as data, at the end.
	Collect bool
	part    string
	Checks  []CheckResult
	// objects is where the objects are printed that would be applied, nil if they are not. printed is their last part.
	objects io.Writer
	printed string
	dryRun  install.DryRun
	// changed is true if an object was written.
	changed bool
}

// CheckResult is a check, for a program that reads it.
type CheckResult struct {
	Part    string `json:"part"`
	Result  string `json:"result"`
	Message string `json:"message"`
}

// checkResults are the words for the marks of checks in data.
var checkResults = map[string]string{"ok": "ok", "note": "note", "FAIL": "failed"}

// Titlef prints the title of a part, such as "In this cluster".
func (r *Report) Titlef(format string, args ...any) {
	if r.part = fmt.Sprintf(format, args...); !r.Collect {
		fmt.Fprintln(r.Out, r.part)
	}
}

func (r *Report) linef(mark, format string, args ...any) {
	if r.Collect {
		r.Checks = append(r.Checks, CheckResult{r.part, checkResults[mark], fmt.Sprintf(format, args...)})
		return
	}
	fmt.Fprintf(r.Out, "  %-5s %s\n", mark, fmt.Sprintf(format, args...))
}

// Okf reports a check that has passed, with its result.
func (r *Report) Okf(format string, args ...any) { r.linef("ok", format, args...) }

// Notef reports something that is worth knowing.
func (r *Report) Notef(format string, args ...any) { r.linef("note", format, args...) }

// Failf reports a check that has failed, and what to do.
func (r *Report) Failf(format string, args ...any) {
	r.Failed++
	r.linef("FAIL", format, args...)
}

// CheckError returns errChecks if a check has failed, or errPartly if something has been changed before.
func (r *Report) CheckError() error {
	switch {
	case r.Failed == 0:
		return nil
	case r.changed:
		return errPartly
	}
	return errChecks
}

// Outcome prints the outcome of a write as kubectl does, with the name of the object as ResourceName returns it.
func (r *Report) Outcome(outcome install.Outcome, name string) {
	r.changed = r.changed || r.dryRun != install.ServerDryRun && r.dryRun != install.ClientDryRun && outcome != install.Unchanged && outcome != install.NotFound
	suffix := map[install.DryRun]string{install.ServerDryRun: " (server dry run)", install.ClientDryRun: " (dry run)"}[r.dryRun]
	fmt.Fprintf(r.Out, "%s %s%s\n", name, outcome, suffix)
}

// Deleted prints that an object was deleted, or was not found.
func (r *Report) Deleted(outcome install.Outcome, object client.Object, kind schema.GroupKind) {
	name := ResourceName(kind, object.GetName())
	if object.GetNamespace() == "" || outcome != install.Deleted {
		r.Outcome(outcome, name)
		return
	}
	r.Outcome(install.Outcome(fmt.Sprintf("%s from %s namespace", outcome, object.GetNamespace())), name)
}

// Applied prints the outcome of an object that was applied, and the object itself if objects are printed.
func (r *Report) Applied(outcome install.Outcome, object *unstructured.Unstructured) error {
	r.Outcome(outcome, ResourceName(object.GroupVersionKind().GroupKind(), object.GetName()))
	if r.objects == nil {
		return nil
	}
	content, err := yaml.Marshal(object.Object)
	if err != nil {
		return fmt.Errorf("print %s: %w", install.NameOf(object), err)
	}
	fmt.Fprint(r.objects, "---\n")
	if r.part != r.printed {
		fmt.Fprintf(r.objects, "# %s\n", r.part)
		r.printed = r.part
	}
	_, err = r.objects.Write(content)
	return err
}

// ResourceName returns the name of an object as "kubectl get -o name" prints it.
func ResourceName(kind schema.GroupKind, name string) string {
	if kind.Group == "" {
		return strings.ToLower(kind.Kind) + "/" + name
	}
	return strings.ToLower(kind.Kind) + "." + kind.Group + "/" + name
}
