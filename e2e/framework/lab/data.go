// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Backup copies all that the cluster stores into a folder, which must not exist, as an administrator would who stops etcd
// for it. The API server is down meanwhile.
func (c *Cluster) Backup(ctx context.Context, into string) error {
	return c.whileStopped(ctx, func() error { return os.CopyFS(into, os.DirFS(c.data())) })
}

// Restore replaces the cluster's data by a backup and restarts the controllers, as etcd's documentation asks: their watches would wait
// for the revision at which the data was before. Programs that are not part of the control plane have to notice that by themselves.
func (c *Cluster) Restore(ctx context.Context, from string) error {
	return c.replaceData(ctx, func() error {
		return errors.Join(os.RemoveAll(c.data()), os.CopyFS(c.data(), os.DirFS(from)))
	})
}

// Wipe has the cluster lose all that it stores, but for what an API server makes for itself.
func (c *Cluster) Wipe(ctx context.Context) error {
	return c.replaceData(ctx, func() error { return os.RemoveAll(c.data()) })
}

func (c *Cluster) replaceData(ctx context.Context, replace func() error) error {
	if err := c.whileStopped(ctx, replace); err != nil {
		return err
	}
	if c.ControllerManager == nil || !c.ControllerManager.Running() {
		return nil
	}
	return c.RestartControllers(ctx)
}

// data is where etcd has the cluster's data.
func (c *Cluster) data() string { return filepath.Join(c.folder, dataFolder) }

// whileStopped stops the API server and etcd, does something, and returns when both are ready again.
func (c *Cluster) whileStopped(ctx context.Context, act func() error) error {
	if err := errors.Join(c.APIServer.Stop(ctx), c.Etcd.Stop(ctx)); err != nil {
		return err
	}
	if err := act(); err != nil {
		return fmt.Errorf("data of cluster %s: %w", c.Name, err)
	}
	if err := c.Etcd.Start(ctx); err != nil {
		return err
	}
	return c.APIServer.Start(ctx)
}
