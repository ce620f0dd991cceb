// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/CycloneDX/cyclonedx-gomod/pkg/generate/bin"
	"github.com/rs/zerolog"
)

// billOf returns the bill of materials of a binary in CycloneDX: the modules that the binary says it was built from, and the
// standard library.
func billOf(binary, version string) ([]byte, error) {
	generator, err := bin.NewGenerator(binary, bin.WithIncludeStdlib(true), bin.WithVersionOverride(version), bin.WithLogger(zerolog.Nop()))
	if err != nil {
		return nil, err
	}
	bill, err := generator.Generate()
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	err = cyclonedx.NewBOMEncoder(&text, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bill)
	return text.Bytes(), err
}

// checkBill returns an error unless the bill of materials is one of CycloneDX, of this program and its modules.
func (r release) checkBill(p platform) error {
	text, err := os.ReadFile(filepath.Join(r.out, p.bill()))
	if err != nil {
		return err
	}
	var b cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(bytes.NewReader(text), cyclonedx.BOMFileFormatJSON).Decode(&b); err != nil {
		return fmt.Errorf("%s: %w", p.bill(), err)
	}
	if b.BOMFormat != cyclonedx.BOMFormat || b.Metadata == nil || b.Metadata.Component == nil || b.Components == nil {
		return fmt.Errorf("%s: the format is %q, or there are no components", p.bill(), b.BOMFormat)
	}
	if c := b.Metadata.Component; c.Name != "github.com/tombolo-mcs/tombolo" || c.Version != r.version {
		return fmt.Errorf("%s: it is the bill of %s %s", p.bill(), c.Name, c.Version)
	}
	if !slices.ContainsFunc(*b.Components, func(c cyclonedx.Component) bool { return c.Name == "k8s.io/client-go" }) {
		return errors.New(p.bill() + ": client-go is not among the components")
	}
	return nil
}
