// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bundle collects what a bug report needs: what a clusterset is like, what its agents say, and what versions there
// are. No secret goes into it: of objects, only fields that are known to hold none are taken; and all of it is searched for
// what looks like one.
package bundle

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"strings"
	"time"
)

// Bounds of a bundle, before it is compressed.
const (
	maxTotal = 64 << 20
	maxFile  = 8 << 20
)

// archive is a bundle in the making.
type archive struct {
	zip     *gzip.Writer
	tar     *tar.Writer
	at      time.Time
	secrets scrubber
	size    int
	// maxTotal and maxFile bound it.
	maxTotal, maxFile int
	// notes are what could not be had, or was left out.
	notes []string
}

func newArchive(out io.Writer, at time.Time) *archive {
	zip := gzip.NewWriter(out)
	return &archive{zip: zip, tar: tar.NewWriter(zip), at: at, maxTotal: maxTotal, maxFile: maxFile}
}

// notef notes what is missing.
func (a *archive) notef(format string, args ...any) {
	a.notes = append(a.notes, fmt.Sprintf(format, args...))
}

// object adds a value as JSON.
func (a *archive) object(name string, value any) error {
	content, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	var generic any
	if err := json.Unmarshal(content, &generic); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if content, err = json.MarshalIndent(withoutAnnotations(generic), "", "  "); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return a.text(name, string(content)+"\n")
}

// text adds a text, without the secrets in it, and not more of it than there is room for: its end, which tells of the last
// that has happened.
func (a *archive) text(name, content string) error {
	content = a.secrets.scrub(content)
	room := min(a.maxFile, a.maxTotal-a.size)
	if len(content) > room {
		a.notef("%s: %d bytes from its beginning are left out", name, len(content)-room)
		content = content[len(content)-room:]
	}
	a.size += len(content)
	return a.write(name, content)
}

func (a *archive) write(name, content string) error {
	header := &tar.Header{Name: path.Join("clusterset", safe(name)), Mode: 0o600, Size: int64(len(content)), ModTime: a.at}
	if err := a.tar.WriteHeader(header); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if _, err := io.WriteString(a.tar, content); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// safe returns a path that lies below where the archive is unpacked.
func safe(name string) string {
	return strings.TrimPrefix(path.Clean("/"+name), "/")
}

// close writes what is missing, and ends the archive.
func (a *archive) close() error {
	if len(a.notes) > 0 {
		if err := a.write("left-out.txt", a.secrets.scrub(strings.Join(a.notes, "\n")+"\n")); err != nil {
			return err
		}
	}
	if err := a.tar.Close(); err != nil {
		return err
	}
	return a.zip.Close()
}
