// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/probe/output"
)

// What the client pod prints.
type (
	answer  = output.Result
	records = output.Reply
	totals  = output.Figures
)

// exec runs a command in a pod of the scene's namespace until it ends.
func (p *place) exec(ctx context.Context, pod string, in io.Reader, out io.Writer, command ...string) error {
	config := p.cluster.Config()
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	request := clients.CoreV1().RESTClient().Post().Namespace(p.namespace).Resource("pods").Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Command: command, Stdin: in != nil, Stdout: true, Stderr: true}, clientscheme.ParameterCodec)
	executor, err := remotecommand.NewWebSocketExecutor(config, "GET", request.URL().String())
	if err != nil {
		return err
	}
	var stderr bytes.Buffer
	if err := executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: in, Stdout: out, Stderr: &stderr}); err != nil {
		return fmt.Errorf("cluster %s, pod %s: %s: %w: %s", p.cluster.Name, pod, strings.Join(command, " "), err, stderr.String())
	}
	return nil
}

// probe runs the program of the client pod and returns what it printed, line by line.
func (p *place) probe(args ...string) []string {
	p.Helper()
	var out bytes.Buffer
	lab.Must(p, p.exec(p.Context(), clientPod, nil, &out, append([]string{"/probe"}, args...)...))
	return strings.Split(strings.TrimSpace(out.String()), "\n")
}

// name returns a service's in the clusterset.
func (s *scene) name(service string) string {
	return service + "." + s.namespace + ".svc.clusterset.local"
}

// requestTimeout leaves time for a machine that stalls for seconds, and for a packet that it has lost to be sent
// again. A request that was sent to a pod that has gone fails nevertheless: all packets of a connection go to the same pod.
const requestTimeout = "10s"

// questionTimeout is how long resolvers wait for an answer (resolv.conf(5)).
const questionTimeout = "5s"

// ask sends requests from the client pod, one after the other, each with a lookup and a connection of its own: network is
// tcp, tcp4, tcp6, udp, udp4 or udp6.
func (p *place) ask(network, host string, port, count int) []answer {
	p.Helper()
	return p.parse(p.probe("ask", "-network", network, "-timeout", requestTimeout, "-count", strconv.Itoa(count), net.JoinHostPort(host, strconv.Itoa(port))))
}

func (p *place) parse(lines []string) []answer {
	p.Helper()
	answers := make([]answer, len(lines))
	for i, line := range lines {
		if err := json.Unmarshal([]byte(line), &answers[i]); err != nil {
			p.Fatalf("probe printed %q: %v", line, err)
		}
	}
	return answers
}

// awaitAnswer waits until a name is answered from the client pod at port 80 over all networks. kube-proxy may read an
// address later than DNS; it refuses requests meanwhile.
func (p *place) awaitAnswer(host string) {
	p.Helper()
	p.awaitAddress(host)
	for _, network := range networks {
		p.awaitAnyAnswer(network, host, 80)
	}
}

// networks are all that a service can be reached over.
var networks = []string{"tcp4", "tcp6", "udp4", "udp6"}

// from returns the clusters that answered, with how many answers each gave, and fails the story for each failed request.
func (p *place) from(answers []answer) map[string]int {
	p.Helper()
	clusters := map[string]int{}
	for _, a := range answers {
		if a.Error != "" {
			p.Errorf("cluster %s: a request failed: %+v", p.cluster.Name, a)
			continue
		}
		clusters[a.Cluster]++
	}
	return clusters
}

type load struct {
	place   *place
	what    string
	stop    func() error
	done    chan error
	started chan struct{}
	lines   []string // valid once done is closed
}

// load sends requests from the client pod at a constant rate, each with a lookup and a connection of its own. It returns
// when the first has an answer.
func (p *place) load(network, host string, port, rate int) *load {
	p.Helper()
	return p.keepOn("load", "-network", network, "-timeout", requestTimeout, "-inflight", "1000", "-rate", strconv.Itoa(rate), net.JoinHostPort(host, strconv.Itoa(port)))
}

// questions asks the cluster's DNS at a constant rate.
func (p *place) questions(kind, name string, rate int) *load {
	p.Helper()
	return p.keepOn("resolve", "-type", kind, "-timeout", questionTimeout, "-rate", strconv.Itoa(rate), name+".")
}

func (p *place) keepOn(args ...string) *load {
	p.Helper()
	in, stop := io.Pipe()
	out, written := io.Pipe()
	l := &load{place: p, what: strings.Join(args, " "), stop: stop.Close, done: make(chan error, 1), started: make(chan struct{})}
	failed := make(chan error, 1)
	go func() {
		err := p.exec(context.Background(), clientPod, in, written, append([]string{"/probe"}, args...)...)
		failed <- err
		_ = written.CloseWithError(io.EOF) // a pipe's never fails
	}()
	go func() {
		lines := bufio.NewScanner(out)
		begun := false
		for lines.Scan() {
			l.lines = append(l.lines, lines.Text())
			if !begun {
				begun = true
				close(l.started)
			}
		}
		l.done <- <-failed
	}()
	p.Cleanup(func() { _ = l.stop() }) // a second time does no harm
	select {
	case <-l.started:
	case err := <-l.done:
		p.Fatalf("cluster %s: %s ended before it began: %v", p.cluster.Name, l.what, err)
	}
	return l
}

// keepOpen sends requests to port 80 of a service on one connection.
func (p *place) keepOpen(service string) *load {
	p.Helper()
	return p.keepOn("ask", "-keep", "-every", "100ms", "-count", "1000000", "-timeout", requestTimeout, net.JoinHostPort(p.name(service), "80"))
}

// endUnbroken ends what keepOpen has begun, and fails the story unless a cluster has answered each request.
func (l *load) endUnbroken(cluster string) {
	p := l.place
	p.Helper()
	answers := l.endAnswers()
	if got := p.from(answers); got[cluster] != len(answers) {
		p.Errorf("on the open connection %v answered, of %d requests", got, len(answers))
	}
	p.Logf("%d requests on one connection were answered", len(answers))
}

// endAnswers stops requests that are sent one after the other, and returns their answers.
func (l *load) endAnswers() []answer {
	l.place.Helper()
	lab.Must(l.place, l.stop())
	lab.Must(l.place, <-l.done)
	return l.place.parse(l.lines)
}

// end stops the load and returns what it came to, with a line for each failed request.
func (l *load) end() (totals, []string) {
	l.place.Helper()
	lab.Must(l.place, l.stop())
	lab.Must(l.place, <-l.done)
	var result struct {
		Summary *totals `json:"summary"`
	}
	var failures []string
	for _, line := range l.lines {
		switch {
		case strings.HasPrefix(line, `{"started"`):
		case strings.HasPrefix(line, `{"summary"`):
			if err := json.Unmarshal([]byte(line), &result); err != nil {
				l.place.Fatalf("probe printed %q: %v", line, err)
			}
		default:
			failures = append(failures, line)
		}
	}
	if result.Summary == nil {
		l.place.Fatalf("cluster %s: %s ended without a summary: %s", l.place.cluster.Name, l.what, strings.Join(l.lines, "\n"))
	}
	return *result.Summary, failures
}

// endClean stops the load, fails the story if a request has failed, and prints each that did.
func (l *load) endClean() totals {
	l.place.Helper()
	return l.endLosing(0)
}

// endLosing is endClean, but permits a number of failures because an answer of the DNS has not arrived.
func (l *load) endLosing(most int) totals {
	l.place.Helper()
	total, failures := l.end()
	lost := 0
	for _, line := range failures {
		if strings.Contains(line, "read udp") && strings.Contains(line, "i/o timeout") {
			lost++
		}
	}
	if total.Failed > min(lost, most) {
		l.place.Errorf("cluster %s: %s: %d of %d requests failed:\n%s", l.place.cluster.Name, l.what, total.Failed, total.Requests, strings.Join(failures, "\n"))
	}
	return total
}
