// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

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

// report prints what a command does. It never gets a secret.
type report struct {
	out    io.Writer
	failed int
	// collect is true if the checks are printed as data, at the end.
	collect bool
	part    string
	checks  []checkResult
	// objects is where the objects are printed that would be applied, nil if they are not. printed is their last part.
	objects io.Writer
	printed string
	dryRun  install.DryRun
	// changed is true if an object was written.
	changed bool
}

// checkResult is a check, for a program that reads it.
type checkResult struct {
	Part    string `json:"part"`
	Result  string `json:"result"`
	Message string `json:"message"`
}

// checkResults are the words for the marks of checks in data.
var checkResults = map[string]string{"ok": "ok", "note": "note", "FAIL": "failed"}

// titlef prints the title of a part, such as "In this cluster".
func (r *report) titlef(format string, args ...any) {
	if r.part = fmt.Sprintf(format, args...); !r.collect {
		fmt.Fprintln(r.out, r.part)
	}
}

func (r *report) linef(mark, format string, args ...any) {
	if r.collect {
		r.checks = append(r.checks, checkResult{r.part, checkResults[mark], fmt.Sprintf(format, args...)})
		return
	}
	fmt.Fprintf(r.out, "  %-5s %s\n", mark, fmt.Sprintf(format, args...))
}

// okf reports a check that has passed, with its result.
func (r *report) okf(format string, args ...any) { r.linef("ok", format, args...) }

// notef reports something that is worth knowing.
func (r *report) notef(format string, args ...any) { r.linef("note", format, args...) }

// failf reports a check that has failed, and what to do.
func (r *report) failf(format string, args ...any) {
	r.failed++
	r.linef("FAIL", format, args...)
}

// checkError returns errChecks if a check has failed, or errPartly if something has been changed before.
func (r *report) checkError() error {
	switch {
	case r.failed == 0:
		return nil
	case r.changed:
		return errPartly
	}
	return errChecks
}

// outcome prints the outcome of a write as kubectl does, with the name of the object as resourceName returns it.
func (r *report) outcome(outcome install.Outcome, name string) {
	r.changed = r.changed || r.dryRun != install.ServerDryRun && r.dryRun != install.ClientDryRun && outcome != install.Unchanged && outcome != install.NotFound
	suffix := map[install.DryRun]string{install.ServerDryRun: " (server dry run)", install.ClientDryRun: " (dry run)"}[r.dryRun]
	fmt.Fprintf(r.out, "%s %s%s\n", name, outcome, suffix)
}

// deleted prints that an object was deleted, or was not found.
func (r *report) deleted(outcome install.Outcome, object client.Object, kind schema.GroupKind) {
	name := resourceName(kind, object.GetName())
	if object.GetNamespace() == "" || outcome != install.Deleted {
		r.outcome(outcome, name)
		return
	}
	r.outcome(install.Outcome(fmt.Sprintf("%s from %s namespace", outcome, object.GetNamespace())), name)
}

// applied prints the outcome of an object that was applied, and the object itself if objects are printed.
func (r *report) applied(outcome install.Outcome, object *unstructured.Unstructured) error {
	r.outcome(outcome, resourceName(object.GroupVersionKind().GroupKind(), object.GetName()))
	if r.objects == nil {
		return nil
	}
	content, err := yaml.Marshal(object.Object)
	if err != nil {
		return fmt.Errorf("print %s: %w", nameOf(object), err)
	}
	fmt.Fprint(r.objects, "---\n")
	if r.part != r.printed {
		fmt.Fprintf(r.objects, "# %s\n", r.part)
		r.printed = r.part
	}
	_, err = r.objects.Write(content)
	return err
}

// resourceName returns the name of an object as "kubectl get -o name" prints it.
func resourceName(kind schema.GroupKind, name string) string {
	if kind.Group == "" {
		return strings.ToLower(kind.Kind) + "/" + name
	}
	return strings.ToLower(kind.Kind) + "." + kind.Group + "/" + name
}
