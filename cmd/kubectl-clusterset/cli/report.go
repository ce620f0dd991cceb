// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io"
)

// errChecks says that a command has stopped before it changed anything. What is wrong has been printed.
var errChecks = errors.New("nothing has been changed: see the failed checks above")

// report tells what a command does, as it does it. It prints no secret: it is given none.
type report struct {
	out    io.Writer
	failed int
}

// titlef begins a part, such as "In this cluster".
func (r *report) titlef(format string, args ...any) { fmt.Fprintf(r.out, format+"\n", args...) }

func (r *report) linef(mark, format string, args ...any) {
	fmt.Fprintf(r.out, "  %-5s %s\n", mark, fmt.Sprintf(format, args...))
}

// okf tells of a check that has passed, and what it has found.
func (r *report) okf(format string, args ...any) { r.linef("ok", format, args...) }

// notef tells of something that a person should know.
func (r *report) notef(format string, args ...any) { r.linef("note", format, args...) }

// failf tells of a check that has failed, and in the same line what to do.
func (r *report) failf(format string, args ...any) {
	r.failed++
	r.linef("FAIL", format, args...)
}

// verdict returns errChecks if a check has failed.
func (r *report) verdict() error {
	if r.failed > 0 {
		return errChecks
	}
	return nil
}

// did tells what became of an object.
func (r *report) did(outcome any, object string) {
	fmt.Fprintf(r.out, "  %-10s %s\n", outcome, object)
}
