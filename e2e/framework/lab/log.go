// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"io"
	"os"
)

// logTailBytes is more than enough for logTailLines.
const logTailBytes = 64 << 10

// LogTail returns the last 20 lines of the log, or why it cannot be read.
func (p *Process) LogTail() string {
	f, err := os.Open(p.logFile)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > logTailBytes {
		if _, err := f.Seek(-logTailBytes, io.SeekEnd); err != nil {
			return err.Error()
		}
	}
	content, err := io.ReadAll(f)
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(content), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-logTailLines):], []byte("\n")))
}
