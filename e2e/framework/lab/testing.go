// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/internal/check"
)

// Start starts a lab for a test and closes it when the test ends. If it cannot, the test fails: also if the binaries are
// missing, with the command that builds them. If the test fails, the logs of all processes are copied to its artifacts
// (kept by "go test -artifacts"), and their last lines are shown.
func Start(t testing.TB, clusters ...ClusterOptions) *Lab {
	t.Helper()
	l, err := prepare(t.Context(), Options{Clusters: clusters, Log: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			l.ShowLogs(t)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := l.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return l
}

// Must ends the test if there is an error.
func Must(t testing.TB, err error) {
	t.Helper()
	check.Must(t, err)
}

// Equal fails the test if two values differ, by go-cmp. what names them in the message.
func Equal(t testing.TB, what string, want, got any, options ...cmp.Option) {
	t.Helper()
	check.Equal(t, what, want, got, options...)
}

// Skip skips a test that this machine cannot run. With REQUIRE_ALL=1, as in CI, the test fails instead.
func Skip(t testing.TB, reason string) {
	t.Helper()
	if os.Getenv("REQUIRE_ALL") != "" {
		t.Fatal("REQUIRE_ALL is set, and the test cannot run: " + reason)
	}
	t.Skip(reason)
}

// NeedComplete skips a test of complete clusters unless make e2e runs it. Where it does, the machine must be able to.
func NeedComplete(t testing.TB) {
	t.Helper()
	if os.Getenv("TOMBOLO_E2E") == "" {
		t.Skip("make e2e runs it")
	}
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		t.Fatal("complete clusters need Linux and root")
	}
}

// pollBackoff are the times between two: what takes longer is checked less often, since a check takes CPU from what is waited for.
var pollBackoff = wait.Backoff{Duration: 10 * time.Millisecond, Factor: 1.2, Cap: 250 * time.Millisecond, Steps: 100}

// FreeAddress returns an address of 127.0.0.1 where no process listens at this moment.
func FreeAddress(t testing.TB) string {
	t.Helper()
	free, err := FreeAddresses(1)
	Must(t, err)
	return free[0]
}

// ServeTCP calls handle for each connection to an address, as a goroutine, until the test ends. It returns the address with its port.
func ServeTCP(t testing.TB, address string, handle func(net.Conn)) *net.TCPAddr {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	Must(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // closed
			}
			go handle(conn)
		}
	}()
	return listener.Addr().(*net.TCPAddr)
}

// Eventually ends the test unless check succeeds within waitLimit; then with check's last error.
func Eventually(t testing.TB, waitLimit time.Duration, check func(context.Context) error) {
	t.Helper()
	last := errors.New("it was not tried")
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	err := pollBackoff.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		err := check(ctx)
		if ctx.Err() == nil {
			last = err
		}
		return err == nil, nil
	})
	if err != nil {
		t.Fatalf("not within %s: %v", waitLimit, last)
	}
}

// Holds ends the test unless a condition holds within waitLimit. what names the condition.
func Holds(t testing.TB, waitLimit time.Duration, what string, holds func() bool) {
	t.Helper()
	Eventually(t, waitLimit, func(context.Context) error {
		if !holds() {
			return errors.New("no " + what)
		}
		return nil
	})
}

// Await returns nil once check succeeds; after the limit, the last error of check that the end of the time did not cause.
func Await(ctx context.Context, interval, limit time.Duration, check func(context.Context) error) error {
	last := errors.New("it was not tried")
	err := wait.PollUntilContextTimeout(ctx, interval, limit, true, func(ctx context.Context) (bool, error) {
		err := check(ctx)
		if ctx.Err() == nil {
			last = err
		}
		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("not within %s: %w", limit, last)
	}
	return nil
}

// ShowLogs copies the logs of all processes to the artifacts of a test, and shows their last lines there.
func (l *Lab) ShowLogs(t testing.TB) {
	t.Helper()
	kept := t.ArtifactDir()
	for _, c := range l.clusters {
		for _, p := range c.Processes() {
			t.Logf("The log of %s ends:\n%s", p, p.LogTail())
			if err := copyFile(p.logFile, filepath.Join(kept, c.Name, filepath.Base(p.logFile))); err != nil {
				t.Log(err)
			}
		}
	}
}

func copyFile(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o644)
}

// Get returns the body of a URL, and an error unless the status is 200.
func Get(ctx context.Context, connection *http.Client, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := connection.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s: %.1000s", url, response.Status, body)
	}
	return body, err
}

// Quiet turns off the logs that controller-runtime and client-go write for all programs of a process. Each lab does so at its start.
func Quiet() { quiet() }

// quiet acts once: klog's logger must not change while it is used.
var quiet = sync.OnceFunc(func() {
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
})

// Buffer is output that may be read while it is written.
type Buffer struct {
	mu      sync.Mutex
	content bytes.Buffer
}

func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.content.Write(p)
}

// String returns what has been written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.content.String()
}

// stuckAfter is the time after which the deletion of a CustomResourceDefinition counts as stuck.
const stuckAfter = 10 * time.Second

// TouchDeletedCRDs sets an annotation of CustomResourceDefinitions whose deletion is stuck, until the test ends. If two controllers of an
// API server write one at once, the one that finalizes it tries again at its next resync, every 5 minutes, or when it is changed.
func TouchDeletedCRDs(t *testing.T, cl client.Client) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	t.Cleanup(func() {
		cancel()
		<-done
	})
	go func() {
		defer close(done)
		_ = wait.PollUntilContextCancel(ctx, stuckAfter/2, false, func(ctx context.Context) (bool, error) {
			touchStuck(ctx, cl)
			return false, nil
		})
	}()
}

// touchStuck ignores errors: the test finds an API server that does not answer, and a CRD may be deleted meanwhile.
func touchStuck(ctx context.Context, cl client.Client) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinitionList"))
	_ = cl.List(ctx, list)
	for i := range list.Items {
		crd := &list.Items[i]
		if crd.DeletionTimestamp == nil || time.Since(crd.DeletionTimestamp.Time) < stuckAfter {
			continue
		}
		patch := client.MergeFrom(crd.DeepCopy())
		metav1.SetMetaDataAnnotation(&crd.ObjectMeta, "tombolo-mcs.io/touched", time.Now().String())
		_ = cl.Patch(ctx, crd, patch)
	}
}
