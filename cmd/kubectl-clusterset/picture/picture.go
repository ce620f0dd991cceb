// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package picture draws a clusterset: the exporters and importers of each service, conflicts, and silent members. It escapes the
// data of members.
package picture

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/assess"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// maxServices limits the number of services in a picture; with more it is not legible.
const maxServices = 200

// shown returns the services to draw, in their order, and the number of those left out. Services with problems are preferred.
func shown(s assess.Status) ([]assess.ServiceStatus, int) {
	if len(s.Services) <= maxServices {
		return s.Services, 0
	}
	troubled := map[string]bool{}
	for _, p := range s.Problems {
		troubled[p.Service] = true
	}
	byNeed := slices.Clone(s.Services)
	rank := func(service assess.ServiceStatus) int {
		if troubled[service.Key()] {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(byNeed, func(a, b assess.ServiceStatus) int { return cmp.Compare(rank(a), rank(b)) })
	result := byNeed[:maxServices]
	slices.SortStableFunc(result, func(a, b assess.ServiceStatus) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return result, len(s.Services) - maxServices
}

// exporter returns the exporter status of a cluster, and false if it does not export the service.
func exporter(s assess.ServiceStatus, id clusterset.ClusterID) (assess.ExporterStatus, bool) {
	i := slices.IndexFunc(s.Exporters, func(e assess.ExporterStatus) bool { return e.Cluster == id })
	if i < 0 {
		return assess.ExporterStatus{}, false
	}
	return s.Exporters[i], true
}

// disagrees reports whether a cluster's export differs from the oldest one.
func disagrees(s assess.ServiceStatus, id clusterset.ClusterID) bool {
	return slices.ContainsFunc(s.Conflicts, func(c assess.ConflictStatus) bool { return slices.Contains(c.Disagree, id) })
}

// problemText returns the conflicts and refused records of a service, and where it is served by fallback, in a few words; empty if there
// is nothing of these.
func problemText(s assess.ServiceStatus) string {
	var words []string
	for _, c := range s.Conflicts {
		words = append(words, c.Field)
	}
	text := ""
	if len(words) > 0 {
		text = "conflict: " + strings.Join(words, ", ")
	}
	if s.Refused > 0 {
		text = strings.TrimPrefix(text+fmt.Sprintf("; %d refused", s.Refused), "; ")
	}
	if len(s.Fallback) > 0 {
		text = strings.TrimPrefix(text+"; fallback in "+joined(s.Fallback), "; ")
	}
	return text
}

// stateText returns the state of a member in a few words; empty if it is connected and its imports are known.
func stateText(m assess.MemberStatus) string {
	switch {
	case m.State == survey.StateSilent:
		return "silent for " + duration.HumanDuration(m.Silence())
	case m.State == survey.StateNeverConnected:
		return "no heartbeat yet"
	case m.Imports == nil:
		return "imports not known"
	}
	return ""
}

// heading returns the title of a picture.
func heading(s assess.Status, services int) string {
	return fmt.Sprintf("%d members, %d services, %d problems at %s", len(s.Members), services, len(s.Problems), s.Time.UTC().Format(time.DateTime+"Z"))
}

// cut returns the printable text, cut to a number of characters. It cuts the middle, because names with the same beginning often
// differ at the end.
func cut(text string, most int) string {
	runes := []rune(printable(text))
	if len(runes) <= most {
		return string(runes)
	}
	end := (most - 1) / 2
	return string(runes[:most-1-end]) + "…" + string(runes[len(runes)-end:])
}

// printable replaces each character that is not printable.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}
