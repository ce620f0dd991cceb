// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"encoding/json"
	"strings"
)

// records are what DNS says: see e2e/probe.
type records struct {
	Name    string   `json:"name"`
	Type    string   `json:"type"`
	Rcode   string   `json:"rcode"`
	Answers []string `json:"answers"`
	Extra   []string `json:"extra"`
	TTL     uint32   `json:"ttl"`
	Error   string   `json:"error"`
}

// resolve asks the cluster's DNS, from the client pod, for exactly this name.
func (p *place) resolve(kind, name string) records {
	p.Helper()
	var r records
	lines := p.probe("resolve", "-type", kind, strings.TrimSuffix(name, ".")+".")
	if err := json.Unmarshal([]byte(lines[0]), &r); err != nil {
		p.Fatalf("probe printed %q: %v", lines[0], err)
	}
	return r
}
