// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	mcsv1alpha1 "sigs.k8s.io/mcs-api/pkg/apis/v1alpha1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/internal/export"
	aboutv1beta1 "github.com/tombolo-mcs/tombolo/pkg/api/about/v1beta1"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
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

// sources are the files that declare names, below a heading if it is given, and how. The reference of flags is generated, and make
// generate-check compares it with the programs.
var sources = []struct {
	kind, file, heading string
	pattern             *regexp.Regexp
}{
	{"agent flags", "docs/cli.md", "# tombolo-agent\n", regexp.MustCompile("(?m)^\\| `--?([a-z0-9-]+)")},
	{"flags", "docs/cli.md", "", regexp.MustCompile("(?m)(?:^\\||[:,]) `--?([a-z0-9-]+)")},
	{"targets", "Makefile", "", regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):(?:[^=]|$)`)},
	{"metrics", "docs/runbook.md", "", regexp.MustCompile("(?m)^\\| `((?:tombolo|coredns_clusterset)_\\w+)` ")}, // complete: make monitoring-check
}

// gather returns a checker that knows the names of a repository.
func gather(tree fs.FS) (*checker, error) {
	names := map[string]map[string]bool{}
	for _, source := range sources {
		text, err := fs.ReadFile(tree, source.file)
		if err != nil {
			return nil, err
		}
		found := map[string]bool{}
		_, below, _ := strings.Cut(string(text), source.heading)
		for _, name := range source.pattern.FindAllStringSubmatch(below, -1) {
			found[name[1]] = true
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("%s declares no %s: did its form change?", source.file, source.kind)
		}
		names[source.kind] = found
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

// seen are the words on objects that users meet, each of which is explained.
func seen() []string {
	words := []string{
		clusterset.ManagedBy, clusterset.LabelManagedBy, clusterset.LabelServiceImported, clusterset.AnnotationDerivedService,
		clusterset.AnnotationTokenExpires, discoveryv1.LabelManagedBy, mcsv1beta1.LabelServiceName, mcsv1beta1.LabelSourceCluster,
		clusterset.AnnotationImport, clusterset.LabelAliasOf, conditions.TypeAlias, conditions.ReasonAliased, conditions.ReasonPortsNotMatched,
		conditions.ReasonEndpointsLeftOut, conditions.ReasonTrafficPolicyLocal, conditions.ReasonZonesMissing, conditions.ReasonNoEndpoints, conditions.ReasonNoImport, conditions.ReasonAliasRefused, conditions.ReasonNotWritten,
		conditions.TypeDeletionPending, conditions.ReasonAwaitingConfirmation, string(export.ReasonNamespaceReserved), string(export.ReasonServiceReserved),
	}
	for _, reason := range []mcsv1beta1.ServiceExportConditionReason{
		mcsv1beta1.ServiceExportReasonValid, mcsv1beta1.ServiceExportReasonNoService, mcsv1beta1.ServiceExportReasonInvalidServiceType,
		mcsv1beta1.ServiceExportReasonExported, mcsv1beta1.ServiceExportReasonPending, mcsv1beta1.ServiceExportReasonFailed, conditions.ReasonNotAllowed,
		mcsv1beta1.ServiceExportReasonPortConflict, mcsv1beta1.ServiceExportReasonTypeConflict,
		mcsv1beta1.ServiceExportReasonSessionAffinityConflict, mcsv1beta1.ServiceExportReasonSessionAffinityConfigConflict,
		mcsv1beta1.ServiceExportReasonLabelsConflict, mcsv1beta1.ServiceExportReasonAnnotationsConflict,
		mcsv1beta1.ServiceExportReasonInternalTrafficPolicyConflict, mcsv1beta1.ServiceExportReasonTrafficDistributionConflict,
		mcsv1beta1.ServiceExportReasonIPFamilyConflict, mcsv1beta1.ServiceExportReasonNoConflicts,
	} {
		words = append(words, string(reason))
	}
	for _, reason := range []mcsv1beta1.ServiceImportConditionReason{
		mcsv1beta1.ServiceImportReasonReady, mcsv1beta1.ServiceImportReasonPending, mcsv1beta1.ServiceImportReasonIPFamilyNotSupported,
	} {
		words = append(words, string(reason))
	}
	return words
}

// checkObjects finds words that the document about them does not explain.
func (c *checker) checkObjects() {
	d := c.documents["docs/objects.md"]
	if d == nil {
		return
	}
	for _, word := range seen() {
		if !slices.ContainsFunc(d.spans, func(span part) bool { return span.text == word || strings.HasPrefix(span.text, word+": ") }) {
			c.reportf(d, 1, "%s is not explained here", word)
		}
	}
}

// checkManifests finds objects of Kubernetes in the blocks that their kinds' schemas do not admit. What is not of a kind that
// is known must be YAML.
func (c *checker) checkManifests(d *document) {
	for _, b := range d.blocks {
		switch b.language {
		case "yaml":
			c.checkManifest(d, b.part)
		case "sh":
			_, given, _ := script(b.text) // checkWords reports the error
			for _, h := range given {
				if strings.Contains(h.text, "apiVersion:") {
					c.checkManifest(d, part{b.line + h.line, h.text})
				}
			}
		}
	}
}

func (c *checker) checkManifest(d *document, p part) {
	reader := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(p.text)))
	for {
		object, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		var plain map[string]any
		if err == nil {
			err = sigsyaml.UnmarshalStrict(object, &plain)
		}
		if err == nil && plain["kind"] != nil && plain["apiVersion"] != nil { // or it is a part of something
			_, _, err = c.decoder.Decode(object, nil, nil)
		}
		if err != nil && !runtime.IsNotRegisteredError(err) {
			c.reportf(d, p.line, "this manifest is wrong: %v", err)
			return
		}
	}
}
