// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io"
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

// checkError returns errChecks if a check has failed.
func (r *report) checkError() error {
	if r.failed > 0 {
		return errChecks
	}
	return nil
}

// outcome prints the outcome of a write.
func (r *report) outcome(outcome any, object string) {
	fmt.Fprintf(r.out, "  %-10s %s\n", outcome, object)
}
