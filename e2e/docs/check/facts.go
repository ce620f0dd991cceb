// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	mcsv1alpha1 "sigs.k8s.io/mcs-api/pkg/apis/v1alpha1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	aboutv1beta1 "github.com/tombolo-mcs/tombolo/pkg/api/about/v1beta1"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// checker compares documents with what the repository has.
type checker struct {
	documents  map[string]*document // by path
	problems   []problem
	tree       fs.FS
	agentFlags map[string]bool
	flags      map[string]bool // of the agent and of kubectl clusterset
	targets    map[string]bool // of make
	metrics    map[string]bool
	decoder    runtime.Decoder // strict, of the kinds that are known
}

// sources are the files that declare names: how, and the prefix that the names have elsewhere. The references of flags are
// generated, and make generate-check compares them with the programs.
var sources = []struct {
	kind, files, prefix string
	pattern             *regexp.Regexp
}{
	{"agent flags", "docs/agent.md", "", regexp.MustCompile("(?m)^\\| `--?([a-z0-9-]+)")},
	{"flags", "docs/cli.md", "", regexp.MustCompile("(?m)^\\| `--?([a-z0-9-]+)")},
	{"targets", "Makefile", "", regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):(?:[^=]|$)`)},
	{"metrics", "controllers/*/*.go", "", regexp.MustCompile(`"(tombolo_[a-z_]+)"`)},
	{"metrics", "coredns-plugin/clusterset/metrics.go", "coredns_clusterset_", regexp.MustCompile(`Subsystem: subsystem, Name: "([a-z_]+)"`)},
}

// gather returns a checker that knows the names of a repository.
func gather(tree fs.FS) (*checker, error) {
	names := map[string]map[string]bool{}
	for _, source := range sources {
		files, err := fs.Glob(tree, source.files)
		if err != nil {
			return nil, err
		}
		found := map[string]bool{}
		for _, file := range files {
			text, err := fs.ReadFile(tree, file)
			if err != nil {
				return nil, err
			}
			for _, name := range source.pattern.FindAllSubmatch(text, -1) {
				found[source.prefix+string(name[1])] = true
			}
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("%s declares no %s: did its form change?", source.files, source.kind)
		}
		if names[source.kind] == nil {
			names[source.kind] = map[string]bool{}
		}
		maps.Copy(names[source.kind], found)
	}
	names["agent flags"]["help"], names["flags"]["version"] = true, true
	maps.Copy(names["flags"], names["agent flags"])
	known := runtime.NewScheme()
	utilruntime.Must(errors.Join(
		clientscheme.AddToScheme(known), hubv1alpha1.AddToScheme(known), aboutv1beta1.AddToScheme(known),
		mcsv1alpha1.Install(known), mcsv1beta1.Install(known),
	))
	return &checker{
		tree: tree, agentFlags: names["agent flags"], flags: names["flags"], targets: names["targets"], metrics: names["metrics"],
		decoder: serializer.NewCodecFactory(known, serializer.EnableStrict).UniversalDeserializer(),
	}, nil
}

// has is whether there is a file or folder of that name.
func (c *checker) has(name string) bool {
	_, err := fs.Stat(c.tree, name)
	return err == nil
}

// hasTest is whether the tests of a folder have one of that name.
func (c *checker) hasTest(folder, name string) bool {
	return c.testsMention(folder, fmt.Sprintf("func %s(", name))
}

// testsMention is whether the tests of a folder contain a text.
func (c *checker) testsMention(folder, text string) bool {
	files, _ := fs.Glob(c.tree, path.Join(folder, "*_test.go")) // an invalid pattern matches nothing
	for _, file := range files {
		if content, err := fs.ReadFile(c.tree, file); err == nil && strings.Contains(string(content), text) {
			return true
		}
	}
	return false
}
