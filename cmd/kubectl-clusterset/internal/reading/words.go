// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/output"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/explain"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/phrase"
	"github.com/tombolo-mcs/tombolo/internal/access"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// ClientOf returns the client that an argument names.
func ClientOf(who string) (access.Client, error) {
	parts := strings.Split(who, "/")
	if len(parts) != 3 || slices.Contains(parts, "") {
		return access.Client{}, output.Usage(fmt.Errorf("%q is not CLUSTER/NAMESPACE/SERVICEACCOUNT, for example west/shop/frontend", who))
	}
	return access.Client{Cluster: clusterset.ClusterID(parts[0]), Namespace: parts[1], ServiceAccount: parts[2]}, nil
}

// ExportMessage returns the message of the condition that explains why an export is not on the hub.
func ExportMessage(export *mcsv1beta1.ServiceExport) string {
	for _, kind := range []mcsv1beta1.ServiceExportConditionType{mcsv1beta1.ServiceExportConditionValid, mcsv1beta1.ServiceExportConditionReady} {
		if c := meta.FindStatusCondition(export.Status.Conditions, string(kind)); c != nil && c.Status != "True" {
			return c.Message
		}
	}
	return "its agent has not reported a condition; see kubectl clusterset status"
}

// PrintRules prints who may use the service through gateways, in the order in which the rules are asked.
func PrintRules(out io.Writer, rules []explain.ClusterRules) {
	if len(rules) == 0 {
		return
	}
	fmt.Fprintln(out, "\nACCESS through gateways, the first rule that matches decides")
	t := &output.Table{Header: []string{"CLUSTER", "DIRECTION", "ACTION", "CLIENTS", "RULE"}}
	for _, a := range rules {
		for _, r := range a.Rules {
			t.Add(string(a.Cluster), string(a.Direction), r.Action, phrase.Shortened(r.Clients), r.Rule)
		}
		if a.Reason != "" {
			t.Add(string(a.Cluster), string(a.Direction), "?", "", phrase.Shortened(a.Reason))
		}
	}
	t.Write(out)
}

// StateWord returns the word of tables for the state of a member.
func StateWord(state survey.State) string {
	return map[survey.State]string{
		survey.StateConnected: "connected", survey.StateSilent: "SILENT", survey.StateNeverConnected: "NO HEARTBEAT", survey.StateUnknown: "?",
	}[state]
}

// EndpointCount are the numbers of ready endpoints and of all. atLeast is true if there may be more.
type EndpointCount struct {
	Ready, All int
	AtLeast    bool
}

// String returns the numbers as in "2/3". If there may be more, it returns "2+", and "?" if nothing is known.
func (c EndpointCount) String() string {
	switch {
	case !c.AtLeast:
		return fmt.Sprintf("%d/%d", c.Ready, c.All)
	case c.All == 0:
		return "?"
	}
	return fmt.Sprintf("%d+", c.Ready)
}

// IDs returns IDs separated by commas.
func IDs(all []clusterset.ClusterID) string {
	var words []string
	for _, id := range all {
		words = append(words, string(id))
	}
	return strings.Join(words, ",")
}
