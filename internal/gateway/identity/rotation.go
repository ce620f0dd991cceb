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

// Rotation are the authorities of a member, from the oldest to the newest. Only an authority that is valid now signs.
type Rotation []Stage

// Signer returns the index of the authority that signs at a time: the newest valid one that was published long enough ago, or else the
// oldest valid one, which does not wait, because no importer has another valid one. It returns -1 if none is valid: NeedsAuthority is true.
func (r Rotation) Signer(now time.Time) int {
	for i := range slices.Backward(r) {
		if r.mayReplace(i, now) {
			return i
		}
	}
	return slices.IndexFunc(r, func(s Stage) bool { return s.isValid(now) })
}

// mayReplace reports whether an authority is valid, and has been published for long enough to sign although an older one is valid.
func (r Rotation) mayReplace(i int, now time.Time) bool {
	start, ok := r.start(i)
	return ok && !now.Before(start) && r[i].isValid(now)
}

// start returns when an authority begins to sign although an older one is valid, and false if this is not known yet.
func (r Rotation) start(i int) (time.Time, bool) {
	return r[i].Published.Add(overlap), !r[i].Published.IsZero()
}

// Pruned returns the rotation without the authorities that were replaced so long ago that their last leaf has expired. An authority that
// is not valid now replaces none: the clock may be wrong, or may have been.
func (r Rotation) Pruned(now time.Time) Rotation {
	for i := len(r) - 1; i > 0; i-- {
		if start, ok := r.start(i); ok && !now.Before(start.Add(LeafLifetime)) && r[i].isValid(now) {
			return slices.Clone(r[i:])
		}
	}
	return r
}

// NeedsAuthority reports whether a new authority has to be created: each one is at two thirds of its life, or is not valid now.
func (r Rotation) NeedsAuthority(now time.Time) bool {
	return !slices.ContainsFunc(r, func(s Stage) bool { return s.isValid(now) && now.Before(s.replaceAt()) })
}

// Add returns the rotation with a new authority. A bundle has room for maxBundle: others are left out if necessary, the oldest first of
// those that are not valid now, and then of the others except the signer.
func (r Rotation) Add(authority Authority, now time.Time) Rotation {
	result := slices.Clone(r)
	for len(result) >= maxBundle {
		i := slices.IndexFunc(result, func(s Stage) bool { return !s.isValid(now) })
		if i < 0 && result.Signer(now) == 0 {
			i = 1
		}
		i = max(i, 0)
		result = slices.Delete(result, i, i+1)
	}
	return append(result, Stage{Authority: authority})
}

func (s Stage) replaceAt() time.Time {
	return s.Certificate.NotBefore.Add(s.Certificate.NotAfter.Sub(s.Certificate.NotBefore) * 2 / 3)
}

// Next returns the next time at which Signer, Pruned or NeedsAuthority have another result, if nothing else changes; now or an earlier time
// if an authority is needed.
func (r Rotation) Next(now time.Time) time.Time {
	next := now
	if !r.NeedsAuthority(now) {
		next = now.Add(AuthorityLifetime)
	}
	for i, stage := range r {
		times := []time.Time{stage.Certificate.NotBefore, stage.replaceAt(), stage.Certificate.NotAfter}
		if start, ok := r.start(i); ok && i > 0 {
			times = append(times, start, start.Add(LeafLifetime))
		}
		for _, at := range times {
			if at.After(now) && at.Before(next) {
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

// NeedsLeaf reports whether a new certificate has to be issued: the leaf is a day old, not valid now, has another name, or none of the
// authorities that are valid now has signed it.
func (r Rotation) NeedsLeaf(leaf *x509.Certificate, name Name, now time.Time) bool {
	found, err := nameOf(leaf)
	return err != nil || found != name || !isValid(leaf, now) || !now.Before(RenewAt(leaf)) ||
		!slices.ContainsFunc(r, func(s Stage) bool { return s.isValid(now) && leaf.CheckSignatureFrom(s.Certificate) == nil })
}
