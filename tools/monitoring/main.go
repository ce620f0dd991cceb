// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Command monitoring checks what manifests/monitoring asks Prometheus for: that each query parses, that each metric and
// label in it was in a scrape of a real agent or DNS server, that each metric of ours is used, and that each alert has its
// entry in the runbook.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// errProblems says that the report itself holds the reason for the failure.
var errProblems = errors.New("manifests/monitoring asks for what there is not")

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "monitoring:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("monitoring", flag.ContinueOnError)
	root := flags.String("root", "../..", "the repository's root")
	folder := flags.String("scrapes", "../../out/scrapes", "where the test of e2e/integration/monitoring has left its scrapes")
	if err := flags.Parse(args); err != nil {
		return err
	}
	m, err := loadManifests(filepath.Join(*root, "manifests", "monitoring"))
	if err != nil {
		return err
	}
	runbook, err := os.ReadFile(filepath.Join(*root, "docs", "runbook.md"))
	if err != nil {
		return err
	}
	scraped, err := loadScrapes(*folder)
	if err != nil {
		return err
	}
	problems := append(m.check(scraped, string(runbook)), undocumented(scraped, string(runbook))...)
	for _, problem := range problems {
		fmt.Fprintln(out, problem)
	}
	if len(problems) > 0 {
		return errProblems
	}
	fmt.Fprintf(out, "%d alerts and %d queries of the dashboard ask for metrics that were scraped\n", len(m.rules), len(m.panels))
	return nil
}
