// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

// checkManifests returns the objects of Kubernetes in the blocks that their kinds' schemas do not admit. What is not of a
// kind that is known must be YAML.
func checkManifests(d *document, known *facts) []problem {
	var problems []problem
	for _, b := range d.blocks {
		switch b.language {
		case "yaml":
			problems = append(problems, known.invalid(d.path, b.line, b.text)...)
		case "sh":
			_, given := script(b.text)
			for _, h := range given {
				if strings.Contains(h.text, "apiVersion:") {
					problems = append(problems, known.invalid(d.path, b.line+h.line, h.text)...)
				}
			}
		}
	}
	return problems
}

func (f *facts) invalid(path string, line int, text string) []problem {
	var problems []problem
	reader := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		object, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return problems
		}
		if err == nil {
			err = f.decode(object)
		}
		if err != nil {
			return append(problems, problem{path, line, fmt.Sprintf("this manifest is wrong: %v", err)})
		}
	}
}

func (f *facts) decode(object []byte) error {
	var plain map[string]any
	if err := sigsyaml.UnmarshalStrict(object, &plain); err != nil {
		return err
	}
	if plain["kind"] == nil || plain["apiVersion"] == nil {
		return nil // a part of something
	}
	_, _, err := f.decoder.Decode(object, nil, nil)
	if runtime.IsNotRegisteredError(err) {
		return nil
	}
	return err
}
