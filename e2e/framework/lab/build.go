// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
)

// Build builds the command cmd/<name> of the module at root into a file, with the flags of "make build": what was compiled for
// one program need not be compiled anew for another. More flags may be added. An error has what the compiler says.
func Build(ctx context.Context, root, name, into string, flags ...string) error {
	command := exec.CommandContext(ctx, "go", append(append([]string{"build", "-trimpath", "-o", into}, flags...), "./cmd/"+name)...)
	command.Dir = root
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", name, err, output)
	}
	return nil
}
