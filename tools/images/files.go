// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// file is one of an image's. All belong to root: the user that the image runs as can change none.
type file struct {
	// path is absolute, with slashes.
	path string
	// mode is that of a regular file, of a folder, which has no content, or of a symbolic link, whose content is its target.
	mode    fs.FileMode
	content []byte
}

// passwd names the user, for those who look it up (klog does).
const passwd = "nonroot:x:65532:65532:nonroot:/:/sbin/nologin\n"

const group = "nonroot:x:65532:\n"

// filesOf returns all that is in the image, sorted by path: its program, the roots of trust, and who the user is. There is
// no shell, no libc and no /tmp: nothing needs them, and the root can be mounted read-only.
func filesOf(i image, program []byte) []file {
	files := []file{
		{i.binary(), 0o755, program},
		{"/etc/passwd", 0o644, []byte(passwd)},
		{"/etc/group", 0o644, []byte(group)},
		{"/etc/ssl/certs/ca-certificates.crt", 0o644, certificates()},
	}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.path, b.path) })
	return files
}

// certificates returns the roots that Mozilla trusts, in PEM, from the module that the Go project keeps. CoreDNS needs
// them to forward with TLS, and the agent where the hub's certificate is a public one, so that its kubeconfig names no
// authority. A file can be replaced by a mount; roots linked into the programs could not. Roots that are trusted with a
// condition are left out: a file cannot say one.
func certificates() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			b.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return b.Bytes()
}

// folders returns the folders of the files, parents first.
func folders(files []file) []string {
	var found []string
	for _, f := range files {
		for dir := path.Dir(f.path); dir != "/"; dir = path.Dir(dir) {
			found = append(found, dir)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// layer returns the files as a tar archive with the same bytes every time.
func layer(files []file, date time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, dir := range folders(files) {
		if err := w.WriteHeader(header(tar.TypeDir, strings.TrimPrefix(dir, "/")+"/", 0o755, date)); err != nil {
			return nil, err
		}
	}
	for _, f := range files {
		if err := f.write(w, date); err != nil {
			return nil, fmt.Errorf("%s: %w", f.path, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// write adds the file to an archive.
func (f file) write(w *tar.Writer, date time.Time) error {
	name := strings.TrimPrefix(f.path, "/")
	switch f.mode.Type() {
	case fs.ModeDir:
		return w.WriteHeader(header(tar.TypeDir, name+"/", f.mode, date))
	case fs.ModeSymlink:
		h := header(tar.TypeSymlink, name, f.mode, date)
		h.Linkname = string(f.content)
		return w.WriteHeader(h)
	default:
		h := header(tar.TypeReg, name, f.mode, date)
		h.Size = int64(len(f.content))
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		_, err := w.Write(f.content)
		return err
	}
}

// stickyBit is POSIX's, which package fs keeps elsewhere.
const stickyBit = 0o1000

// header returns a tar header that says nothing of the machine.
func header(kind byte, name string, mode fs.FileMode, date time.Time) *tar.Header {
	bits := int64(mode &^ (fs.ModeType | fs.ModeSticky))
	if mode&fs.ModeSticky != 0 {
		bits |= stickyBit
	}
	return &tar.Header{Typeflag: kind, Name: name, Mode: bits, ModTime: date, Format: tar.FormatUSTAR}
}

// writeFiles writes the files below dir, which must be empty or not there: the Dockerfile copies the whole of it.
func writeFiles(dir string, files []file) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(entries) > 0 {
		return &fs.PathError{Op: "-out", Path: dir, Err: errors.New("must be empty: name another folder")}
	}
	for _, f := range files {
		name := filepath.Join(dir, filepath.FromSlash(f.path))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, f.content, f.mode); err != nil {
			return err
		}
		if err := os.Chmod(name, f.mode); err != nil { // whatever the umask
			return err
		}
	}
	return nil
}
