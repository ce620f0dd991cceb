// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/explain"
	"github.com/tombolo-mcs/tombolo/e2e/framework/golden"
	"github.com/tombolo-mcs/tombolo/internal/check"
)

func TestPrintedExplanation(t *testing.T) {
	var e explain.Explanation
	read(t, "explanation.json", &e)
	e.Access = []explain.ClusterRules{
		{Cluster: "west", Direction: "Export", Rules: []explain.Rule{
			{Rule: "ServiceExportGrant shop/web", Action: "Accept", Clients: "clusters east"}, {Rule: "no ServiceExportGrant names the client", Action: "Deny", Clients: "all"},
		}},
		{Cluster: "mid", Direction: "Export", Reason: "none of the contexts that were read leads to cluster mid"},
	}
	var out bytes.Buffer
	h := &survey.Hub{Now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	printExplanation(&out, e, h)
	out.WriteString("\n")
	printExplanation(&out, explain.Explanation{Namespace: "shop", Name: "web", Refused: []string{"a", "b\x1b"}}, h)
	golden.Check(t, "explanation.txt", out.String())
}

// read reads a golden file of cmd/kubectl-clusterset/survey, whose results are printed here.
func read(t *testing.T, name string, into any) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "survey", "explain", "testdata", name))
	check.Must(t, err)
	check.Must(t, json.Unmarshal(content, into))
}
