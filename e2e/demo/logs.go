// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// tailLines is how much of each log an error shows.
const tailLines = 12

// explain returns an error of the story with the ends of the logs, and where the whole logs are kept.
func (s *stage) explain(err error) error {
	if s.lab == nil {
		return err
	}
	var text strings.Builder
	for _, m := range s.members() {
		for _, p := range m.programs {
			fmt.Fprintf(&text, "\nThe log of %s ends:\n%s\n", p.name, tail(p.log))
		}
	}
	folder, saveErr := s.saveLogs()
	if saveErr != nil {
		return fmt.Errorf("%w\n%sThe logs could not be kept: %w", err, text.String(), saveErr)
	}
	return fmt.Errorf("%w\n%s\nAll logs are in %s", err, text.String(), folder)
}

// tail returns the last lines of a file, or why it cannot be read.
func tail(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	return "  " + strings.Join(lines[max(0, len(lines)-tailLines):], "\n  ")
}

// saveLogs copies the logs of all processes to a new folder, and returns it.
func (s *stage) saveLogs() (string, error) {
	folder, err := os.MkdirTemp("", "tombolo-demo-logs-")
	if err != nil {
		return "", err
	}
	logs, err := filepath.Glob(filepath.Join(s.lab.Folder(), "*", "*.log"))
	if err != nil {
		return "", err
	}
	for _, log := range logs {
		cluster, file := filepath.Split(log)
		if err := copyFile(log, filepath.Join(folder, filepath.Base(cluster)+"-"+file)); err != nil {
			return "", err
		}
	}
	return folder, nil
}

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}
