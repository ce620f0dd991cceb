// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"fmt"
	"io"
	"strings"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/output"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/assess"
	"github.com/tombolo-mcs/tombolo/internal/apply"
	"github.com/tombolo-mcs/tombolo/internal/plan"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// pendingWrites is what the command diff prints as data.
type pendingWrites struct {
	metav1.TypeMeta `json:",inline"`
	Writes          []pendingWrite `json:"writes"`
}

func newPendingWrites(writes []pendingWrite) pendingWrites {
	return pendingWrites{metav1.TypeMeta{APIVersion: assess.StatusVersion, Kind: "PendingWrites"}, append([]pendingWrite{}, writes...)}
}

// pendingTarget is the API server of a write.
type pendingTarget string

const (
	pendingOnHub    pendingTarget = "Hub"
	pendingInMember pendingTarget = "Member"
)

// pendingWrite is a write that an agent would send now.
type pendingWrite struct {
	// Agent is the cluster of the agent, Target where it would write.
	Agent     clusterset.ClusterID `json:"agent"`
	Target    pendingTarget        `json:"target"`
	Verb      string               `json:"verb"`
	Kind      string               `json:"kind"`
	Namespace string               `json:"namespace"`
	Name      string               `json:"name"`
	// Refused is why the API server would refuse it, empty if it would not.
	Refused string `json:"refused,omitempty"`
	// Existing and Desired are the objects without the fields that an API server sets; Existing is absent if
	// there is none, and Desired for a delete.
	Existing map[string]any `json:"existing,omitempty"`
	Desired  map[string]any `json:"desired,omitempty"`
}

// add records a write, and prints it unless data is printed at the end.
func (d *command) add(target pendingTarget, agent clusterset.ClusterID, a apply.DryRunWrite) {
	w := pendingWrite{
		Agent: agent, Target: target, Verb: string(a.Verb), Kind: clusterset.KindOf(a.Object),
		Namespace: a.Object.GetNamespace(), Name: a.Object.GetName(),
	}
	if a.Verb != plan.Delete {
		w.Desired = withoutServerFields(a.Object)
	}
	if a.Err != nil {
		w.Refused = a.Err.Error()
	}
	if a.Existing != nil {
		w.Existing = withoutServerFields(a.Existing)
	}
	d.writes = append(d.writes, w)
	if !d.output.IsData() {
		w.print(d.out)
	}
}

// print prints the object, the reason of a refusal, and the differences.
func (w pendingWrite) print(out io.Writer) {
	where := string(w.Agent)
	if w.Target == pendingOnHub {
		where = "the hub, by " + where
	}
	fmt.Fprintf(out, "%s: %s %s %s\n", where, w.Verb, w.Kind, client.ObjectKey{Namespace: w.Namespace, Name: w.Name})
	if w.Refused != "" {
		fmt.Fprintf(out, "  would be refused: %s\n", output.Plain(w.Refused))
	}
	if w.Existing == nil || w.Verb == string(plan.Delete) {
		return
	}
	for _, line := range strings.Split(strings.TrimRight(cmp.Diff(w.Existing, w.Desired), "\n"), "\n") {
		line = strings.NewReplacer("\u00a0", " ", "\t", "  ").Replace(line) // cmp varies its spaces, so that its output is not parsed
		fmt.Fprintf(out, "  %s\n", output.Plain(line))
	}
}

// withoutServerFields returns an object without the fields that an API server sets at each write.
func withoutServerFields(o client.Object) map[string]any {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return map[string]any{"unreadable": err.Error()}
	}
	if metadata, ok := content["metadata"].(map[string]any); ok {
		for _, field := range []string{"resourceVersion", "managedFields", "generation", "uid", "creationTimestamp"} {
			delete(metadata, field)
		}
	}
	return content
}
