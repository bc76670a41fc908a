package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/numbers"
	"dispatcher/config"
	"dispatcher/ledger"
)

// testFlags are the arguments of "channel test".
type testFlags struct {
	message        control.TestMessage
	reason, author string
	dryRun         bool
	timeout        time.Duration
	as             format
}

// testResult is the result of "channel test". Scripts rely on the JSON names.
type testResult struct {
	control.TestSent
	Channel string `json:"channel"`
	DryRun  bool   `json:"dry_run"`
	control.TestAnswer
}

func (c *cli) channelTestCommand() *cobra.Command {
	var f testFlags
	cmd := &cobra.Command{
		Use:   "test CHANNEL --to NUMBER --reason TEXT",
		Short: "Send one message over one channel, and see what came back",
		Long: `Publishes a message that only this channel may have, by the selector "channel equal
CHANNEL", on the lane transactional or the document's first. It goes the way of every message: it is
counted by the limits, billed, and shown by reports. It waits five minutes for its channel at most.
The channel must be enabled, and be in the route that takes the message: with the weight 0 it has no
other traffic. Who sent it, when and why is on record.

It waits for the provider's answer and exits with 0 only when the message was accepted; a receipt
comes later, and "dispatcher explain" shows it.`,
		Example: `  dispatcher channel test b --to +447700900123 --reason "new account"`,
		Args:    arguments(1, 1),
		RunE: work(func(ctx context.Context, args []string) error {
			switch {
			case strings.TrimSpace(f.reason) == "":
				return misused(errors.New(`--reason is missing: write why, for example --reason ` +
					`"new account"`))
			case strings.TrimSpace(f.author) == "":
				return misused(errors.New("--author is empty: name who sends"))
			case f.message.To == "":
				return misused(errors.New("--to is missing: write the number to send to"))
			}
			f.message.Channel = args[0]
			return c.withLedger(ctx, func(l *database) error { return c.testChannel(ctx, l, &f) })
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.message.To, "to", "", "recipient: a plus, country code and number (required)")
	flags.StringVar(&f.message.Text, "text", "Test", "what the subscriber reads")
	flags.StringVar(&f.message.From, "from", "", "sender id")
	flags.StringVar(&f.reason, "reason", "", "why; the record shows it (required); do not write "+
		"numbers into it")
	c.authorFlag(flags, &f.author)
	flags.BoolVar(&f.dryRun, "dry-run", false, "only check whether it would be sent")
	flags.DurationVar(&f.timeout, "timeout", waitTimeout, "how long to wait for the answer")
	f.as.addTo(flags)
	return cmd
}

func (c *cli) testChannel(ctx context.Context, l *database, f *testFlags) error {
	region, err := numbers.ParseRegion(l.settings.DefaultRegion)
	if err != nil {
		return usage(fmt.Errorf("%s_DEFAULT_REGION %w", config.Prefix, err))
	}
	cfg := &control.TestConfig{
		Ledger: l.Ledger, Region: region,
		AllowUnknown: l.settings.AllowUnknownFields,
	}
	if !f.dryRun {
		client, err := openProducer(ctx, l.settings)
		if err != nil {
			return err
		}
		defer client.Close()
		cfg.Publish = (&replayer{client: client}).publishOne
	}
	sent, err := control.SendTest(ctx, cfg, &f.message, control.By{
		Author: f.author, Via: ledger.ViaCommand, Reason: f.reason, DryRun: f.dryRun,
	})
	if err != nil {
		return inCommands(err)
	}
	result := testResult{TestSent: sent, Channel: f.message.Channel, DryRun: f.dryRun}
	if f.dryRun {
		return c.printTest(f, &result)
	}
	waiting, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	if result.TestAnswer, err = control.AwaitAnswer(waiting, l.Ledger, sent.ID); err != nil {
		return err
	}
	if err := c.printTest(f, &result); err != nil {
		return err
	}
	if result.Outcome != "accepted" {
		return failed(nil) // it was printed
	}
	return nil
}

func (c *cli) printTest(f *testFlags, r *testResult) error {
	err := f.as.write(c.out, r, list(f.as, []testResult{*r}, []column[testResult]{
		{key: "id"},
		{key: "channel"},
		{key: "lane"},
		{key: "route"},
		{key: "topic"},
		{key: "dry_run"},
		{key: "state"},
		{key: "outcome"},
		{key: "code"},
	}...))
	if err == nil && f.as == formatTable && !r.DryRun {
		_, err = io.WriteString(c.out, nextSteps(c.self(), &sendResult{LastID: r.ID}))
	}
	return err
}
