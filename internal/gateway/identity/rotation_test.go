// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tombolo-mcs/tombolo/internal/check"
)

// A member that renews its leaf each day and its authority when it is due, and whose hub stores new certificates after a random delay:
// whenever an importer verifies a leaf, also with the bundle of up to a day ago, and the leaf is younger than a week, it is accepted.
//
// spec: G5
func TestRotation(t *testing.T) {
	t.Parallel()
	authorities := make([]Authority, 3)
	for i := range authorities {
		authorities[i] = newAuthority(t, "a", now)
	}
	rapid.Check(t, func(t *rapid.T) {
		unused := slices.Clone(authorities)
		take := func(at time.Time) Stage {
			certificate := *unused[0].Certificate
			certificate.NotBefore, certificate.NotAfter = at, at.Add(AuthorityLifetime)
			stage := Stage{Authority: Authority{&certificate, unused[0].key}}
			unused = unused[1:]
			return stage
		}
		rotation := Rotation{take(now)}
		type issue struct {
			at     time.Time
			signer *x509.Certificate
		}
		var bundles [][]Authority // one for each 6 h
		var issues []issue
		replace := now.Add(time.Duration(rapid.IntRange(0, 40).Draw(t, "replaced after")) * 6 * time.Hour)
		delay := time.Duration(rapid.IntRange(0, 8).Draw(t, "published after")) * 6 * time.Hour
		for at := now; at.Before(now.Add(30 * 24 * time.Hour)); at = at.Add(6 * time.Hour) {
			if at.Equal(replace) { // as an administrator asks for
				rotation = append(rotation, take(at))
			}
			if last := len(rotation) - 1; last > 0 && !at.Before(replace.Add(delay)) && rotation[last].Published.IsZero() {
				rotation[last].Published = at
			}
			rotation = rotation.Pruned(at)
			signer := rotation.Signer(at)
			if signer < 0 {
				t.Fatalf("at %s no authority signs", at)
			}
			issues = append(issues, issue{at, rotation[signer].Certificate})
			bundles = append(bundles, rotation.Authorities())
			for _, issued := range issues {
				for _, bundle := range bundles[max(0, len(bundles)-5):] {
					accepts := slices.ContainsFunc(bundle, func(a Authority) bool { return a.Certificate == issued.signer })
					if at.Before(issued.at.Add(LeafLifetime)) && !accepts {
						t.Fatalf("at %s, a leaf of %s is not accepted", at, issued.at)
					}
				}
			}
		}
		if len(rotation) > 1 && !replace.Add(delay+overlap+LeafLifetime).After(now.Add(29*24*time.Hour)) {
			t.Fatalf("there are %d authorities, although the first has signed no valid leaf", len(rotation))
		}
	})
}

// spec: G5
func TestRotationTimes(t *testing.T) {
	t.Parallel()
	if r := (Rotation{}); !r.NeedsAuthority(now) || r.Signer(now) != -1 || len(r.Authorities()) > 0 {
		t.Error("without an authority, none is needed")
	}
	first := Stage{Authority: newAuthority(t, "a", now)}
	due := now.Add(-skew + (AuthorityLifetime+skew)*2/3).Truncate(time.Second)
	past := now.Add(-AuthorityLifetime)
	future := Stage{Authority: newAuthority(t, "a", now.Add(30*24*time.Hour))}
	expired := Stage{Authority: newAuthority(t, "a", past.Add(-time.Hour))}
	for name, test := range map[string]struct {
		rotation Rotation
		at       time.Time
		signer   int
		stages   int
		needs    bool
		next     time.Time
	}{
		"the first one":        {Rotation{first}, now, 0, 1, false, due},
		"before two thirds":    {Rotation{first}, due.Add(-time.Minute), 0, 1, false, due},
		"at two thirds":        {Rotation{first}, due.Add(time.Minute), 0, 1, true, due.Add(time.Minute)},
		"not published yet":    {Rotation{first, first}, now, 0, 2, false, due},
		"published now":        {Rotation{first, {first.Authority, now}}, now, 0, 2, false, now.Add(overlap)},
		"published for a day":  {Rotation{first, {first.Authority, now}}, now.Add(overlap), 1, 2, false, now.Add(overlap + LeafLifetime)},
		"old leaves are valid": {Rotation{first, {first.Authority, now}}, now.Add(overlap + LeafLifetime - 1), 1, 2, false, now.Add(overlap + LeafLifetime)},
		"old leaves expired":   {Rotation{first, {first.Authority, now}}, now.Add(overlap + LeafLifetime), 1, 1, false, due},
		// The clock was ahead when the first one was created, the agent was off until it had expired, or the clock was back.
		"from the future":                 {Rotation{future}, now, -1, 1, true, now},
		"one more, not published":         {Rotation{future, first}, now, 1, 2, false, now.Add(30*24*time.Hour - skew)},
		"expired":                         {Rotation{expired}, now, -1, 1, true, now},
		"expired, and one more":           {Rotation{expired, first}, now, 1, 2, false, due},
		"expired, and one published now":  {Rotation{expired, {first.Authority, now}}, now, 1, 2, false, now.Add(overlap)},
		"valid, and one from the future":  {Rotation{first, {future.Authority, past}}, now, 0, 2, false, now.Add(30*24*time.Hour - skew)},
		"valid, and one that has expired": {Rotation{first, {expired.Authority, past}}, now, 0, 2, false, due},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, at := test.rotation, test.at
			check.Equal(t, "signer and number of stages", [2]int{test.signer, test.stages}, [2]int{r.Signer(at), len(r.Pruned(at))})
			check.Equal(t, "an authority is needed", test.needs, r.NeedsAuthority(at))
			if next := r.Next(at); next.Sub(test.next).Abs() > time.Second {
				t.Errorf("next is %s, want %s", next, test.next)
			}
		})
	}
}

// An agent whose clock jumps, that is off for months, whose hub is away, or whose Secrets are restored from a backup: as soon as it runs
// with the right time, the cluster has a certificate that its bundle verifies, and keeps one.
//
// spec: G5
func TestOnlyValidAuthoritiesSign(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	name := Name{"set", "a"}
	rapid.Check(t, func(r *rapid.T) {
		type secrets struct {
			rotation Rotation
			leaf     *x509.Certificate
		}
		var stored secrets
		run := func(at time.Time, published bool) { // what the agent does at a time of its clock
			rotation := stored.rotation.Pruned(at)
			if rotation.NeedsAuthority(at) {
				rotation = rotation.Add(newAuthority(t, "a", at), at)
			}
			if stored.leaf == nil || rotation.NeedsLeaf(stored.leaf, name, at) {
				stored.leaf = newLeaf(t, rotation[rotation.Signer(at)].Authority, name, at).Leaf
			}
			if published {
				rotation = rotation.MarkPublished(at)
			}
			stored.rotation = rotation
			if len(rotation) > maxBundle {
				r.Fatalf("%d authorities", len(rotation))
			}
			if next := rotation.Next(at); !next.After(at) {
				r.Fatalf("at %s, something is to be done at %s", at, next)
			}
		}
		accepted := func(at time.Time) {
			options := x509.VerifyOptions{Roots: poolOf(stored.rotation.Authorities()...), CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}
			if _, err := stored.leaf.Verify(options); err != nil {
				r.Fatalf("at %s, the certificate is not accepted: %v", at, err)
			}
		}
		at := now
		var backups []secrets
		for range rapid.IntRange(0, 8).Draw(r, "steps") {
			at = at.Add(time.Duration(rapid.IntRange(0, 800).Draw(r, "days")) * day)
			published := rapid.Bool().Draw(r, "the hub is reached")
			switch rapid.SampledFrom([]string{"right", "ahead", "behind", "restored"}).Draw(r, "clock") {
			case "right":
				run(at, published)
				accepted(at)
			case "ahead":
				run(at.Add(time.Duration(rapid.IntRange(1, 900).Draw(r, "by"))*day), published)
			case "behind":
				run(at.Add(-time.Duration(rapid.IntRange(1, 900).Draw(r, "by"))*day), published)
			case "restored":
				if len(backups) > 0 {
					stored = rapid.SampledFrom(backups).Draw(r, "backup")
				}
			}
			backups = append(backups, stored)
		}
		for range 60 { // the time is right from now on, and the hub is reached
			run(at, true)
			accepted(at)
			accepted(at.Add(6 * time.Hour))
			at = at.Add(6 * time.Hour)
		}
	})
}

// spec: G5
func TestLeaf(t *testing.T) {
	t.Parallel()
	authority := newAuthority(t, "a", now)
	certificate, key, err := authority.Encode()
	check.Must(t, err)
	decoded, err := DecodeAuthority(certificate, key)
	check.Must(t, err)
	leaf := newLeaf(t, decoded, Name{"set", "a"}, now).Leaf
	if begin, end := leaf.NotBefore, leaf.NotAfter; !begin.Equal(now.Add(-10*time.Minute)) || !end.Equal(now.Add(7*24*time.Hour)) {
		t.Errorf("a leaf is valid from %s to %s", begin, end)
	}
	check.Equal(t, "a leaf is renewed at", now.Add(24*time.Hour), RenewAt(leaf))
	if last := newLeaf(t, decoded, Name{"set", "a"}, now.Add(AuthorityLifetime-time.Hour)).Leaf; last.NotAfter.After(authority.Certificate.NotAfter) {
		t.Errorf("a leaf is valid until %s, longer than its authority", last.NotAfter)
	}
	otherCertificate, otherKey, err := newAuthority(t, "a", now).Encode()
	check.Must(t, err)
	for name, test := range map[string]struct{ certificate, key []byte }{
		"the key of another": {certificate, otherKey},
		"two certificates":   {slices.Concat(certificate, otherCertificate), key},
		"no key":             {certificate, nil},
		"two keys":           {certificate, slices.Concat(key, otherKey)},
		"no certificate":     {nil, key},
		"a certificate":      {certificate, certificate},
	} {
		if _, err := DecodeAuthority(test.certificate, test.key); err == nil {
			t.Errorf("%s: decoded", name)
		}
	}
	if _, err := DecodeLeaf(certificate, key); err == nil {
		t.Error("the certificate of an authority is decoded as a leaf")
	}
	if _, err := DecodeLeaf(certificate, otherKey); err == nil {
		t.Error("a leaf with another key is decoded")
	}
}

// spec: G5
func TestDecodeBundle(t *testing.T) {
	t.Parallel()
	var authorities []Authority
	for range maxBundle + 1 {
		authorities = append(authorities, newAuthority(t, "a", now))
	}
	good := EncodeBundle(authorities[:1])
	if certificates, err := DecodeBundle(EncodeBundle(authorities[:maxBundle])); err != nil || len(certificates) != maxBundle {
		t.Errorf("%d certificates, %v", len(certificates), err)
	}
	authority := func(change func(*x509.Certificate)) string {
		template := &x509.Certificate{IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign, Subject: pkix.Name{CommonName: "a"}}
		change(template)
		certificate, err := create(template, template, authorities[0].key, authorities[0].key)
		check.Must(t, err)
		return string(encodeCertificate(certificate))
	}
	signed := func(public any, signer any) string {
		template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign}
		der, err := x509.CreateCertificate(rand.Reader, template, template, public, signer)
		check.Must(t, err)
		return string(encodeCertificate(&x509.Certificate{Raw: der}))
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	check.Must(t, err)
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	check.Must(t, err)
	for name, test := range map[string]struct{ text, want string }{
		"empty":             {"", "has no certificate"},
		"garbage":           {"hello", "more than PEM blocks"},
		"garbage before":    {"hello\n" + good, "more than PEM blocks"},
		"garbage after":     {good + "hello", "more than PEM blocks"},
		"a header":          {strings.Replace(good, "-----\n", "-----\na: b\n\n", 1), "more than PEM blocks"},
		"a key":             {strings.ReplaceAll(good, "CERTIFICATE", "EC PRIVATE KEY"), "more than PEM blocks"},
		"no certificate":    {"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n", "certificate 1: x509"},
		"twice":             {good + good, "certificate 2 is there twice"},
		"too many":          {EncodeBundle(authorities), "more than 4 certificates"},
		"too long":          {strings.Repeat(good, 40), "bytes, more than 16384"},
		"a leaf":            {authority(func(c *x509.Certificate) { c.IsCA, c.MaxPathLenZero = false, false }), "is not one of an authority"},
		"signs no leaf":     {authority(func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageDigitalSignature }), "is not one of an authority"},
		"signs authorities": {authority(func(c *x509.Certificate) { c.MaxPathLen, c.MaxPathLenZero = 1, false }), "may sign other authorities"},
		"RSA":               {signed(rsaKey.Public(), rsaKey), "has a key of another kind"},
		"P-384":             {signed(p384.Public(), p384), "has a key of another kind"},
	} {
		_, err := DecodeBundle(test.text)
		checkRefusal(t, name, err, test.want)
	}
}

// What is decoded is encoded to the same text.
func FuzzDecodeBundle(f *testing.F) {
	f.Add(EncodeBundle([]Authority{newAuthority(f, "a", now), newAuthority(f, "b", now)}))
	f.Add("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n")
	f.Fuzz(func(t *testing.T, text string) {
		certificates, err := DecodeBundle(text)
		if err != nil {
			return
		}
		var again []Authority
		for _, certificate := range certificates {
			again = append(again, Authority{Certificate: certificate})
		}
		if EncodeBundle(again) != text {
			t.Errorf("%q is encoded as %q", text, EncodeBundle(again))
		}
	})
}

// A new leaf with the bundle of a day ago, and an old leaf with a new bundle; an agent that was stopped for 48 h.
//
// spec: G5
func TestRotationEndToEnd(t *testing.T) {
	t.Parallel()
	name := Name{"set", "a"}
	rotation := Rotation{{Authority: newAuthority(t, "a", now)}, {newAuthority(t, "a", now), now}}
	sign := func(at time.Time) *tls.Certificate {
		return newLeaf(t, rotation[rotation.Signer(at)].Authority, name, at)
	}
	old, bundle := sign(now.Add(overlap-time.Hour)), poolOf(rotation.Authorities()...)
	fresh := sign(now.Add(overlap))
	if old.Leaf.CheckSignatureFrom(rotation[0].Certificate) != nil || fresh.Leaf.CheckSignatureFrom(rotation[1].Certificate) != nil {
		t.Error("another authority has signed")
	}
	for _, leaf := range []*tls.Certificate{old, fresh} {
		options := x509.VerifyOptions{Roots: bundle, CurrentTime: now.Add(overlap + 48*time.Hour)}
		_, err := leaf.Leaf.Verify(options)
		check.Must(t, err)
	}
}
