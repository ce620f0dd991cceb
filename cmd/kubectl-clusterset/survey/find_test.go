// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/rest"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TestSelectHub: the hub is the given one, else the only hub that is read, else the known context whose URL an agent uses.
func TestSelectHub(t *testing.T) {
	t.Parallel()
	at := func(name, url string) KubeContext { return KubeContext{Name: name, Config: &rest.Config{Host: url}} }
	member := func(id clusterset.ClusterID, hub string) *Member {
		m := &Member{ID: id, UID: string(id), KubeContext: at(string(id), "https://"+string(id))}
		if hub != "" {
			m.Agent = &appsv1.Deployment{}
			m.Agent.Spec.Template.Annotations = map[string]string{AnnotationHub: hub}
		}
		return m
	}
	isHub := func(m *Member) *Member { m.hasMembers = true; return m }
	known := []KubeContext{at("one", "https://one:6443"), at("two", "https://two:6443/")}
	given := at("given", "https://given")
	for name, test := range map[string]struct {
		options FindOptions
		found   []*Member
		want    string
		err     error
		text    string
	}{
		"given":                   {FindOptions{Hub: &given, Known: known}, []*Member{isHub(member("a", ""))}, "given", nil, ""},
		"read":                    {FindOptions{Known: known}, []*Member{member("a", "https://one:6443"), isHub(member("b", ""))}, "b", nil, ""},
		"two contexts of one hub": {FindOptions{}, []*Member{isHub(member("b", "")), isHub(member("b", ""))}, "b", nil, ""},
		"two hubs":                {FindOptions{}, []*Member{isHub(member("a", "")), isHub(member("b", ""))}, "", ErrTwoHubs, "(a, b)"},
		"of an agent":             {FindOptions{Known: known}, []*Member{member("a", "https://two:6443")}, "two", nil, ""},
		"of the second agent":     {FindOptions{Known: known}, []*Member{member("a", ""), member("b", "https://one:6443/")}, "one", nil, ""},
		"of an agent, not known":  {FindOptions{Known: known}, []*Member{member("a", "https://three:6443")}, "", ErrNoHub, "the agent of a uses the hub at https://three:6443"},
		"another port":            {FindOptions{Known: known}, []*Member{member("a", "https://one:6444")}, "", ErrNoHub, "which is the server of no context"},
		"no agent":                {FindOptions{Known: known}, []*Member{member("a", "")}, "", ErrNoHub, ""},
		"nothing answers":         {FindOptions{Known: known}, nil, "", ErrNoHub, ""},
		"no context is known":     {FindOptions{}, []*Member{member("a", "https://one:6443")}, "", ErrNoHub, ""},
	} {
		got, err := test.options.selectHub(test.found)
		switch {
		case !errors.Is(err, test.err) || err != nil && !strings.Contains(err.Error(), test.text):
			t.Errorf("%s: %v, want %v with %q", name, err, test.err, test.text)
		case err == nil && got.Name != test.want:
			t.Errorf("%s: context %s, want %s", name, got.Name, test.want)
		}
	}
}
