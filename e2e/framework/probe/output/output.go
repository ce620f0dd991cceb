// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package output has the lines that probe prints, in JSON.
package output

import "time"

// Result is what became of one request.
type Result struct {
	Time time.Time `json:"time"`
	// MS is how long lookup, connection and answer took together, in milliseconds.
	MS      float64 `json:"ms"`
	Cluster string  `json:"cluster"`
	Pod     string  `json:"pod"`
	Node    string  `json:"node"`
	Port    int     `json:"port"`
	Client  string  `json:"client"`
	// Address is the one dialled, empty where the lookup failed.
	Address string `json:"address"`
	Error   string `json:"error,omitempty"`
}

// Reply is what a nameserver answered to a question.
type Reply struct {
	Time  time.Time `json:"time"`
	Name  string    `json:"name"`
	Type  string    `json:"type"`
	Rcode string    `json:"rcode"`
	// Answers are the data of the answer's records, sorted; those of another type than asked for, as CNAME, with their type.
	Answers []string `json:"answers"`
	// Extra are the additional records, sorted, each with its owner and type.
	Extra []string `json:"extra"`
	// TTL is the lowest of the answer's records in seconds, or, if there are none, how long the absence may be cached (RFC
	// 2308, section 5).
	TTL uint32 `json:"ttl"`
	// Truncated is whether the answer was cut off.
	Truncated bool    `json:"truncated,omitempty"`
	MS        float64 `json:"ms"`
	Error     string  `json:"error,omitempty"`
}

// Figures are what all requests of a run come to.
type Figures struct {
	Requests int `json:"requests"`
	// Failed counts those that got no answer, those that could not be begun among them.
	Failed int `json:"failed"`
	// Skipped counts requests that this program did not begin because its machine stood still.
	Skipped   int            `json:"skipped,omitempty"`
	ByCluster map[string]int `json:"byCluster,omitzero"`
	ByPod     map[string]int `json:"byPod,omitzero"`
	ByRcode   map[string]int `json:"byRcode,omitzero"`
	// Changes counts the answers that differed from the one before, the first not among them.
	Changes int `json:"changes,omitempty"`
	// LongestGapMS is the longest time without an answer: between two, before the first or after the last.
	LongestGapMS float64 `json:"longestGapMs"`
	// P99MS is what 99 of 100 answers took at most.
	P99MS float64 `json:"p99ms"`
}
