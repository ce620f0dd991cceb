// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/manifests"
)

// images returns the images of the Deployments among the objects, sorted.
func images(t *testing.T, install manifests.InstallOptions) []string {
	t.Helper()
	var all []string
	for _, d := range ofKind[appsv1.Deployment](t, must(t)(manifests.Install(install)), "Deployment") {
		all = append(all, d.Spec.Template.Spec.Containers[0].Image)
	}
	slices.Sort(all)
	return all
}

// TestCompleteNames: each image of each profile has the registry and the version of the release, unless an option replaces it.
func TestCompleteNames(t *testing.T) {
	release, err := manifests.CurrentRelease()
	check.Must(t, err)
	if !strings.Contains(release.Registry, ".") || release.Version == "" {
		t.Errorf("the release is %+v", release)
	}
	want := []string{release.Image("tombolo-agent"), release.Image("tombolo-dns"), release.Image("tombolo-gateway")}
	for _, parts := range []manifests.Parts{manifests.Quickstart, manifests.Production} {
		check.Equal(t, string(parts), want, images(t, manifests.InstallOptions{Parts: parts, Gateway: true}))
	}
	replaced := manifests.InstallOptions{
		Parts: manifests.Quickstart, Gateway: true,
		AgentImage: "x.example:5000/a@sha256:" + strings.Repeat("a", 64), DNSImage: "x.example:5000/b:v1",
	}
	want = []string{release.Image("tombolo-gateway"), replaced.AgentImage, replaced.DNSImage}
	check.Equal(t, "images", want, images(t, replaced))
}
