package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/ledger"
)

func (c *cli) cancelCommand() *cobra.Command {
	var author, reason, file string
	cmd := &cobra.Command{
		Use:   "cancel ID|--file FILE --reason TEXT",
		Short: "End a message that has not left, or many",
		Long: `Ends a message that is scheduled, waits, or is to be tried again after a channel has
refused it: it fails with the reason "cancelled", which its status event says, and is never sent. A
message of which anything is, or may be, with a provider is left as it is, and the command says why.
So is one that is still in Kafka: cancel it when it is in the ledger. With --file each message is
ended by itself, and those that cannot be are listed.`,
		Example: `  dispatcher cancel order-7731-otp --reason "scheduled for the wrong day"
  dispatcher cancel --file campaign.txt --reason "wrong text"`,
		Args: arguments(0, 1),
		RunE: work(func(ctx context.Context, args []string) error {
			switch {
			case (len(args) == 0) == (file == ""):
				return misused(errors.New("name a message, or a file of ids with --file"))
			case strings.TrimSpace(reason) == "":
				return misused(errors.New(`--reason is missing: write why, for example --reason ` +
					`"scheduled for the wrong day"`))
			case strings.TrimSpace(author) == "":
				return misused(errors.New("--author is empty: name who cancels"))
			}
			if err := control.CheckReason(reason); err != nil {
				return misused(err)
			}
			by := control.By{Author: author, Via: ledger.ViaCommand, Reason: reason}
			return c.withLedger(ctx, func(l *database) error {
				if file != "" {
					return c.cancelFile(ctx, l, file, by)
				}
				return c.cancelMessage(ctx, l, args[0], by)
			})
		}),
	}
	cmd.Flags().StringVar(&file, "file", "", "ids of messages, one a line")
	cmd.Flags().StringVar(&reason, "reason", "", "why; the record shows it (required); do not "+
		"write numbers into it")
	c.authorFlag(cmd.Flags(), &author)
	return cmd
}

func (c *cli) cancelMessage(
	ctx context.Context, l *database, id string, by control.By,
) error {
	was, err := control.Cancel(ctx, l.Ledger, id, by)
	if unknown, ok := errors.AsType[*control.Unknown](err); ok {
		return failed(unknown.Err)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(c.out, "Message %s is cancelled. It was %s.\n", id, was)
	return nil
}

// cancelFile ends the messages of a file, and lists those that it cannot end.
func (c *cli) cancelFile(ctx context.Context, l *database, file string, by control.By) error {
	in, err := os.Open(file)
	if err != nil {
		return usage(fmt.Errorf("--file: %w", err))
	}
	defer in.Close() //nolint:errcheck // It was only read.
	var done, left int64
	err = eachLine(withoutMark(in), func(_ int, line []byte) error {
		_, err := control.Cancel(ctx, l.Ledger, string(line), by)
		_, unknown := errors.AsType[*control.Unknown](err)
		_, impossible := errors.AsType[*control.Impossible](err)
		switch {
		case unknown, impossible:
			left++
			fmt.Fprintf(c.out, "%s\n", err)
		case err != nil:
			return err
		default:
			done++
		}
		return nil
	})
	fmt.Fprintf(c.out, "%s cancelled; %s not.\n", counted(done, "message is", "messages are"),
		counted(left, "is", "are"))
	if err == nil && left > 0 {
		return &codedError{code: exitFailed} // they have been listed
	}
	return err
}
