// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	mcsv1alpha1 "sigs.k8s.io/mcs-api/pkg/apis/v1alpha1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/cli"
	aboutv1beta1 "github.com/tombolo-mcs/tombolo/pkg/api/about/v1beta1"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// facts are what the documents speak of, as it really is.
type facts struct {
	root       string
	command    *cobra.Command // kubectl clusterset
	agentFlags map[string]bool
	targets    map[string]bool // of make
	metrics    map[string]bool
	decoder    runtime.Decoder // strict, of the kinds that are known
}

var (
	agentFlagRow = regexp.MustCompile("(?m)^\\| `--?([a-z0-9-]+)")
	makeTarget   = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):(?:[^=]|$)`)
)

// gather returns what is so in the repository at root.
func gather(root string) (*facts, error) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		return nil, err
	}
	agent, err := os.ReadFile(filepath.Join(root, "docs", "agent.md")) // generated: make generate-check says if it is stale
	if err != nil {
		return nil, err
	}
	f := &facts{
		root:       root,
		command:    cli.NewCommand(cli.Build{Version: "devel"}, genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard}),
		agentFlags: names(agentFlagRow, string(agent)),
		targets:    names(makeTarget, string(makefile)),
		decoder:    strictDecoder(),
	}
	if f.metrics, err = metrics(root); err != nil {
		return nil, err
	}
	if len(f.agentFlags) == 0 || len(f.targets) == 0 {
		return nil, errors.New("docs/agent.md has no flags, or the Makefile no targets: has their form changed?")
	}
	return f, nil
}

func names(pattern *regexp.Regexp, text string) map[string]bool {
	result := map[string]bool{}
	for _, found := range pattern.FindAllStringSubmatch(text, -1) {
		result[found[1]] = true
	}
	return result
}

// metricSources are where metrics are declared, how, and what comes before the names there.
var metricSources = []struct {
	files   string
	pattern *regexp.Regexp
	prefix  string
}{
	{"controllers/*/*.go", regexp.MustCompile(`"(tombolo_[a-z_]+)"`), ""},
	{"coredns-plugin/clusterset/metrics.go", regexp.MustCompile(`Subsystem: subsystem, Name: "([a-z_]+)"`), "coredns_clusterset_"},
}

// metrics returns the names of our metrics, as Prometheus knows them.
func metrics(root string) (map[string]bool, error) {
	result := map[string]bool{}
	for _, source := range metricSources {
		files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(source.files)))
		if err != nil {
			return nil, err
		}
		before := len(result)
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			for name := range names(source.pattern, string(content)) {
				result[source.prefix+name] = true
			}
		}
		if len(result) == before {
			return nil, fmt.Errorf("%s declares no metrics: has its form changed?", source.files)
		}
	}
	return result, nil
}

func strictDecoder() runtime.Decoder {
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientscheme.AddToScheme, hubv1alpha1.AddToScheme, aboutv1beta1.AddToScheme, mcsv1alpha1.Install, mcsv1beta1.Install,
	} {
		utilruntime.Must(add(known))
	}
	return serializer.NewCodecFactory(known, serializer.EnableStrict).UniversalDeserializer()
}

// has is whether there is a file or folder of that name.
func (f *facts) has(name string) bool {
	_, err := os.Stat(filepath.Join(f.root, filepath.FromSlash(name)))
	return err == nil
}

// hasName is whether a name such as pkg/hub.Store begins with a package's folder.
func (f *facts) hasName(name string) bool {
	last, _, dotted := strings.Cut(path.Base(name), ".")
	return dotted && last != "" && f.has(path.Join(path.Dir(name), last))
}

// hasTest is whether the tests of a folder have one of that name.
func (f *facts) hasTest(folder, name string) bool {
	return f.testsMention(folder, fmt.Sprintf("func %s(", name))
}

// testsMention is whether the tests of a folder contain a text.
func (f *facts) testsMention(folder, text string) bool {
	files, err := filepath.Glob(filepath.Join(f.root, filepath.FromSlash(folder), "*_test.go"))
	if err != nil {
		return false // the pattern is wrong: no folder is called so
	}
	for _, file := range files {
		if content, err := os.ReadFile(file); err == nil && strings.Contains(string(content), text) {
			return true
		}
	}
	return false
}

// isOurFlag is whether one of our commands has a flag of that name.
func (f *facts) isOurFlag(name string) bool {
	if f.agentFlags[name] || name == "help" || name == "version" {
		return true
	}
	found := false
	var look func(*cobra.Command)
	look = func(command *cobra.Command) {
		for _, flags := range []*pflag.FlagSet{command.Flags(), command.PersistentFlags()} {
			found = found || flags.Lookup(name) != nil
		}
		for _, child := range command.Commands() {
			look(child)
		}
	}
	look(f.command)
	return found
}
