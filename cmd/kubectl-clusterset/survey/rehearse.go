// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tombolo-mcs/tombolo/controllers/exportstatus"
	"github.com/tombolo-mcs/tombolo/controllers/imports"
	"github.com/tombolo-mcs/tombolo/controllers/publication"
	"github.com/tombolo-mcs/tombolo/controllers/publish"
	"github.com/tombolo-mcs/tombolo/controllers/sources"
	"github.com/tombolo-mcs/tombolo/pkg/apply"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/liveness"
)

// Rehearsal is what the agent of a member would do about one service now.
type Rehearsal struct {
	// Known is what the agent knows of the service, and LocalSlices the endpoints that its cluster has of it.
	Known       sources.Sources
	LocalSlices []clusterset.Slice
	// Outcome is what is left out of the records on the hub.
	Outcome publication.Outcome
	// Published, Status and Imported are the writes that are due: to the hub, to the ServiceExport's status, and to what
	// the cluster imports. Of each, the error is why not all of it can be done.
	Published, Status, Imported          []apply.Act
	PublishedErr, StatusErr, ImportedErr error
	// Remarks are the Events that the agent would send.
	Remarks []Remark
}

// Remark is an Event that an agent would send.
type Remark struct{ Reason, Note string }

// Rehearse runs the agent's controllers on one service. The API servers judge their writes and carry none out.
func (l *Look) Rehearse(ctx context.Context, key clusterset.ServiceKey) (*Rehearsal, error) {
	r := &Rehearsal{}
	var err error
	if r.Known, err = l.reader.Read(ctx, key); err != nil {
		return nil, fmt.Errorf("cluster %s: %w", l.Member.ID, err)
	}
	if r.Known.Local != nil {
		if r.LocalSlices, err = l.reader.LocalSlices(ctx, key); err != nil {
			return nil, fmt.Errorf("cluster %s: %w", l.Member.ID, err)
		}
	}
	request := reconcile.Request{NamespacedName: key}
	outcomes := publication.NewOutcomes()
	published := &publish.Reconciler{
		Sources: l.reader, Hub: apply.ToHub(l.published, l.Member.ID.HubNamespace()).Rehearse(noted(&r.Published)),
		Allowed: admitted, Progress: publication.NewProgress(), Outcomes: outcomes,
	}
	r.PublishedErr = rehearsed(ctx, published, request)
	r.Outcome = outcomes.Of(key)
	status := &exportstatus.Reconciler{
		Sources: l.reader, Member: l.writer(&r.Status), Outcomes: outcomes,
		Refusal: func() string { return "" }, Events: &remarks{&r.Remarks}, Clock: clock.RealClock{},
	}
	r.StatusErr = rehearsed(ctx, status, request)
	imported := &imports.Reconciler{
		Sources: l.reader, Member: l.reader.Member, Writer: l.writer(&r.Imported), Allowed: admitted,
		IPFamilies: clusterset.FamiliesOf(l.Member.Settings.ServiceCIDRs), State: l.state, Policies: liveness.DefaultPolicies(),
		Namespaces: l.namespaces, MetadataDomains: l.Member.Settings.MetadataDomains, Refusals: imports.NewRefusals(), Unsupported: imports.NewUnsupportedSettings(),
		Events: &remarks{&r.Remarks}, Clock: clock.RealClock{},
	}
	r.ImportedErr = rehearsed(ctx, imported, request)
	return r, nil
}

// rehearsed returns why a controller cannot do all that is due, which apply.ErrStale does not say.
func rehearsed(ctx context.Context, controller reconcile.Reconciler, request reconcile.Request) error {
	if _, err := controller.Reconcile(ctx, request); !errors.Is(err, apply.ErrStale) {
		return err
	}
	return nil
}

// admitted says that the member speaks for its ID: Find has asked.
func admitted() bool { return true }

// writer returns what rehearses writes to the member.
func (l *Look) writer(into *[]apply.Act) apply.Writer {
	return apply.ToMember(l.member, l.member).Rehearse(noted(into))
}

func noted(into *[]apply.Act) func(apply.Act) {
	return func(a apply.Act) { *into = append(*into, a) }
}

// remarks collects Events instead of sending them.
type remarks struct{ list *[]Remark }

// Eventf notes an Event.
func (r *remarks) Eventf(_, _ runtime.Object, _, reason, _, note string, args ...any) {
	*r.list = append(*r.list, Remark{reason, fmt.Sprintf(note, args...)})
}
