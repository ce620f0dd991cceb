// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// The etcd server of the labs, built from source.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
