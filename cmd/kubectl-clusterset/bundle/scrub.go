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

// removed replaces a secret.
const removed = "(removed)"

// minSecret is the minimum length of a value that is replaced: shorter ones occur in unrelated text.
const minSecret = 6

// scrubber removes secrets from texts: the values that were added, and anything that resembles a secret.
type scrubber struct {
	secrets  map[string]bool
	replacer *strings.Replacer // of the secrets; nil until it is used
}

// add adds secrets, in all encodings in which a text may contain them.
func (s *scrubber) add(values ...string) {
	if s.secrets == nil {
		s.secrets = map[string]bool{}
	}
	for _, value := range values {
		if len(strings.TrimSpace(value)) < minSecret {
			continue
		}
		inJSON, err := json.Marshal(value)
		if err != nil {
			continue // it never fails for a string
		}
		quoted := strings.Trim(string(inJSON), `"`)
		for _, form := range []string{value, quoted, strings.ReplaceAll(quoted, `\"`, `\\\"`), base64.StdEncoding.EncodeToString([]byte(value))} {
			s.secrets[form] = true
		}
	}
	s.replacer = nil
}

// knownSecrets returns a replacer of the secrets, the longest first.
func (s *scrubber) knownSecrets() *strings.Replacer {
	if s.replacer == nil {
		forms := slices.SortedFunc(maps.Keys(s.secrets), func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
		var pairs []string
		for _, form := range forms {
			pairs = append(pairs, form, removed)
		}
		s.replacer = strings.NewReplacer(pairs...)
	}
	return s.replacer
}

// secretPatterns match text that resembles a secret. The first group is kept.
var secretPatterns = []*regexp.Regexp{
	regexp.MustCompile(`(?s)()-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)`),
	regexp.MustCompile(`(?i)((?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{6,}`),
	regexp.MustCompile(`()eyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]*)?`),
	regexp.MustCompile(`(?i)((?:password|passwd|secret[_-]?(?:key|access[_-]?key)|api[_-]?key|access[_-]?key|token|credential)s?\\?["']?\s*[:=]\s*\\?["']?)[^\s"',;&\\]{4,}`),
	regexp.MustCompile(`(://)[^\s/@:"']+:[^\s/@"']+@`),
}

// scrub returns a text without secrets.
func (s *scrubber) scrub(text string) string {
	text = s.knownSecrets().Replace(text)
	for _, pattern := range secretPatterns {
		text = pattern.ReplaceAllString(text, "${1}"+removed)
	}
	return text
}
