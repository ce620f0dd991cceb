// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/survey"
)

const aboutRelease = `Have clusters believe that the services of a member are gone.

Where the hub has lost most of what a member exported, the others keep what they have of it until the member has confirmed
the loss for a while ("kubectl clusterset status" says DeletionHeld). This lets it go at once: it adds the member to
acceptDeletionsOf of those clusters' Members on the hub, waits until they have let go, and takes the entry away again, so
that the next loss is held as well. It does so too when it is interrupted.

Make sure first that the services are gone on purpose: pods that rely on them lose them.`

const examplesRelease = `  kubectl clusterset release east --dry-run
  kubectl clusterset release east
  kubectl clusterset release east --in west,north`

// Patience of release.
const (
	defaultReleaseWait = 2 * time.Minute
	cleanupTime        = 30 * time.Second
)

// errStillHeld says that a cluster did not let go in time.
var errStillHeld = errors.New("not everything has been let go: does the agent run there? See kubectl clusterset status")

// releasing is a release under way.
type releasing struct {
	reading
	in     []string
	dryRun bool
	wait   time.Duration

	member clusterset.ClusterID
	found  *survey.Clusterset
	hub    *cluster
	r      *report
}

func newRelease(usual *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	l := &releasing{}
	cmd := &cobra.Command{
		Use:     "release MEMBER",
		Short:   "let go of what is held of a member",
		Long:    aboutRelease,
		Example: examplesRelease,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l.r = &report{out: streams.Out}
			var err error
			if l.member, err = clusterset.ParseClusterID(args[0]); err != nil {
				return usageError{err}
			}
			if l.found, err = l.find(cmd.Context(), usual, streams.ErrOut); err != nil {
				return err
			}
			l.hub, err = connect("the hub", "--hub-kubeconfig and --hub-context", l.found.Hub.Place.Config, installing{dryRun: l.dryRun})
			if err != nil {
				return err
			}
			return l.run(cmd.Context())
		},
	}
	l.addFlags(cmd.Flags())
	cmd.Flags().StringSliceVar(&l.in, "in", nil, "IDs of the clusters that are to let go, comma-separated; all that hold something where empty")
	cmd.Flags().BoolVar(&l.dryRun, "dry-run", false, "say what is held where, and change nothing")
	cmd.Flags().DurationVar(&l.wait, "wait", defaultReleaseWait, "how long to wait until it has been let go")
	return cmd
}

func (l *releasing) run(ctx context.Context) error {
	l.r.titlef("Checking what is held of %s", l.member)
	held, err := l.held(ctx)
	if err != nil {
		return err
	}
	if err := l.r.verdict(); err != nil || len(held) == 0 || l.dryRun {
		return err
	}
	clusters := slices.Sorted(maps.Keys(held))
	return l.accepting(ctx, clusters, func(ctx context.Context) error { return l.await(ctx, clusters) })
}

// held returns the services that are held of the member, by the cluster that holds them, and tells them.
func (l *releasing) held(ctx context.Context) (map[clusterset.ClusterID][]clusterset.ServiceKey, error) {
	result := map[clusterset.ClusterID][]clusterset.ServiceKey{}
	for _, sight := range l.found.Sights(ctx) {
		if len(l.in) > 0 && !slices.Contains(l.in, string(sight.ID)) {
			continue
		}
		if sight.Err != nil {
			return nil, sight.Err
		}
		keys := l.found.Hub.HeldImports(sight)[l.member]
		if len(keys) == 0 {
			continue
		}
		result[sight.ID] = keys
		l.r.notef("%s holds %s", sight.ID, heldServices(keys))
	}
	for _, id := range l.in {
		switch {
		case l.found.Member(clusterset.ClusterID(id)) == nil:
			l.r.failf("cluster %s is not reached, so nobody sees what it holds: none of the contexts leads there, or it is no member", id)
		case result[clusterset.ClusterID(id)] == nil:
			l.r.okf("%s holds nothing of %s", id, l.member)
		}
	}
	if len(result) == 0 && len(l.in) == 0 {
		l.r.okf("none of the %d clusters that are reached holds anything of %s", len(l.found.Members), l.member)
	}
	return result, nil
}

// heldServices names the first of them.
func heldServices(keys []clusterset.ServiceKey) string {
	const most = 5
	text := ""
	for i, key := range keys {
		switch {
		case i == most:
			return fmt.Sprintf("%d services: %s, and %d more", len(keys), text, len(keys)-most)
		case i > 0:
			text += ", "
		}
		text += key.String()
	}
	return fmt.Sprintf("%d services: %s", len(keys), text)
}

// await returns when none of the clusters holds anything of the member.
func (l *releasing) await(ctx context.Context, clusters []clusterset.ClusterID) error {
	l.r.titlef("Waiting up to %s until they let go", l.wait)
	ctx, cancel := context.WithTimeout(ctx, l.wait)
	defer cancel()
	for _, id := range clusters {
		err := wait.PollUntilContextCancel(ctx, pollEvery, true, func(ctx context.Context) (bool, error) {
			sight := l.found.Member(id).Sight(ctx)
			if sight.Err != nil {
				return false, ignoreTransient(sight.Err)
			}
			return len(l.found.Hub.HeldImports(sight)[l.member]) == 0, nil
		})
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			l.r.failf("%s still holds it", id)
		case err != nil:
			return err
		default:
			l.r.okf("%s holds nothing of %s any more", id, l.member)
		}
	}
	if l.r.failed > 0 {
		return errStillHeld
	}
	return nil
}
