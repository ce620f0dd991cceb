// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"context"
	"os"
	"testing"

	"github.com/tombolo-mcs/tombolo/e2e/framework/complete"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// TestInstallers: a cluster becomes a member by each way over what another way has left, after leave and after an uninstallation. Each time
// requests between it and another member are answered, by name and in both directions. e2e/integration/cli.TestInstallations has all pairs,
// without pods ("make upgrade-check").
func TestInstallers(t *testing.T) {
	lab.NeedComplete(t)
	if os.Getenv("UPGRADE_FROM") == "" {
		t.Skip("it is long: make upgrade-check runs it")
	}
	command := complete.Installation{Installer: complete.ByCommand, DNS: complete.OurPlugin}
	helm := complete.Installation{Installer: complete.ByHelm, DNS: complete.OurPlugin}
	kustomize := complete.Installation{Installer: complete.ByKustomize, DNS: complete.CoreDNSPlugin}
	st := startStage(t, complete.Options{Members: []string{"a"}, Late: []string{"c"}, Installations: map[string]complete.Installation{"c": command}})
	s := newScene(t, st)
	s.openMembers()
	a, c := s.in("a"), s.third()
	a.offer("web-of-a", 1)
	c.deploy("web-of-c", 1)
	c.create(service("web-of-c")) // c does not know exports yet
	leave := func(ctx context.Context) error { return s.Leave(ctx, "c") }
	uninstall := func(ctx context.Context) error { return s.Uninstall(ctx, "c") }
	for _, step := range []struct {
		by   complete.Installation
		over string
		end  func(context.Context) error
	}{
		{command, "nothing", leave},
		{helm, "what the command has left", uninstall},
		{command, "what Helm has left", leave},
		{kustomize, "what the command has left", uninstall},
		{helm, "what the kustomization has left", uninstall},
		{kustomize, "what Helm has left", uninstall},
		{command, "what the kustomization has left", leave},
	} {
		s.Logf("installing by %s over %s", step.by.Installer, step.over)
		s.Options.Installations["c"] = step.by
		if err := s.Join(s.Context(), "c"); err != nil {
			s.Fatalf("installing by %s over %s: %v", step.by.Installer, step.over, err)
		}
		exported := export("web-of-c")
		exported.Namespace = s.namespace
		lab.Must(s, ignoreExists(c.client.Create(s.Context(), exported)))
		c.awaitAnswer(s.name("web-of-a"))
		a.awaitAnswer(s.name("web-of-c"))
		if err := step.end(s.Context()); err != nil {
			s.Fatalf("the end of what was installed by %s over %s: %v", step.by.Installer, step.over, err)
		}
	}
}
