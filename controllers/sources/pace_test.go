// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package sources

import (
	"fmt"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

var (
	start = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	web   = clusterset.ServiceKey{Namespace: "shop", Name: "web"}
)

// looks returns when a service is looked at of which a member changes its contribution n times, so much time apart.
func looks(p *pacer, c *clocktesting.FakePassiveClock, by contribution, n int, apart time.Duration) []time.Duration {
	var at []time.Duration
	for range n {
		if wait, due := p.delay(by); due {
			at = append(at, c.Now().Add(wait).Sub(start))
		}
		c.SetTime(c.Now().Add(apart))
	}
	return at
}

// A member that changes a service again and again is followed, but not at its own pace, and the last change is not
// missed.
func TestPace(t *testing.T) {
	t.Parallel()
	const step = time.Second / changesPerSecond
	c := clocktesting.NewFakePassiveClock(start)
	p := newPacer(c)
	at := looks(p, c, contribution{"a", web}, 2000, time.Millisecond)
	for i, got := range at[:changesAtOnce] {
		if want := time.Duration(i) * time.Millisecond; got != want {
			t.Fatalf("change %d is looked at after %s, want at once, after %s", i, got, want)
		}
	}
	for i := changesAtOnce + 1; i < len(at); i++ {
		if gap := at[i] - at[i-1]; gap < step-time.Millisecond || gap > step+time.Millisecond {
			t.Fatalf("looks %d and %d are %s apart, want about %s", i-1, i, gap, step)
		}
	}
	if last := at[len(at)-1]; last < 1999*time.Millisecond {
		t.Errorf("after the last change, at 1.999s, nobody looks: the last look is at %s", last)
	}
	if want := changesAtOnce + 2*changesPerSecond; len(at) < want-1 || len(at) > want+1 {
		t.Errorf("2,000 changes in 2 s are looked at %d times, want about %d", len(at), want)
	}

	for name, other := range map[string]contribution{
		"another service of it":         {"a", clusterset.ServiceKey{Namespace: "shop", Name: "api"}},
		"another member's part therein": {"b", web},
	} {
		if wait, due := p.delay(other); wait != 0 || !due {
			t.Errorf("%s waits %s (%v)", name, wait, due)
		}
	}
	c.SetTime(c.Now().Add(time.Minute))
	if wait, due := p.delay(contribution{"a", web}); wait != 0 || !due {
		t.Errorf("a minute later, a change waits %s (%v)", wait, due)
	}
}

// Many services do not make many buckets for good.
func TestPaceForgets(t *testing.T) {
	t.Parallel()
	c := clocktesting.NewFakePassiveClock(start)
	p := newPacer(c)
	most := 0
	for i := range 100 * fewBuckets {
		p.delay(contribution{"a", clusterset.ServiceKey{Namespace: "shop", Name: fmt.Sprint(i)}})
		c.SetTime(c.Now().Add(time.Millisecond))
		most = max(most, len(p.buckets))
	}
	if most > 2*fewBuckets {
		t.Errorf("there were %d buckets at a time", most)
	}
}
