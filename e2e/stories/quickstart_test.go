// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tombolo-mcs/tombolo/e2e/framework/complete"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/walk"
)

// document is a document whose commands are run word for word.
type document struct {
	story    string
	networks map[string]string
	follow   func(*testing.T, *stage)
}

var documents = []document{
	{"a newcomer follows the quickstart, and loses a member", nil, newcomerFollowsTheQuickstart},
	{"a newcomer connects two networks", map[string]string{"east": "home", "west": "cloud"}, newcomerConnectsTwoNetworks},
}

// run runs the commands on two clusters, of which one becomes the hub, too.
func (d document) run(t *testing.T, all *summary) {
	st := startStage(t, complete.Options{HubAmongMembers: true, Late: []string{"east", "west"}, Networks: d.networks})
	lab.Must(t, st.LoadImages(t.Context(), "socat")) // the documents' pods run it
	defer all.time(t, st)("")
	d.follow(t, st)
}

// newcomerConnectsTwoNetworks: docs/gateways.md works word for word on two clusters with the same addresses, without Tombolo.
func newcomerConnectsTwoNetworks(t *testing.T, st *stage) {
	text, shell := st.document(t, "gateways.md")
	follow(t, shell, text)
}

// leaving begins the part of the document in which all clusters leave.
const leaving = "## Leave"

// newcomerFollowsTheQuickstart: docs/quickstart.md works word for word on two clusters without Tombolo.
// Before its last part a member loses power: status says so, and it is removed from the hub; it can still leave when it is back.
func newcomerFollowsTheQuickstart(t *testing.T, st *stage) {
	text, shell := st.document(t, "quickstart.md")
	before, after, found := strings.Cut(text, leaving)
	if !found {
		t.Fatalf("docs/quickstart.md has no %q", leaving)
	}
	follow(t, shell, before)

	west := st.Cluster("west")
	t.Cleanup(func() { thaw(t, west) }) // so that the lab can end
	lab.Must(t, west.Node.Freeze(t.Context()))
	st.awaitStatus(t, regexp.MustCompile(`west.*SILENT`))
	if _, err := st.Kubectl(t.Context(), "", strings.Fields("clusterset leave --from hub --cluster-id west --hub-context east --yes")...); err != nil {
		t.Fatal(err)
	}
	thaw(t, west)
	follow(t, shell, after)
}

// document returns the text of a document, and a shell for its commands on the clusters east and west.
func (s *stage) document(t *testing.T, name string) (string, *walk.Shell) {
	t.Helper()
	root, err := lab.Root()
	lab.Must(t, err)
	text, err := os.ReadFile(filepath.Join(root, "docs", name))
	lab.Must(t, err)
	east, west := s.Cluster("east"), s.Cluster("west")
	shell, err := walk.NewShell(t.Context(), root, append(os.Environ(), "KUBECONFIG="+s.Kubeconfig, "KUBECACHEDIR="+s.Folder(),
		"PATH="+s.Path()+":"+os.Getenv("PATH"), "HUB_URL="+east.Config().Host,
		"EAST_PODS="+lab.Joined(east.PodCIDRs()), "WEST_PODS="+lab.Joined(west.PodCIDRs()),
		"AGENT_IMAGE="+complete.AgentImage, "DNS_IMAGE="+complete.DNSImage, "GATEWAY_IMAGE="+complete.GatewayImage))
	lab.Must(t, err)
	t.Cleanup(shell.Close)
	return string(text), shell
}

func follow(t *testing.T, shell *walk.Shell, text string) {
	t.Helper()
	steps, err := walk.Steps(text)
	lab.Must(t, err)
	for _, step := range steps {
		begin := time.Now()
		lab.Must(t, shell.Take(step))
		t.Logf("%5.1f s  $ %s", time.Since(begin).Seconds(), strings.SplitN(step.Commands, "\n", 2)[0])
	}
}

// awaitStatus waits until a line of "kubectl clusterset status" matches.
func (s *stage) awaitStatus(t *testing.T, line *regexp.Regexp) {
	t.Helper()
	lab.Must(t, lab.Await(t.Context(), time.Second, waitLimit, func(ctx context.Context) error {
		out, err := s.Kubectl(ctx, "", strings.Fields("clusterset status --hub-context east --contexts east")...)
		if err == nil && !line.MatchString(out) {
			err = fmt.Errorf("kubectl clusterset status has no line with %q:\n%s", line, out)
		}
		return err
	}))
}

func thaw(t testing.TB, cluster *lab.Cluster) {
	t.Helper()
	lab.Must(t, cluster.Node.Thaw(context.Background()))
}
