// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package merge has a clock, a logger and dice.
package merge

import (
	"log/slog"     // want: purity
	"math/rand/v2" // want: purity
	"net/http"     // want: purity
	"os"           // want: purity
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"              // want: purity
	"sigs.k8s.io/controller-runtime/pkg/client" // want: purity
)

var (
	_ cache.Store
	_ client.Object
	_ http.Handler
)

// Merge does what it must not.
func Merge() any {
	slog.Info("merge", "pid", os.Getpid(), "n", rand.N(3))
	clock := time.Now                    // want: purity
	time.Sleep(time.Second)              // want: purity
	if time.Since(clock()) > time.Hour { // want: purity
		<-time.After(time.Second) // want: purity
	}
	return metav1.Now() // want: purity
}
