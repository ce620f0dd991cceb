// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"crypto/x509"
	"slices"
	"time"
)

// overlap is the time for which the certificate of a new authority is on the hub before the authority signs: the longest time for which
// an importer may not have read it.
const overlap = 24 * time.Hour

// Stage is an authority of a member and the time since which its certificate has been on the hub; zero if it is not there yet.
type Stage struct {
	Authority
	Published time.Time
}

// Rotation are the authorities of a member, from the oldest to the newest. The newest that was published long enough ago signs; the
// first one signs without waiting, because no importer has any other.
type Rotation []Stage

// Signer returns the index of the authority that signs at a time; -1 if there is none.
func (r Rotation) Signer(now time.Time) int {
	for i := len(r) - 1; i > 0; i-- {
		if start, ok := r.start(i); ok && !now.Before(start) {
			return i
		}
	}
	return min(len(r), 1) - 1
}

// start returns when an authority that is not the first one begins to sign, and false if this is not known yet.
func (r Rotation) start(i int) (time.Time, bool) {
	return r[i].Published.Add(overlap), !r[i].Published.IsZero()
}

// Pruned returns the rotation without the authorities whose last leaf has expired.
func (r Rotation) Pruned(now time.Time) Rotation {
	for i := len(r) - 1; i > 0; i-- {
		if start, ok := r.start(i); ok && !now.Before(start.Add(LeafLifetime)) {
			return slices.Clone(r[i:])
		}
	}
	return r
}

// NeedsAuthority reports whether a new authority has to be created: there is none, or the newest is at two thirds of its life.
func (r Rotation) NeedsAuthority(now time.Time) bool {
	return len(r) == 0 || !now.Before(r.replaceAt())
}

func (r Rotation) replaceAt() time.Time {
	newest := r[len(r)-1].Certificate
	return newest.NotBefore.Add(newest.NotAfter.Sub(newest.NotBefore) * 2 / 3)
}

// Next returns the next time at which Signer, Pruned or NeedsAuthority have another result, if nothing else changes. r is not empty.
func (r Rotation) Next(now time.Time) time.Time {
	next := r.replaceAt()
	for i := 1; i < len(r); i++ {
		start, ok := r.start(i)
		for _, at := range []time.Time{start, start.Add(LeafLifetime)} {
			if ok && at.After(now) && (at.Before(next) || !next.After(now)) {
				next = at
			}
		}
	}
	return next
}

// Authorities returns the authorities whose certificates are published.
func (r Rotation) Authorities() []Authority {
	var result []Authority
	for _, stage := range r {
		result = append(result, stage.Authority)
	}
	return result
}

// MarkPublished returns the rotation after its certificates were stored on the hub at a time: this is the time of those that were not
// there before.
func (r Rotation) MarkPublished(at time.Time) Rotation {
	result := slices.Clone(r)
	for i := range result {
		if result[i].Published.IsZero() {
			result[i].Published = at.UTC().Truncate(time.Second)
		}
	}
	return result
}

// NeedsLeaf reports whether a new certificate has to be issued: the leaf is a day old or from the future, has another name, or none of
// the authorities has signed it.
func (r Rotation) NeedsLeaf(leaf *x509.Certificate, name Name, now time.Time) bool {
	found, err := nameOf(leaf)
	return err != nil || found != name || now.Before(leaf.NotBefore) || !now.Before(RenewAt(leaf)) ||
		!slices.ContainsFunc(r, func(s Stage) bool { return leaf.CheckSignatureFrom(s.Certificate) == nil })
}
