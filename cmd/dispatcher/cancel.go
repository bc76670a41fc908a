package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/ledger"
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

// cancelTries is how often a message is looked at that changes meanwhile.
const cancelTries = 5

func (c *cli) cancelMessage(
	ctx context.Context, l *database, id, author, reason string,
) error {
	for range cancelTries {
		record, err := l.Messages.Record(ctx, id)
		if errors.Is(err, ledger.ErrNoMessage) {
			return failed(fmt.Errorf("message %s is not in the ledger: no message has this id, or "+
				"it is still in Kafka", quoted(id)))
		}
		if err != nil {
			return err
		}
		now, err := l.Clock(ctx)
		if err != nil {
			return err
		}
		cancellation, why := decide.Cancel(&record, now)
		if why != "" {
			return failed(fmt.Errorf("message %s %s", quoted(id), why))
		}
		cancellation.Author, cancellation.Reason = author, reason
		ended, err := l.Messages.Cancel(ctx, cancellation)
		if err != nil {
			return err
		}
		if ended {
			fmt.Fprintf(c.out, "Message %s is cancelled. It was %s.\n", id, record.Message.State)
			return nil
		}
	}
	return failed(fmt.Errorf("message %s changes all the time: try it once more", quoted(id)))
}
