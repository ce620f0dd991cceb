// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bundle collects data for a bug report: the state of a clusterset, the logs of its agents, and all versions. It contains
// no secrets: it copies only fields of objects that are known to hold none, and removes anything that resembles a secret from all
// texts.
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

// Limits of a bundle in bytes, uncompressed.
const (
	maxTotal = 64 << 20
	maxFile  = 8 << 20
)

// archive writes a bundle.
type archive struct {
	zip     *gzip.Writer
	tar     *tar.Writer
	at      time.Time
	secrets scrubber
	size    int
	// maxTotal and maxFile limit its size.
	maxTotal, maxFile int
	// notes list what is missing or left out, and unread those of them about what could not be read.
	notes, unread []string
}

func newArchive(out io.Writer, at time.Time) *archive {
	zip := gzip.NewWriter(out)
	return &archive{zip: zip, tar: tar.NewWriter(zip), at: at, maxTotal: maxTotal, maxFile: maxFile}
}

// notef adds a note about missing data.
func (a *archive) notef(format string, args ...any) {
	a.notes = append(a.notes, fmt.Sprintf(format, args...))
}

// unreadf adds a note about data that could not be read.
func (a *archive) unreadf(format string, args ...any) {
	a.notef(format, args...)
	a.unread = append(a.unread, a.secrets.scrub(a.notes[len(a.notes)-1]))
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

// text adds a text without secrets. If the text is too long, it keeps the end, which has the latest lines.
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
	header := &tar.Header{Name: path.Join("clusterset", safePath(name)), Mode: 0o600, Size: int64(len(content)), ModTime: a.at}
	if err := a.tar.WriteHeader(header); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if _, err := io.WriteString(a.tar, content); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// safePath returns a path within the folder in which the archive is unpacked.
func safePath(name string) string {
	return strings.TrimPrefix(path.Clean("/"+name), "/")
}

// close writes the notes, and closes the archive.
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
