// Command dispatcher carries SMS from Kafka to provider channels in agreed proportions and keeps a
// record of every choice. See README.md and "dispatcher help".
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"dispatcher/config"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1 // the work failed, or a check found something
	exitUsage  = 2 // wrong arguments or configuration

	exitInterrupted = 130 // ended by Ctrl-C: 128 + SIGINT, as shells count it
	exitTerminated  = 143 // cut short by SIGTERM: 128 + SIGTERM
)

func main() {
	interrupted, stopInterrupt := signal.NotifyContext(context.Background(), os.Interrupt)
	ctx, stopTerm := signal.NotifyContext(interrupted, syscall.SIGTERM)
	c := &cli{
		in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.Environ(), load: config.Load,
	}
	code := execute(ctx, c, os.Args[1:])
	code = exitCode(code, interrupted.Err() != nil)
	stopTerm()
	stopInterrupt()
	os.Exit(code)
}

// exitCode is the exit code of the process, from that of its command. Ctrl-C always gives 130.
// SIGTERM is the usual way to stop long-running commands, so it gives 143 only if it cut a command
// short.
func exitCode(code int, byCtrlC bool) int {
	switch {
	case byCtrlC && code == exitOK:
		return exitInterrupted
	case !byCtrlC && code == exitInterrupted:
		return exitTerminated
	}
	return code
}

// cli is the environment of a command, so that tests can run commands.
type cli struct {
	in       io.Reader
	out, err io.Writer
	env      []string // KEY=value
	load     func() (config.Settings, error)
	open     opener // nil for connect
}

// execute runs one command and maps its error to an exit code. An error is printed as one sentence
// on standard error, never with a stack trace.
func execute(ctx context.Context, c *cli, args []string) int {
	out, errs := showing(c.out), showing(c.err)
	defer out.finish()
	defer errs.finish()
	c = &cli{in: c.in, out: out, err: errs, env: c.env, load: c.load, open: c.open}
	root := c.root()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	var coded *codedError
	switch {
	case err == nil:
		return exitOK
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		return exitInterrupted // the user knows why
	case errors.As(err, &coded):
		if coded.err != nil {
			fmt.Fprintln(c.err, "dispatcher:", coded.err)
		}
		if coded.misused {
			c.showUsage(root, cmd)
		}
		return coded.code
	default: // an error of cobra: unknown command, unknown flag, wrong arguments
		fmt.Fprintln(c.err, "dispatcher:", err)
		c.showUsage(root, cmd)
		return exitUsage
	}
}

// showUsage prints the usage line of a command after an error in its arguments.
func (c *cli) showUsage(root, cmd *cobra.Command) {
	fmt.Fprintf(c.err, "Usage: %s\n", cmd.UseLine())
	fmt.Fprintf(c.err, "Run \"dispatcher help%s\" for more.\n",
		strings.TrimPrefix(cmd.CommandPath(), root.Name()))
}

func (c *cli) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "dispatcher",
		Short: "Carries SMS from Kafka to provider channels in agreed proportions, and proves it",
		Long: `The dispatcher reads messages from Kafka, picks a provider channel for each by
configured proportion, never exceeds a provider's limits, sends each message at most
once per attempt and records every choice in PostgreSQL.

  dispatcher demo              see the whole thing work, nothing to set up
  dispatcher run --embedded    run it with a private PostgreSQL and Kafka in ./data
  dispatcher doctor            check a real set-up before "dispatcher run"

Settings come from DISPATCHER_... variables; "dispatcher config" lists them.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.Version = versionText() + ", commit " + commitText()
	root.SetIn(c.in)
	root.SetOut(c.out)
	root.SetErr(c.err)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(c.commands()...)
	addFacts(root)
	for _, cmd := range root.Commands() {
		if cmd.HasSubCommands() && !cmd.Runnable() {
			cmd.RunE = nameOne
		}
	}
	return root
}

// nameOne refuses a command that only groups subcommands. A script that forgot the subcommand must
// fail.
func nameOne(cmd *cobra.Command, _ []string) error {
	var names []string
	for _, sub := range cmd.Commands() {
		names = append(names, sub.Name())
	}
	return errors.New("name what to do: " + strings.Join(names, ", "))
}

// arguments bounds how many arguments a command has.
func arguments(least, most int) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch n := len(args); {
		case n < least && n == 0:
			return errors.New("an argument is missing")
		case n < least:
			return fmt.Errorf("an argument is missing behind %q", args[n-1])
		case n > most:
			return fmt.Errorf("%q is one argument too many", args[most])
		}
		return nil
	}
}

// anyNumber means no upper bound on the number of arguments.
const anyNumber = math.MaxInt

// codedError carries an exit code. A nil err prints nothing, because the command has printed it.
type codedError struct {
	code int
	err  error
	// misused asks for the usage line: the arguments or flags are wrong.
	misused bool
}

func (e *codedError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *codedError) Unwrap() error { return e.err }

// failed marks an error of the work itself; usage one of arguments or configuration.
func failed(err error) error { return &codedError{code: exitFailed, err: err} }
func usage(err error) error  { return &codedError{code: exitUsage, err: err} }

// misused marks an error of arguments or flags for which the usage line helps.
func misused(err error) error { return &codedError{code: exitUsage, err: err, misused: true} }

// work adapts a command's function: an error without a code of its own is a failure.
func work(run func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		err := run(cmd.Context(), args)
		var coded *codedError
		if err == nil || errors.As(err, &coded) {
			return err
		}
		return failed(err)
	}
}
