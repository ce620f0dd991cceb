// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package inithub

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/definition"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/output"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/skew"
	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	"github.com/tombolo-mcs/tombolo/manifests"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// outcomeIn returns "ok", "note" or "FAIL" for what a check reports.
func outcomeIn(t *testing.T, run func(*output.Report)) string {
	t.Helper()
	var out bytes.Buffer
	run(&output.Report{Out: &out})
	fields := strings.Fields(out.String())
	if strings.Count(out.String(), "\n") != 1 {
		t.Fatalf("reported\n%s", out.String())
	}
	return fields[0]
}

// TestVersions: no member is upgraded or joined to a version that is newer than its hub, and no hub is downgraded, unless it is asked for. If it
// is not known which is newer, a member is reported, and a hub is refused if it would lose something.
func TestVersions(t *testing.T) {
	t.Parallel()
	lost := []string{"Member.spec.later"}
	for _, tc := range []struct {
		hub, command            string
		member, init, initLoses string
	}{
		{"v1.2.0", "v1.2.0", "ok", "ok", "FAIL"},
		{"v1.2.0", "v1.1.0", "ok", "FAIL", "FAIL"},
		{"v1.2.0", "v1.2.0-rc.1", "ok", "FAIL", "FAIL"},
		{"v1.2.0", "v1.3.0", "FAIL", "ok", "note"},
		{"v1.2.0", "v2.0.0", "FAIL", "ok", "note"},
		{"v1.2.0", "dev", "note", "ok", "FAIL"},
		{"dev", "v1.2.0", "note", "ok", "FAIL"},
		{"dev", "dev", "ok", "ok", "FAIL"},
		{"", "v1.2.0", "note", "ok", "FAIL"},
		{"", "dev", "note", "ok", "FAIL"},
	} {
		name := fmt.Sprintf("hub %q, command %s: ", tc.hub, tc.command)
		check.Equal(t, name+"member", tc.member, outcomeIn(t, func(r *output.Report) { skew.Check(tc.command, tc.hub, nil, r) }))
		init := func(policy downgradePolicy, lost []string) string {
			return outcomeIn(t, func(r *output.Report) { hubChange{tc.hub, tc.command, lost}.report(policy, r) })
		}
		check.Equal(t, name+"init-hub", tc.init, init(refuseDowngrade, nil))
		check.Equal(t, name+"init-hub with something to lose", tc.initLoses, init(refuseDowngrade, lost))
		allowed := strings.Replace(tc.init, "FAIL", "note", 1)
		check.Equal(t, name+"init-hub --allow-downgrade", allowed, init(allowDowngrade, nil))
		check.Equal(t, name+"init-hub --allow-downgrade with something to lose", "note", init(allowDowngrade, lost))
	}
	check.Equal(t, "a hub that does not answer", "note", outcomeIn(t, func(r *output.Report) { skew.Check("v1.2.0", "", errors.New("down"), r) }))
}

// TestHubSaysItsVersion: the version that init-hub sets is where members read it.
func TestHubSaysItsVersion(t *testing.T) {
	t.Parallel()
	objects, err := manifests.Hub()
	check.Must(t, err)
	release, err := manifests.CurrentRelease()
	check.Must(t, err)
	version := func() (found string) {
		for _, object := range objects {
			if definition.Is(object) && object.GetName() == hub.VersionObject {
				found += object.GetAnnotations()[clusterset.AnnotationVersion]
			}
		}
		return found
	}
	check.Equal(t, "the version in the kustomization", release.Version, version())
	check.Must(t, setVersion(objects, "v1.2.3"))
	check.Equal(t, "the version that is set", "v1.2.3", version())
}
