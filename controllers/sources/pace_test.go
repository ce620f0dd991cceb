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

// A member that changes a service again and again is followed, but not at its own pace, and each change is seen by a look
// that comes after it.
func TestPace(t *testing.T) {
	t.Parallel()
	const changes, apart = 2000, time.Millisecond
	c := clocktesting.NewFakeClock(start)
	p := newPacer(c)
	made, seen, looks := 0, 0, 0
	look := func() { seen, looks = made, looks+1 }
	for range changes {
		made++
		p.pace(contribution{"a", web}, look)
		if made <= changesAtOnce && seen != made {
			t.Fatalf("nobody looks when change %d is made", made)
		}
		c.Step(apart)
	}
	c.Step(time.Second / changesPerSecond)
	if seen != made {
		t.Errorf("of %d changes the last look saw %d", made, seen)
	}
	if want := changesAtOnce + int(changes*apart/time.Second)*changesPerSecond; looks < want-1 || looks > want+1 {
		t.Errorf("%d changes in 2 s are looked at %d times, want about %d", changes, looks, want)
	}

	for name, other := range map[string]contribution{
		"another service of it":         {"a", clusterset.ServiceKey{Namespace: "shop", Name: "api"}},
		"another member's part therein": {"b", web},
	} {
		before := looks
		p.pace(other, look)
		if looks != before+1 {
			t.Errorf("nobody looks when %s changes", name)
		}
	}
	c.Step(time.Minute)
	before := looks
	p.pace(contribution{"a", web}, look)
	if looks != before+1 {
		t.Error("a minute later, nobody looks when a change is made")
	}
}

// Many services do not make many buckets for good.
func TestPaceForgets(t *testing.T) {
	t.Parallel()
	c := clocktesting.NewFakeClock(start)
	p := newPacer(c)
	most := 0
	for i := range 100 * fewBuckets {
		p.pace(contribution{"a", clusterset.ServiceKey{Namespace: "shop", Name: fmt.Sprint(i)}}, func() {})
		c.Step(time.Millisecond)
		most = max(most, len(p.buckets))
	}
	if most > 2*fewBuckets {
		t.Errorf("there were %d buckets at a time", most)
	}
}
