// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// removed stands where something has been taken out.
const removed = "(removed)"

// minSecret is the length below which a value is not searched for in texts: it would be found everywhere.
const minSecret = 6

// scrubber takes secrets out of texts: those that it is told, and what looks like one.
type scrubber struct {
	known    map[string]bool
	replacer *strings.Replacer // of what is known; nil until it is asked for
}

// learn adds secrets, in the forms in which they may stand in a text.
func (s *scrubber) learn(values ...string) {
	if s.known == nil {
		s.known = map[string]bool{}
	}
	for _, value := range values {
		if len(strings.TrimSpace(value)) < minSecret {
			continue
		}
		inJSON, err := json.Marshal(value)
		if err != nil {
			continue // no string fails
		}
		quoted := strings.Trim(string(inJSON), `"`)
		for _, form := range []string{value, quoted, strings.ReplaceAll(quoted, `\"`, `\\\"`), base64.StdEncoding.EncodeToString([]byte(value))} {
			s.known[form] = true
		}
	}
	s.replacer = nil
}

// exact returns what replaces all that is known, the longest first.
func (s *scrubber) exact() *strings.Replacer {
	if s.replacer == nil {
		forms := slices.SortedFunc(maps.Keys(s.known), func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
		var pairs []string
		for _, form := range forms {
			pairs = append(pairs, form, removed)
		}
		s.replacer = strings.NewReplacer(pairs...)
	}
	return s.replacer
}

// suspicious is what looks like a secret. What stands in the first group stays.
var suspicious = []*regexp.Regexp{
	regexp.MustCompile(`(?s)()-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)`),
	regexp.MustCompile(`(?i)((?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{6,}`),
	regexp.MustCompile(`()eyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]*)?`),
	regexp.MustCompile(`(?i)((?:password|passwd|secret[_-]?(?:key|access[_-]?key)|api[_-]?key|access[_-]?key|token|credential)s?\\?["']?\s*[:=]\s*\\?["']?)[^\s"',;&\\]{4,}`),
	regexp.MustCompile(`(://)[^\s/@:"']+:[^\s/@"']+@`),
}

// scrub returns a text without secrets.
func (s *scrubber) scrub(text string) string {
	text = s.exact().Replace(text)
	for _, pattern := range suspicious {
		text = pattern.ReplaceAllString(text, "${1}"+removed)
	}
	return text
}
