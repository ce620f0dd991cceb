// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/x509"
	"debug/elf"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/opencontainers/image-spec/specs-go/v1"
)

// verifyConfig returns what is wrong with what a runtime is told of an image.
func verifyConfig(config v1.Image, i image, r release, p platform) error {
	c := config.Config
	var ports []string
	for _, port := range i.ports {
		ports = append(ports, port.String())
	}
	slices.Sort(ports)
	switch {
	case config.OS != p.os || config.Architecture != p.arch:
		return fmt.Errorf("the configuration is for %s/%s", config.OS, config.Architecture)
	case c.User != user:
		return fmt.Errorf("user %q, want %s", c.User, user)
	case !slices.Equal(c.Entrypoint, []string{i.binary()}) || len(c.Cmd) > 0:
		return fmt.Errorf("starts %q with %q, want %s", c.Entrypoint, c.Cmd, i.binary())
	case !slices.Equal(slices.Sorted(maps.Keys(c.ExposedPorts)), ports):
		return fmt.Errorf("ports %v, want %v", slices.Sorted(maps.Keys(c.ExposedPorts)), ports)
	case config.Created == nil || !config.Created.Equal(r.time):
		return fmt.Errorf("created %v, want %s, the date of the commit", config.Created, r.time)
	}
	for _, l := range labels(i, r) {
		if got := c.Labels[l.key]; got != l.value || got == "" {
			return fmt.Errorf("label %s=%q, want %q", l.key, got, l.value)
		}
	}
	return nil
}

// verifyLayer returns what is wrong with an image's files: these and no others, owned by root, of the commit's date.
func verifyLayer(content []byte, i image, r release, p platform) error {
	entries, err := readTar(bytes.NewReader(content))
	if err != nil {
		return err
	}
	modes := map[string]fs.FileMode{
		i.name:                              0o755,
		"etc/":                              fs.ModeDir | 0o755,
		"etc/group":                         0o644,
		"etc/passwd":                        0o644,
		"etc/ssl/":                          fs.ModeDir | 0o755,
		"etc/ssl/certs/":                    fs.ModeDir | 0o755,
		"etc/ssl/certs/ca-certificates.crt": 0o644,
	}
	got, want := slices.Sorted(maps.Keys(entries)), slices.Sorted(maps.Keys(modes))
	if !slices.Equal(got, want) {
		return fmt.Errorf("files %v, want %v", got, want)
	}
	for _, name := range got {
		h := entries[name].header
		switch {
		case h.FileInfo().Mode() != modes[name]:
			return fmt.Errorf("%s: mode %s, want %s", name, h.FileInfo().Mode(), modes[name])
		case h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Gname != "":
			return fmt.Errorf("%s: belongs to %d:%d (%s:%s), want root", name, h.Uid, h.Gid, h.Uname, h.Gname)
		case !h.ModTime.Equal(r.time):
			return fmt.Errorf("%s: of %s, want %s, the date of the commit", name, h.ModTime.UTC(), r.time)
		}
	}
	if err := verifyUser(string(entries["etc/passwd"].content), string(entries["etc/group"].content)); err != nil {
		return err
	}
	if err := verifyCertificates(entries["etc/ssl/certs/ca-certificates.crt"].content); err != nil {
		return fmt.Errorf("ca-certificates.crt: %w", err)
	}
	if err := verifyProgram(entries[i.name].content, r, p); err != nil {
		return fmt.Errorf("%s: %w", i.name, err)
	}
	return nil
}

// verifyUser returns an error where the user that the image runs as has no name, or a shell.
func verifyUser(users, groups string) error {
	uid, gid, _ := strings.Cut(user, ":")
	fields := strings.Split(strings.TrimSuffix(users, "\n"), ":")
	if len(fields) != 7 || fields[2] != uid || fields[3] != gid || fields[6] != "/sbin/nologin" {
		return fmt.Errorf("/etc/passwd %q, want one user, %s, who cannot log in", users, user)
	}
	fields = strings.Split(strings.TrimSuffix(groups, "\n"), ":")
	if len(fields) != 4 || fields[2] != gid {
		return fmt.Errorf("/etc/group %q, want one group, %s", groups, gid)
	}
	return nil
}

// verifyCertificates returns an error where the text is not a list of authorities. Mozilla trusts more than a hundred.
func verifyCertificates(text []byte) error {
	count := 0
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return err
		}
		if !certificate.IsCA {
			return fmt.Errorf("%s is no authority", certificate.Subject)
		}
		count++
	}
	if count < 100 {
		return fmt.Errorf("%d authorities, want 100 or more", count)
	}
	return nil
}

// verifyProgram returns an error where the program is not static, not stripped, for another processor, or knows another
// version.
func verifyProgram(content []byte, r release, p platform) error {
	f, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		return err
	}
	machines := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
	if f.Machine != machines[p.arch] {
		return fmt.Errorf("is for %s, want %s", f.Machine, machines[p.arch])
	}
	for _, segment := range f.Progs {
		if segment.Type == elf.PT_INTERP || segment.Type == elf.PT_DYNAMIC {
			return fmt.Errorf("has a segment %s: it is not static, and there is no libc", segment.Type)
		}
	}
	for _, section := range f.Sections {
		if section.Name == ".symtab" || strings.HasPrefix(section.Name, ".debug_") {
			return fmt.Errorf("has a section %s: it is not stripped", section.Name)
		}
	}
	if !bytes.Contains(content, []byte(r.version)) {
		return errors.New("does not know its version " + r.version)
	}
	return nil
}
