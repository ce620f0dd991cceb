// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package wan

import (
	"errors"
	"os"
)

// openIn fails: only Linux has network namespaces.
func openIn(int, string) (*os.File, error) { return nil, errors.ErrUnsupported }
