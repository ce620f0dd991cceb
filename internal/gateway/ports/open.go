// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package ports

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Open are the listening ports that are open at an address of a gateway, with a digest of what each leads to. It is the configuration that
// the gateway has applied, and the gateway's answer to a probe of the agent has it (G8).
type Open map[int32]Digest

// Digest identifies an Owner. A port that has another owner than before has another Digest.
type Digest [8]byte

// DigestOf returns the Digest of an owner.
func DigestOf(owner Owner) Digest {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %d %s", owner.Service, owner.Cluster, owner.Port, owner.Hostname))
	return Digest(sum[:len(Digest{})])
}

// Leads reports whether a port is open and leads to an owner.
func (o Open) Leads(port int32, to Owner) bool {
	digest, open := o[port]
	return open && digest == DigestOf(to)
}

// MaxOpenText is the length of the longest text that Encode returns.
const MaxOpenText = number * len("10000 0123456789abcdef\n")

// Encode returns the ports as text: one line for each, in their order.
func (o Open) Encode() []byte {
	var result []byte
	for _, port := range slices.Sorted(maps.Keys(o)) {
		result = fmt.Appendf(result, "%d %x\n", port, o[port])
	}
	return result
}

// DecodeOpen returns the ports of a text. It returns an error if Encode does not return this text.
func DecodeOpen(text []byte) (Open, error) {
	result := Open{}
	for line := range strings.Lines(string(text)) {
		first, last, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		port, portErr := strconv.ParseInt(first, 10, 32)
		digest, digestErr := hex.DecodeString(last)
		if portErr != nil || digestErr != nil || len(digest) != len(Digest{}) || port < First || port > Last {
			return nil, fmt.Errorf("line %.40q is no listening port with a digest", line)
		}
		result[int32(port)] = Digest(digest)
	}
	if !bytes.Equal(result.Encode(), text) {
		return nil, fmt.Errorf("the listening ports are not in their order, or one is there twice")
	}
	return result, nil
}
