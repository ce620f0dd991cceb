// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/assess"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/explain"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/trace"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/watch"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

//go:embed assets
var assets embed.FS

// Limits of the server.
const (
	maxStreams    = 16
	writeTimeout  = 10 * time.Second
	traceTimeout  = 2 * time.Minute
	headerTimeout = 10 * time.Second
	maxHeader     = 16 << 10
)

// Server serves the page.
type Server struct {
	guard *guard
	feed  *feed
	// picture returns the static picture of a status.
	picture func(assess.Status) []byte
	// streams and traces have an element for each that is in progress.
	streams, traces chan struct{}

	mu   sync.RWMutex
	last *watch.Observation
}

// New returns a server without data. picture returns the static picture of a status, as SVG.
func New(picture func(assess.Status) []byte) *Server {
	return &Server{
		guard: newGuard(), feed: newFeed(), picture: picture, streams: make(chan struct{}, maxStreams), traces: make(chan struct{}, 1),
	}
}

// Publish shows an observation. It is called by one goroutine at a time.
func (s *Server) Publish(o watch.Observation) error {
	s.mu.Lock()
	s.last = &o
	s.mu.Unlock()
	if err := s.feed.publish(o); err != nil {
		return fmt.Errorf("encode the page: %w", err)
	}
	return nil
}

// URL returns the link that opens the page at an address once.
func (s *Server) URL(address net.Addr) string {
	return fmt.Sprintf("http://%s/?token=%s", address, s.guard.token)
}

// Serve serves the page until ctx ends.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler: s.handler(), ReadHeaderTimeout: headerTimeout, IdleTimeout: time.Minute, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    log.New(io.Discard, "", 0), // broken connections of browsers
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the page: %w", err)
	}
	return nil
}

// handler returns the handler of all requests.
func (s *Server) handler() http.Handler {
	files, err := fs.Sub(assets, "assets")
	if err != nil {
		panic(err) // the folder is part of the program
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", s.index)
	mux.Handle("/assets/", http.StripPrefix("/assets/", http.FileServerFS(files)))
	mux.HandleFunc("/api/events", s.guard.onlyPage(s.events))
	mux.HandleFunc("/api/service", s.guard.onlyPage(s.service))
	mux.HandleFunc("/api/trace", s.guard.onlyPage(s.trace))
	mux.HandleFunc("/clusterset.svg", s.guard.onlyPage(s.svg))
	return s.guard.check(mux)
}

// index serves the page to the browser that opens the link first, and to this browser again.
func (s *Server) index(w http.ResponseWriter, request *http.Request) {
	switch {
	case s.guard.isAdmitted(request):
	case s.guard.exchange(request.URL.Query().Get("token")):
		s.guard.admit(w, request)
	default:
		http.Error(w, "The link is not valid, or was used before. Run the command again for another one.", http.StatusForbidden)
		return
	}
	http.ServeFileFS(w, request, assets, "assets/page.html")
}

// events sends the page, and then what changes, until the browser or the server ends the request.
func (s *Server) events(w http.ResponseWriter, request *http.Request) {
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		http.Error(w, "the page is open in too many windows", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	if control.Flush() != nil { // the browser shows that it is connected
		return
	}
	for revision := 0; ; {
		content, current, next := s.feed.since(revision)
		if content != nil {
			_ = control.SetWriteDeadline(time.Now().Add(writeTimeout)) // a browser that does not read
			if _, err := fmt.Fprintf(w, "data: %s\n\n", content); err != nil || control.Flush() != nil {
				return
			}
			revision = current
		}
		select {
		case <-request.Context().Done():
			return
		case <-next:
		}
	}
}

// details is what the page shows of a service that is selected.
type details struct {
	// Service is absent if the hub has no records of it.
	Service     *assess.ServiceStatus `json:"service,omitempty"`
	Explanation *explain.Explanation  `json:"explanation,omitempty"`
}

func (s *Server) service(w http.ResponseWriter, request *http.Request) {
	o, key, ok := s.selected(w, request)
	if !ok {
		return
	}
	var result details
	if i := slices.IndexFunc(o.Status.Services, func(s assess.ServiceStatus) bool { return s.Key() == key.String() }); i >= 0 {
		result.Service = &o.Status.Services[i]
	}
	if explanation, found := o.Explain(request.Context(), key); found {
		result.Explanation = &explanation
	}
	reply(w, result)
}

// trace follows a service. It sends dry-run requests, so only one runs at a time.
func (s *Server) trace(w http.ResponseWriter, request *http.Request) {
	o, key, ok := s.selected(w, request)
	if !ok {
		return
	}
	select {
	case s.traces <- struct{}{}:
		defer func() { <-s.traces }()
	default:
		http.Error(w, "another trace runs: wait until it has ended", http.StatusTooManyRequests)
		return
	}
	ctx, cancel := context.WithTimeout(request.Context(), traceTimeout)
	defer cancel()
	result, err := trace.Run(ctx, trace.Options{Clusterset: o.Clusterset, Key: key, Resolve: trace.ClusterDNS, Settle: trace.DefaultSettle})
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	reply(w, result)
}

// selected returns the service that a request names, and what is known at present.
func (s *Server) selected(w http.ResponseWriter, request *http.Request) (*watch.Observation, clusterset.ServiceKey, bool) {
	query := request.URL.Query()
	key := clusterset.ServiceKey{Namespace: query.Get("namespace"), Name: query.Get("name")}
	if len(validation.IsDNS1123Label(key.Namespace)) > 0 || len(validation.IsDNS1123Label(key.Name)) > 0 {
		http.Error(w, "namespace and name must be names of Kubernetes", http.StatusBadRequest)
		return nil, key, false
	}
	o, ok := s.observation(w)
	return o, key, ok
}

// observation returns what is known at present. If nothing is, it replies that, and returns false.
func (s *Server) observation(w http.ResponseWriter) (*watch.Observation, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.last == nil {
		http.Error(w, "nothing has been read yet", http.StatusServiceUnavailable)
		return nil, false
	}
	return s.last, true
}

// svg serves the picture that "kubectl clusterset graph" draws.
func (s *Server) svg(w http.ResponseWriter, _ *http.Request) {
	o, ok := s.observation(w)
	if !ok {
		return
	}
	w.Header().Set("Content-Type", "image/svg+xml")
	w.Header().Set("Content-Disposition", `attachment; filename="clusterset.svg"`)
	_, _ = w.Write(s.picture(o.Status)) // the browser may be gone
}

func reply(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // the browser may be gone
}
