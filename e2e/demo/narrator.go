// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// slow is how long anything may take before the narrator says that it is still at it.
const slow = 2 * time.Second

// narrator tells the story.
type narrator struct {
	out   io.Writer
	style style
	begin time.Time

	mu sync.Mutex
}

// style says whether the text has colours.
type style string

const (
	plain    style = "plain"
	coloured style = "coloured"
)

// styleOf returns the style for a file: colours are for people only.
func styleOf(f *os.File) style {
	if term.IsTerminal(int(f.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" {
		return coloured
	}
	return plain
}

func newNarrator(out io.Writer, s style) *narrator {
	return &narrator{out: out, style: s, begin: time.Now()}
}

const (
	bold = "\x1b[1m"
	dim  = "\x1b[2m"
	blue = "\x1b[36m"
)

// title begins a chapter.
func (n *narrator) title(text string) {
	n.printf("\n%s\n", n.paint(bold, text))
}

// sayf tells what was done or is to be seen.
func (n *narrator) sayf(format string, args ...any) {
	n.printf("  %s\n", fmt.Sprintf(format, args...))
}

// afterf tells what was seen this long after the cause.
func (n *narrator) afterf(d time.Duration, format string, args ...any) {
	n.printf("  %s  %s\n", n.paint(blue, fmt.Sprintf("%6d ms", d.Milliseconds())), fmt.Sprintf(format, args...))
}

// moref goes on under a line of afterf.
func (n *narrator) moref(format string, args ...any) {
	n.printf("  %9s  %s\n", "", fmt.Sprintf(format, args...))
}

// during tells what the work is, does it, and says every few seconds that it goes on, with the latest news of it.
func (n *narrator) during(what string, work func(news func(format string, args ...any)) error) error {
	n.printf("  %s  %s\n", n.stamp(), what)
	news := "not yet done"
	var mu sync.Mutex
	done := make(chan error, 1)
	go func() {
		done <- work(func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			news = fmt.Sprintf(format, args...)
		})
	}()
	ticker := time.NewTicker(slow)
	defer ticker.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-ticker.C:
			mu.Lock()
			n.printf("  %s  %s\n", n.stamp(), n.paint(dim, "... "+news))
			mu.Unlock()
		}
	}
}

// stamp returns the time since the story began.
func (n *narrator) stamp() string {
	return n.paint(dim, fmt.Sprintf("%7.1f s", time.Since(n.begin).Seconds()))
}

func (n *narrator) paint(with, text string) string {
	if n.style == plain {
		return text
	}
	return with + text + "\x1b[0m"
}

func (n *narrator) printf(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	fmt.Fprintf(n.out, format, args...)
}
