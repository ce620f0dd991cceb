// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/apiserver"
	"github.com/tombolo-mcs/tombolo/controllers/aliases"
	"github.com/tombolo-mcs/tombolo/controllers/exportstatus"
	"github.com/tombolo-mcs/tombolo/controllers/imports"
	"github.com/tombolo-mcs/tombolo/controllers/publish"
	"github.com/tombolo-mcs/tombolo/internal/apply"
	"github.com/tombolo-mcs/tombolo/internal/liveness"
	"github.com/tombolo-mcs/tombolo/internal/sources"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Result is what the agent of a member would write for one service.
type Result struct {
	// Sources are what the agent reads for the service, and LocalSlices the local endpoints.
	Sources     sources.Sources
	LocalSlices []clusterset.Slice
	// Outcome describes what is left out of the records on the hub.
	Outcome publish.Outcome
	// Published, Status and Imported are the pending writes: to the hub, to the status of the ServiceExport, and to the objects
	// of the import. Each error is the reason why some of the writes are not possible.
	Published, Status, Imported          []apply.DryRunWrite
	PublishedErr, StatusErr, ImportedErr error
	// Events are those that the agent would send.
	Events []Event
}

// Unread returns the error of a controller that an API server has not answered, or has answered without a decision: what the agent would
// write is not known then. It returns nil if each error is a reason of the agent or of an API server to refuse a write.
func (r *Result) Unread() error {
	for _, err := range []error{r.PublishedErr, r.StatusErr, r.ImportedErr} {
		var answer apierrors.APIStatus
		var request *url.Error
		late := apiserver.NoAnswerError{}
		switch {
		case errors.As(err, &late), errors.As(err, &request), errors.Is(err, context.DeadlineExceeded):
			return err
		case errors.As(err, &answer) && (answer.Status().Code >= http.StatusInternalServerError || apierrors.IsUnauthorized(err) || apierrors.IsTooManyRequests(err)):
			return err
		}
	}
	return nil
}

// Event is an Event that an agent would send.
type Event struct{ Reason, Note string }

// Service runs the controllers of the agent for one service. The API servers validate the writes and store none. If the hub could not be read,
// it only reads the service: what an agent writes depends on the hub.
func (l *View) Service(ctx context.Context, key clusterset.ServiceKey) (*Result, error) {
	r := &Result{}
	var err error
	if r.Sources, err = l.reader.Read(ctx, key); err != nil {
		return nil, fmt.Errorf("cluster %s: %w", l.Member.ID, err)
	}
	if r.Sources.Local != nil {
		if r.LocalSlices, err = l.reader.LocalSlices(ctx, key); err != nil {
			return nil, fmt.Errorf("cluster %s: %w", l.Member.ID, err)
		}
	}
	if !l.Hub.IsRead() {
		return r, nil
	}
	request := reconcile.Request{NamespacedName: key}
	outcomes := publish.NewOutcomes()
	published := &publish.Reconciler{
		Sources: l.reader, Hub: apply.ToHub(l.hubClient, l.Member.ID.HubNamespace()).DryRun(appendTo(&r.Published)),
		MayWrite: alwaysAllowed, Progress: publish.NewProgress(), Outcomes: outcomes,
	}
	r.PublishedErr = reconcileError(ctx, published, request)
	r.Outcome = outcomes.Of(key)
	status := &exportstatus.Reconciler{
		Sources: l.reader, Member: l.writer(&r.Status), Outcomes: outcomes,
		Refusal: func() string { return "" }, Unreached: func() time.Time { return time.Time{} }, Events: &eventList{&r.Events}, Clock: clock.RealClock{},
	}
	r.StatusErr = reconcileError(ctx, status, request)
	imported := &imports.Reconciler{
		Sources: l.reader, Member: l.reader.Member, Writer: l.writer(&r.Imported), Allowed: alwaysAllowed,
		IPFamilies:    clusterset.FamiliesOf(l.Member.Settings.ServiceCIDRs),
		ServiceRanges: func(context.Context) ([]netip.Prefix, error) { return l.Member.Settings.ServiceCIDRs, nil },
		State:         l.livenessOf, Policies: liveness.DefaultPolicies(),
		Namespaces: l.Member.Namespaces(), MetadataDomains: l.Member.Settings.MetadataDomains, Reported: imports.NewReported(), Unsupported: imports.NewUnsupportedSettings(),
		DefaultSources: l.Member.Settings.DefaultSources, Returns: imports.NewReturns(), GatewayReach: l.Gateways.Reach(), Events: &eventList{&r.Events}, Clock: clock.RealClock{},
	}
	if l.Gateways.Exist {
		imported.GatewayPorts = &imports.GatewayPorts{
			Namespace: l.reader.AgentNamespace, Live: l.memberClient, Cached: l.reader.Member, Writer: imported.Writer, Clock: imported.Clock,
		}
		imported.VirtualIPs = &imports.VirtualIPs{Live: l.memberClient}
	}
	r.ImportedErr = reconcileError(ctx, imported, request)
	return r, nil
}

// Alias runs the controller of aliases for a Service. It returns the pending writes, and why some of them are not possible.
func (l *View) Alias(ctx context.Context, key clusterset.ServiceKey) (writes []apply.DryRunWrite, err error) {
	controller := &aliases.Reconciler{
		Cluster: l.Member.ID, Member: l.reader.Member, Live: l.memberClient, Writer: l.writer(&writes), Events: &eventList{new([]Event)}, Clock: clock.RealClock{},
	}
	err = reconcileError(ctx, controller, reconcile.Request{NamespacedName: key})
	return writes, err
}

// Export creates the ServiceExport of a gap, as the agent does. It returns an error if the request was not sent.
func (l *View) Export(ctx context.Context, gap *survey.LabelGap) (writes []apply.DryRunWrite, err error) {
	_, err = apply.Do(ctx, l.writer(&writes), gap.Create())
	if len(writes) > 0 {
		return writes, nil // the write has the error
	}
	return nil, err
}

// reconcileError runs a controller and returns its error. It ignores apply.ErrStale.
func reconcileError(ctx context.Context, controller reconcile.Reconciler, request reconcile.Request) error {
	if _, err := controller.Reconcile(ctx, request); !errors.Is(err, apply.ErrStale) {
		return err
	}
	return nil
}

// alwaysAllowed allows the member to publish: Find has checked its identity.
func alwaysAllowed() bool { return true }

// writer returns a writer that sends dry-run requests to the member and records them.
func (l *View) writer(into *[]apply.DryRunWrite) apply.Writer {
	return apply.ToMember(l.memberClient, l.memberClient).DryRun(appendTo(into))
}

func appendTo(into *[]apply.DryRunWrite) func(apply.DryRunWrite) {
	return func(a apply.DryRunWrite) { *into = append(*into, a) }
}

// eventList records Events instead of sending them.
type eventList struct{ events *[]Event }

// Eventf records an Event.
func (r *eventList) Eventf(_, _ runtime.Object, _, reason, _, note string, args ...any) {
	*r.events = append(*r.events, Event{reason, fmt.Sprintf(note, args...)})
}
