// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/assess"
	"github.com/tombolo-mcs/tombolo/internal/check"
)

// served is a server that listens, and the link that it prints.
type served struct {
	*Server
	link *url.URL
}

func serve(t *testing.T) served {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	check.Must(t, err)
	s := New(func(assess.Status) []byte { return []byte("<svg/>") })
	link, err := url.Parse(s.URL(listener.Addr()))
	check.Must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Serve(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		check.Equal(t, "error of Serve", "", check.Message(<-ended))
	})
	return served{s, link}
}

// browser returns a client that keeps cookies.
func browser(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	check.Must(t, err)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Jar: jar, Transport: transport}
}

// at returns the URL of a path of the server.
func (s served) at(path string) string { return "http://" + s.link.Host + path }

// answer is a response that was read.
type answer struct {
	code    int
	header  http.Header
	cookies []*http.Cookie
	text    string
}

func get(t *testing.T, c *http.Client, address string, change func(*http.Request)) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	check.Must(t, err)
	if change != nil {
		change(request)
	}
	response, err := c.Do(request)
	check.Must(t, err)
	defer func() { check.Must(t, response.Body.Close()) }()
	text, err := io.ReadAll(response.Body)
	check.Must(t, err)
	return answer{response.StatusCode, response.Header, response.Cookies(), string(text)}
}

// TestLink: the link opens the page once; the cookie that it gives opens it again.
func TestLink(t *testing.T) {
	t.Parallel()
	s := serve(t)
	first, second := browser(t), browser(t)
	for name, path := range map[string]string{"without a token": "/", "with an empty token": "/?token=", "with another token": "/?token=AAAA"} {
		if got := get(t, first, s.at(path), nil); got.code != http.StatusForbidden || len(got.cookies) > 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	opened := get(t, first, s.link.String(), nil)
	if opened.code != http.StatusOK || !strings.Contains(opened.text, `src="/assets/main.js"`) || len(opened.cookies) != 1 {
		t.Fatalf("the link: %+v", opened)
	}
	cookie := opened.cookies[0]
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Value == s.link.Query().Get("token") || !strings.HasSuffix(cookie.Name, s.link.Port()) {
		t.Errorf("the cookie is %s", cookie)
	}
	if got := get(t, first, s.at("/"), nil); got.code != http.StatusOK {
		t.Errorf("the same browser again: %+v", got)
	}
	const used = "The link is not valid, or was used before. Run the command again for another one.\n"
	if got := get(t, second, s.link.String(), nil); got.code != http.StatusForbidden || got.text != used {
		t.Errorf("another browser: %+v", got)
	}
}

// TestRefused: what the page does not send is refused, also with the cookie.
func TestRefused(t *testing.T) {
	t.Parallel()
	s := serve(t)
	admitted := browser(t)
	get(t, admitted, s.link.String(), nil)
	forwarded := func(r *http.Request) {
		r.Host = "localhost:1234"
		r.AddCookie(admitted.Jar.Cookies(s.link)[0])
	}
	for name, test := range map[string]struct {
		client *http.Client
		path   string
		change func(*http.Request)
		want   int
	}{
		"the page":                     {admitted, "/", nil, http.StatusOK},
		"through a forwarded port":     {admitted, "/", forwarded, http.StatusOK},
		"another host name":            {admitted, "/", func(r *http.Request) { r.Host = "rebound.example:80" }, http.StatusForbidden},
		"a name that only looks alike": {admitted, "/", func(r *http.Request) { r.Host = "127.0.0.1.example" }, http.StatusForbidden},
		"no host name":                 {admitted, "/", func(r *http.Request) { r.Host = "." }, http.StatusForbidden},
		"POST":                         {admitted, "/", func(r *http.Request) { r.Method = http.MethodPost }, http.StatusMethodNotAllowed},
		"DELETE of a service":          {admitted, "/api/service", func(r *http.Request) { r.Method = http.MethodDelete }, http.StatusMethodNotAllowed},
		"events without a cookie":      {http.DefaultClient, "/api/events", nil, http.StatusForbidden},
		"a service without a cookie":   {http.DefaultClient, "/api/service?namespace=shop&name=web", nil, http.StatusForbidden},
		"a trace without a cookie":     {http.DefaultClient, "/api/trace?namespace=shop&name=web", nil, http.StatusForbidden},
		"the picture without a cookie": {http.DefaultClient, "/clusterset.svg", nil, http.StatusForbidden},
		"a trace for another port's page": {
			admitted, "/api/trace?namespace=shop&name=web", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }, http.StatusForbidden,
		},
		"events for another site's page": {
			admitted, "/api/events", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, http.StatusForbidden,
		},
		"names that are none":        {admitted, "/api/service?namespace=Shop&name=../web", nil, http.StatusBadRequest},
		"no name":                    {admitted, "/api/trace", nil, http.StatusBadRequest},
		"before anything was read":   {admitted, "/api/service?namespace=shop&name=web", nil, http.StatusServiceUnavailable},
		"a path that does not exist": {admitted, "/api/secrets", nil, http.StatusNotFound},
		"a file outside the page":    {admitted, "/assets/..%2fserver.go", nil, http.StatusNotFound},
	} {
		response := get(t, test.client, s.at(test.path), test.change)
		if response.code != test.want {
			t.Errorf("%s: %d %s, want %d", name, response.code, response.text, test.want)
		}
		for header, want := range map[string]string{
			"Content-Security-Policy": policy, "Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
		} {
			if got := response.header.Get(header); got != want && (header != "Cache-Control" || response.code != http.StatusNotFound) {
				t.Errorf("%s: the header %s is %q", name, header, got)
			}
		}
	}
	for _, part := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"} {
		if !strings.Contains(policy, part+";") && !strings.HasSuffix(policy, part) || strings.Contains(policy, "unsafe") {
			t.Errorf("the policy %q has no %s", policy, part)
		}
	}
}

// stream reads the updates that a browser gets.
type stream struct{ lines *bufio.Scanner }

func (s served) stream(t *testing.T, c *http.Client) stream {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.at("/api/events"), http.NoBody)
	check.Must(t, err)
	response, err := c.Do(request)
	check.Must(t, err)
	t.Cleanup(func() { _ = response.Body.Close() })
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("events: %s", response.Status)
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	return stream{lines}
}

// sent is an update as a browser decodes it.
type sent struct {
	Whole    bool
	Members  []member
	Problems []assess.Problem
	Services []row
	Gone     []string
	Changes  []change
}

func (s stream) next(t *testing.T) sent {
	t.Helper()
	for s.lines.Scan() {
		if data, ok := strings.CutPrefix(s.lines.Text(), "data: "); ok {
			var result sent
			check.Must(t, json.Unmarshal([]byte(data), &result))
			return result
		}
	}
	t.Fatalf("the stream has ended: %v", s.lines.Err())
	return sent{}
}

// opened returns a server and a browser that it has admitted.
func opened(t *testing.T) (served, *http.Client) {
	t.Helper()
	s, c := serve(t), browser(t)
	get(t, c, s.link.String(), nil)
	return s, c
}

// TestEvents: a browser gets the page, then only what changes; one that connects later gets the page with the changes.
func TestEvents(t *testing.T) {
	t.Parallel()
	s, c := opened(t)
	events := s.stream(t, c)
	check.Must(t, s.Publish(observation("web 1/1", "cart 2/2")))
	if got := events.next(t); !got.Whole || len(got.Services) != 2 || len(got.Changes) != 0 {
		t.Errorf("the first update is %+v", got)
	}
	check.Must(t, s.Publish(observation("web 0/1", "cart 2/2")))
	got := events.next(t)
	if got.Whole || len(got.Services) != 1 || got.Services[0].Name != "web" || got.Services[0].Exporters[0].Ready != 0 || len(got.Changes) != 1 {
		t.Errorf("after a change: %+v", got)
	}
	check.Must(t, s.Publish(observation("cart 2/2")))
	if got := events.next(t); got.Whole || len(got.Services) != 0 || len(got.Gone) != 1 || got.Gone[0] != "shop/web" {
		t.Errorf("after a service has gone: %+v", got)
	}
	later := s.stream(t, c).next(t)
	if !later.Whole || len(later.Services) != 1 || len(later.Changes) != 2 || later.Changes[1].Text != "no member exports it" {
		t.Errorf("another window gets %+v", later)
	}
}

// TestStreams: the number of streams is limited, and one that ends makes room for another.
func TestStreams(t *testing.T) {
	t.Parallel()
	s, c := opened(t)
	check.Must(t, s.Publish(observation("web 1/1")))
	var cancel context.CancelFunc
	for range maxStreams {
		var ctx context.Context
		ctx, cancel = context.WithCancel(t.Context())
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.at("/api/events"), http.NoBody)
		check.Must(t, err)
		response, err := c.Do(request)
		check.Must(t, err)
		t.Cleanup(func() { _ = response.Body.Close() })
	}
	if got := get(t, c, s.at("/api/events"), nil); got.code != http.StatusServiceUnavailable {
		t.Errorf("one more stream: %+v", got)
	}
	cancel()
	s.streams <- struct{}{} // blocks until the server has noticed
	<-s.streams
	s.stream(t, c).next(t)
}

// TestPicture: the page offers the picture of "graph".
func TestPicture(t *testing.T) {
	t.Parallel()
	s, c := opened(t)
	check.Must(t, s.Publish(observation("web 1/1")))
	if got := get(t, c, s.at("/clusterset.svg"), nil); got.text != "<svg/>" || got.header.Get("Content-Type") != "image/svg+xml" {
		t.Errorf("the picture: %+v", got)
	}
}
