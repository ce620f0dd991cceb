// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rewind detects that an API server is back at an earlier state, as after etcd was restored from a backup. If a watch begins
// at a resource version that the API server has not reached yet, it sends no events until the API server reaches that version, which
// may take weeks.
package rewind

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// Source returns a source of one kind for a reflector. Before each list and watch from a resource version, it requests a list of at
// most one object, read from the current state. If this list has an earlier version, the error is Expired (410), and the reflector
// lists everything without a version. (Without the check, the API server refuses that list too, as too early, and client-go retries
// it for a minute.) notice is called for each such watch. The cost is one small request each time a watch is opened, which
// reflectors do every 5 to 10 minutes.
//
// If the API server has passed the version again before the check, the check does not detect it. Then the API server itself answers
// the watch with Expired, unless its watch cache began before that version.
func Source(from *cache.ListWatch, notice func()) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			if err := check(ctx, from, options.ResourceVersion); err != nil {
				return nil, err
			}
			return from.ListWithContext(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			if err := check(ctx, from, options.ResourceVersion); err != nil {
				if apierrors.IsResourceExpired(err) {
					notice()
				}
				return nil, err
			}
			return from.WatchWithContext(ctx, options)
		},
	}
}

// IsCheck reports whether a list is the check of a Source. That it succeeds does not mean that a list of all objects would.
func IsCheck(options metav1.ListOptions) bool { return options.Limit == checkLimit }

// checkLimit is the number of objects that a check requests. No reflector requests so few.
const checkLimit = 1

// check returns an Expired error if the API server is at an earlier resource version than one that was seen.
func check(ctx context.Context, from *cache.ListWatch, seen string) error {
	if seen == "" || seen == "0" {
		return nil
	}
	found, err := from.ListWithContext(ctx, metav1.ListOptions{Limit: checkLimit})
	if err != nil {
		return err
	}
	list, err := meta.ListAccessor(found)
	if err != nil {
		return fmt.Errorf("check for an earlier state: %w", err)
	}
	order, err := resourceversion.CompareResourceVersion(list.GetResourceVersion(), seen)
	if err != nil || order >= 0 {
		return nil //nolint:nilerr // versions that are no numbers cannot be compared; then nothing is known
	}
	return apierrors.NewResourceExpired("the API server is at an earlier resource version than " + seen)
}
