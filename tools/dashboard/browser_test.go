// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dashboard_test opens the page of "kubectl clusterset dashboard" in Chromium.
package dashboard_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// waitLimit bounds every wait.
const waitLimit = 40 * time.Second

// browser is a window of Chromium.
type browser struct {
	testing.TB
	tab context.Context
}

// open starts Chromium without a display, and opens a page. The test fails if a script of the page fails, or if the page violates its policy,
// unless that is expected.
func open(t testing.TB, url string, expected ...string) *browser {
	t.Helper()
	program := ""
	for _, name := range []string{"google-chrome", "chromium-browser", "chromium"} { // as in browser.sh
		if path, err := exec.LookPath(name); err == nil {
			program = path
		}
	}
	if program == "" {
		lab.Skip(t, "there is no Chromium: make dashboard-check installs it on Debian, as root")
	}
	options := []chromedp.ExecAllocatorOption{chromedp.ExecPath(program), chromedp.WindowSize(1200, 770)}
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, cancel := chromedp.NewContext(context.Background(), chromedp.WithAllocatorOptions(options...))
	b := &browser{TB: t, tab: ctx}
	lab.Must(t, chromedp.Do(ctx, chromedp.Navigate("about:blank"))) // the browser ends with the context of the first call
	read := make(chan struct{})
	messages := chromedp.Console(ctx)
	go func() {
		defer close(read)
		for message, err := range messages {
			isExpected := slices.ContainsFunc(expected, func(text string) bool { return strings.Contains(message.Text, text) })
			if err == nil && (message.Type == chromedp.ConsoleError || message.IsException()) && !isExpected {
				t.Errorf("the browser reports: %s", message)
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-read
	})
	b.do(chromedp.Navigate(url))
	return b
}

func (b *browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.tab, waitLimit)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.Fatal(err)
	}
}

// click clicks an element, and another in its place if the page has replaced it before the click.
func (b *browser) click(selector string) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.tab, waitLimit)
	defer cancel()
	err := chromedp.Do(ctx, chromedp.Click(selector))
	for err != nil && strings.Contains(err.Error(), "Could not find node") {
		err = chromedp.Do(ctx, chromedp.Click(selector))
	}
	lab.Must(b, err)
}

// value returns the value of an expression in the page.
func value[T any](b *browser, expression string) T {
	b.Helper()
	result, err := chromedp.Run(b.tab, chromedp.Evaluate[T](expression))
	lab.Must(b, err)
	return result
}

// await waits until an expression is true in the page.
func (b *browser) await(expression string) {
	b.Helper()
	poll := chromedp.Poll[bool](expression, chromedp.WithPollingInterval(20*time.Millisecond), chromedp.WithPollingTimeout(waitLimit))
	if _, err := chromedp.Run(b.tab, poll); err != nil {
		b.Fatalf("it does not become true within %s: %s: %v\nthe page:\n%s", waitLimit, expression, err, value[string](b, "document.body.innerText"))
	}
}

// press presses keys in the element that has the focus.
func (b *browser) press(keys string) {
	b.Helper()
	b.do(chromedp.KeyEvent(keys))
}

// search replaces the words of the search.
func (b *browser) search(words string) {
	b.Helper()
	value[bool](b, fmt.Sprintf(`(() => { const field = document.querySelector("#search"); field.value = %s; return field.dispatchEvent(new Event("input")); })()`, quoted(words)))
}

// text returns an expression for the text of an element.
func text(selector string) string {
	return fmt.Sprintf("(document.querySelector(%s)?.innerText ?? '')", quoted(selector))
}

// shows waits until an element contains a text.
func (b *browser) shows(selector, contained string) {
	b.Helper()
	b.await(fmt.Sprintf("%s.includes(%s)", text(selector), quoted(contained)))
}

func quoted(text string) string {
	content, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string is valid
	}
	return string(content)
}

// screenshot writes an image of the page to the folder that SCREENSHOTS names, in a colour scheme.
func (b *browser) screenshot(name, scheme string) {
	b.Helper()
	folder := os.Getenv("SCREENSHOTS")
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}
	_, err := chromedp.Call(b.tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features})
	lab.Must(b, err)
	image, err := chromedp.Run(b.tab, chromedp.CaptureScreenshot())
	lab.Must(b, err)
	if folder != "" {
		lab.Must(b, os.WriteFile(filepath.Join(folder, name), image, 0o644))
	}
}
