// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Command playground runs clusters with Tombolo on this machine. The demo has control planes, agents and CoreDNS; the lab has
// complete clusters with nodes and pods (Linux and root).
//
//	playground demo run            exports services, checks what the other cluster has of them, and cleans up
//	playground demo up             exports services and leaves the clusters running
//	playground demo ask NAME TYPE  asks the DNS of the demo that runs
//	playground lab up              starts the lab and leaves it running
//	playground demo|lab down       ends what up left running
//	playground demo|lab env        prints where that is, for a shell to evaluate
//
// From the environment: DNS is the plugin that serves the clusterset's names, clusterset (the default) or kubernetes; LAB names
// the lab, so that several can run side by side; NETWORKS=separate has the clusters of the lab in networks of their own, with the
// same addresses and with gateways.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// errInterrupted is the cause for which the context of a command ends when the user interrupts it.
var errInterrupted = errors.New("interrupted")

// serveCommand is what up starts. It is not for users.
const serveCommand = "serve"

// start starts clusters and reports its progress to out. The state is what up prints and env exports; stop ends everything, and
// is never nil.
type start func(ctx context.Context, out io.Writer) (s state, stop func(failed error) error, err error)

func main() {
	lab.Quiet()
	ctx, stop := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		<-signals
		stop(errInterrupted)
		signal.Stop(signals) // a second one ends the process; the lab's watchdog cleans up then
	}()
	err := command(ctx, os.Args[1:])
	switch {
	case err == nil:
	case errors.Is(err, errInterrupted):
		fmt.Fprintln(os.Stderr, "\nInterrupted. Nothing is left running.")
		os.Exit(130)
	default:
		fmt.Fprintf(os.Stderr, "\nFailed: %v\n", err)
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string) error {
	name := cmp.Or(os.Getenv("LAB"), "playground")
	if msgs := validation.IsDNS1123Label(name); len(msgs) > 0 {
		return fmt.Errorf("LAB=%s: %s", name, strings.Join(msgs, "; "))
	}
	plugin := cmp.Or(os.Getenv("DNS"), "clusterset")
	// demo-env exports DNS as an address, so only commands that start something read it as a plugin.
	starts := len(args) == 2 && args[1] != "down" && args[1] != "env"
	if _, known := corefiles[plugin]; !known && starts {
		return fmt.Errorf("DNS=%s: must be clusterset, Tombolo's plugin, or kubernetes, CoreDNS' own", plugin)
	}
	networks, known := labNetworks[os.Getenv("NETWORKS")]
	if !known && starts {
		return fmt.Errorf("NETWORKS=%s: must be separate, or not set", os.Getenv("NETWORKS"))
	}
	switch words := strings.Join(args, " "); {
	case words == "demo run":
		return runDemo(ctx, os.Stdout, plugin)
	case len(args) == 4 && args[0] == "demo" && args[1] == "ask":
		return ask(ctx, args[2], args[3])
	case len(args) == 2 && args[0] == "demo":
		return background(ctx, "demo", args, demoUp(plugin))
	case len(args) == 2 && args[0] == "lab":
		return background(ctx, "lab-"+name, args, labUp(plugin, networks))
	}
	return errors.New("usage: playground demo run|up|down|env, playground demo ask NAME TYPE, playground lab up|down|env")
}

// background runs a command of clusters that keep running after it.
func background(ctx context.Context, name string, args []string, start start) error {
	l, err := newInstance(name)
	if err != nil {
		return err
	}
	switch args[1] {
	case "up":
		return l.up(ctx, os.Stdout, args[0], serveCommand)
	case "down":
		return l.down(ctx, os.Stdout)
	case "env":
		s, err := l.running()
		if err != nil {
			return err
		}
		words := []string{"export"}
		for _, name := range slices.Sorted(maps.Keys(s.Variables)) {
			words = append(words, name+"="+s.Variables[name])
		}
		fmt.Println(strings.Join(words, " "))
		return nil
	case serveCommand:
		return l.serve(ctx, start)
	}
	return fmt.Errorf("unknown command %q: it is up, down or env", args[1])
}
