// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Command probe is what the pods of the end-to-end tests run: a server that says who answers, and clients that show each
// single failure. It is static and needs nothing of its image.
//
//	probe serve [-tcp 8080,81] [-udp 8080] [-linger 5s]
//	probe ask [-network tcp] [-count 1] [-timeout 2s] [-keep] [-every 0] HOST:PORT
//	probe load [-network tcp] [-rate 50] [-timeout 2s] HOST:PORT
//	probe resolve [-type A] [-server IP:PORT] [-count 1] [-rate 0] NAME
//	probe lookup [-timeout 10s] NAME
//
// All output is JSON, one object a line. The status is 0 whatever the answers were, 2 where the arguments are wrong, and 1
// where the program cannot do its work, as when a port is taken.
//
// Nothing is ever tried twice. A request of ask and load is one lookup and one exchange on one connection, written here
// without net/http's transport, which repeats requests on connections that turn out to be closed. The lookup sends each
// question once, to the first nameserver of /etc/resolv.conf, over UDP, where Go's resolver would try `attempts` times and
// continue with the next nameserver. Names are made of search and ndots in the usual order, and are asked for one after the
// other: first A, then AAAA where there is no A (of -network tcp4 only A, of tcp6 only AAAA). The first address of the first
// answer that has one is dialled. A name that does not exist, or has no address, leads on to the next name; silence and
// every other code end the lookup. /etc/hosts is not read.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/tombolo-mcs/tombolo/e2e/framework/probe/output"
)

const usage = `usage: probe COMMAND [flags] [operand]
  serve              answer HTTP and UDP
  ask HOST:PORT      send requests one after the other
  load HOST:PORT     send requests at a constant rate until stdin ends
  resolve NAME       ask a nameserver for exactly this name
  lookup NAME        look a name up as an application does
"probe COMMAND -help" lists the flags.`

// What the commands print, one a line.
type (
	result  = output.Result
	reply   = output.Reply
	figures = output.Figures
)

// world is all that a command knows of where it runs.
type world struct {
	in         io.Reader
	out, err   io.Writer
	getenv     func(string) string
	resolvConf string
	// after is time.After.
	after func(time.Duration) <-chan time.Time
}

// usageError says what is wrong with the arguments.
type usageError struct{ text string }

func (e usageError) Error() string { return e.text }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the program at once.
	context.AfterFunc(ctx, stop)
	status := run(ctx, os.Args[1:], world{
		in: os.Stdin, out: os.Stdout, err: os.Stderr,
		getenv: os.Getenv, resolvConf: "/etc/resolv.conf", after: time.After,
	})
	os.Exit(status)
}

// run does what the arguments say and returns the exit status.
func run(ctx context.Context, args []string, w world) int {
	err := dispatch(ctx, args, w)
	wrong, isUsage := errors.AsType[usageError](err)
	switch {
	case err == nil:
		return 0
	case isUsage:
		fmt.Fprintln(w.err, wrong.text)
		return 2
	default:
		fmt.Fprintln(w.err, "probe:", err)
		return 1
	}
}

func dispatch(ctx context.Context, args []string, w world) error {
	commands := map[string]func(context.Context, []string, world) error{
		"serve": serve, "ask": ask, "load": load, "resolve": resolve, "lookup": lookup,
	}
	if len(args) == 0 {
		return usageError{usage}
	}
	command, ok := commands[args[0]]
	switch {
	case ok:
		err := command(ctx, args[1:], w)
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	case args[0] == "help" || strings.TrimLeft(args[0], "-") == "help":
		fmt.Fprintln(w.out, usage)
		return nil
	default:
		return usageError{fmt.Sprintf("probe: unknown command %q\n%s", args[0], usage)}
	}
}

// newFlags returns the empty flags of a command; operand is what follows them, "" for nothing.
func newFlags(name, operand string) *flag.FlagSet {
	flags := flag.NewFlagSet(strings.TrimSpace(name+" [flags] "+operand), flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	return flags
}

// parse returns the operand. The error is a usageError, or flag.ErrHelp once the help is written.
func parse(flags *flag.FlagSet, args []string, w world) (string, error) {
	var help strings.Builder
	err := flags.Parse(args)
	flags.SetOutput(&help)
	fmt.Fprintf(&help, "usage: probe %s\n", flags.Name())
	flags.PrintDefaults()
	wanted := len(strings.Fields(flags.Name())) - len(strings.Fields("name [flags]"))
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(w.out, help.String())
		return "", err
	case err != nil:
		return "", usageError{fmt.Sprintf("probe: %s\n%s", err, help.String())}
	case flags.NArg() != wanted:
		return "", usageError{fmt.Sprintf("probe: %d operands after the flags %q, want %d\n%s", flags.NArg(), flags.Args(), wanted, help.String())}
	}
	return flags.Arg(0), nil
}
