package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"dispatcher/cmd/dispatcher/internal/control"
)

func (c *cli) cancelCommand() *cobra.Command {
	var author, reason string
	cmd := &cobra.Command{
		Use:   "cancel ID --reason TEXT",
		Short: "End a message that has not left",
		Long: `Ends a message that is scheduled, waits, or is to be tried again after a channel has
refused it: it fails with the reason "cancelled", which its status event says, and is never sent. A
message of which anything is, or may be, with a provider is left as it is, and the command says why.
So is one that is still in Kafka: cancel it when it is in the ledger.`,
		Example: `  dispatcher cancel order-7731-otp --reason "scheduled for the wrong day"`,
		Args:    arguments(1, 1),
		RunE: work(func(ctx context.Context, args []string) error {
			switch {
			case strings.TrimSpace(reason) == "":
				return misused(errors.New(`--reason is missing: write why, for example --reason ` +
					`"scheduled for the wrong day"`))
			case strings.TrimSpace(author) == "":
				return misused(errors.New("--author is empty: name who cancels"))
			}
			return c.withLedger(ctx, func(l *database) error {
				return c.cancelMessage(ctx, l, args[0], author, reason)
			})
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why; the record shows it (required); do not "+
		"write numbers into it")
	c.authorFlag(cmd.Flags(), &author)
	return cmd
}

func (c *cli) cancelMessage(
	ctx context.Context, l *database, id, author, reason string,
) error {
	was, err := control.Cancel(ctx, l.Ledger, id, control.By{Author: author, Reason: reason})
	if unknown, ok := errors.AsType[*control.Unknown](err); ok {
		return failed(unknown.Err)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(c.out, "Message %s is cancelled. It was %s.\n", id, was)
	return nil
}
