// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/dryrun"
	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/internal/apply"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/internal/proxy"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// aliasTrace is the state of an alias in one member.
type aliasTrace struct {
	service *corev1.Service
	// slices are all of its EndpointSlices: those of its import, and those of its own pods.
	slices []*discoveryv1.EndpointSlice
	// writes are the pending writes of the agent, and err is why some of them are not possible.
	writes []apply.DryRunWrite
	err    error
}

// following says whether a trace follows the service itself, or the import of an alias.
type following string

const (
	followsService following = "service"
	followsImport  following = "import"
	// followsNothing: the aliases can have no import.
	followsNothing following = "nothing"
)

// followAlias sets which service the trace follows. If no cluster exports a service of this name, but some have an alias of it, it follows
// the import of the alias: that of o.From, otherwise that of the first member that has one.
func (t *tracer) followAlias(ctx context.Context) error {
	t.alias, t.follows = t.Key, followsService
	if len(t.hub.Records.Service(t.Key).Exports) > 0 {
		return nil
	}
	views := slices.Clone(t.views)
	slices.SortStableFunc(views, func(a, b *dryrun.View) int { return cmp.Compare(t.rank(a), t.rank(b)) })
	for _, view := range views {
		if exported, err := view.HasExport(ctx, t.Key); err != nil || exported {
			return err
		}
	}
	for _, view := range views {
		service, err := readAlias(ctx, view, t.Key)
		if err != nil {
			return err
		}
		if service == nil {
			continue
		}
		if name, err := clusterset.AliasImport(service); err == nil {
			t.Key.Name, t.follows = name, followsImport
			return nil
		}
		t.follows = followsNothing
	}
	return nil
}

// rank is lower for the member in which the service must be imported.
func (t *tracer) rank(view *dryrun.View) int {
	if view.Member.ID == t.From {
		return 0
	}
	return 1
}

// readAlias returns the Service with this key; nil if it is no alias.
func readAlias(ctx context.Context, l *dryrun.View, key clusterset.ServiceKey) (*corev1.Service, error) {
	service := &corev1.Service{}
	exists, err := caches.Get(ctx, l.Reader(), key, service)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", l.Member.ID, err)
	}
	if !exists || !clusterset.IsAlias(service) {
		return nil, nil
	}
	return service, nil
}

// traceAlias reads the alias in a member, and what its agent would write for it; nil if there is none.
func traceAlias(ctx context.Context, l *dryrun.View, key clusterset.ServiceKey) (*aliasTrace, error) {
	service, err := readAlias(ctx, l, key)
	if err != nil || service == nil {
		return nil, err
	}
	a := &aliasTrace{service: service}
	list := &discoveryv1.EndpointSliceList{}
	if err := l.Reader().List(ctx, list, client.InNamespace(key.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: key.Name}); err != nil {
		return nil, fmt.Errorf("cluster %s: list EndpointSlices: %w", l.Member.ID, err)
	}
	a.slices = caches.Pointers(list.Items)
	a.writes, a.err = l.Alias(ctx, key)
	return a, nil
}

// aliasSteps returns the step of an alias in one cluster, after those of its import.
func (v *memberTrace) aliasSteps(t *tracer) []Step {
	if v.alias == nil {
		return nil
	}
	if step, ok := v.dueStep(HopAlias, v.alias.writes); ok {
		return []Step{step}
	}
	if v.alias.err != nil {
		return []Step{v.step(HopAlias, Broken, v.alias.err.Error(), v.logsCommand())}
	}
	condition := meta.FindStatusCondition(v.alias.service.Status.Conditions, conditions.TypeAlias)
	if condition == nil {
		return []Step{v.step(HopAlias, NotKnown, "the Service has no condition "+conditions.TypeAlias, v.logsCommand())}
	}
	step := v.step(HopAlias, OK, condition.Message, "")
	if name, err := clusterset.AliasImport(v.alias.service); err == nil && name != t.Key.Name {
		step.Found += fmt.Sprintf("; to follow it: kubectl clusterset trace %s/%s", t.Key.Namespace, name)
	}
	unserved := v.alias.unserved()
	if condition.Reason == conditions.ReasonAliased && unserved == "" {
		return []Step{step}
	}
	step.State, step.Fix = Note, fmt.Sprintf("change its ports, its traffic policies or its annotation %s: kubectl --context %s --namespace %s edit service %s",
		clusterset.AnnotationImport, v.view.Member.KubeContext.Name, v.alias.service.Namespace, v.alias.service.Name)
	if unserved != "" && !strings.Contains(step.Found, unserved) {
		step.Found += "; " + unserved
	}
	if unserved != "" || condition.Status != metav1.ConditionTrue && t.follows != followsService {
		step.State = Broken
	}
	return []Step{step}
}

// unserved returns why a kind of traffic to an alias reaches no endpoint, neither of its import nor its own; empty if all traffic reaches one.
func (a *aliasTrace) unserved() string {
	ports := proxy.Ports(a.service, a.slices)
	var texts []string
	for _, traffic := range proxy.Unserved(ports) {
		texts = append(texts, cmp.Or(conditions.UnservedByPolicy(ports, traffic), "no port of the Service has an available endpoint"))
	}
	return strings.Join(slices.Compact(texts), "; ")
}
