// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

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
