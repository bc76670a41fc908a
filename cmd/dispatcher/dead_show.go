package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/ledger"
)

// deadShown is one dead record with its remedy.
type deadShown struct {
	deadLine

	Remedy string `json:"remedy"`
	// Kept says whether the record itself is kept; null if the login may not know.
	Kept  *bool `json:"payload_kept"`
	Bytes *int  `json:"bytes"`
	// Payload is the record as it was read, if asked for. Base64 replaces it when it is not UTF-8.
	Payload *string `json:"payload,omitempty"`
	Base64  []byte  `json:"payload_base64,omitempty"`
}

func (c *cli) deadShowCommand() *cobra.Command {
	var as format
	var payload bool
	cmd := &cobra.Command{
		Use:   "show RECORD",
		Short: "Show one record that could not be used: what is wrong and where it came from",
		Long: `Shows one record that could not be used: where it was read, what is wrong with it and
what to do. RECORD is its id, or its position as "dead list" shows it. With --payload the record
itself is shown, with its number and text, to a login that may read them: dispatcher_app may, and
dispatcher_finance may not.`,
		Example: `  dispatcher dead show sms.otp/3/17
  dispatcher dead show order-7731-otp --payload`,
		Args: arguments(1, 1),
		RunE: work(func(ctx context.Context, args []string) error {
			return c.withLedger(ctx, func(l *database) error {
				return c.deadShow(ctx, l, args[0], payload, as)
			})
		}),
	}
	cmd.Flags().BoolVar(&payload, "payload", false, "show the record itself, with number and text")
	as.addTo(cmd.Flags())
	return cmd
}

func (c *cli) deadShow(
	ctx context.Context, l *database, name string, payload bool, as format,
) error {
	d, err := findDead(ctx, l, name)
	if err != nil {
		return err
	}
	shown := deadShown{deadLine: newDeadLine(&d), Remedy: envelope.Code(d.Reason).Remedy()}
	raw, err := l.DeadRecords.Payload(ctx, d.Seq)
	switch {
	case errors.Is(err, ledger.ErrPayloadGone):
		shown.Kept = new(false)
	case errors.Is(err, ledger.ErrPayloadHidden):
	case err != nil:
		return err
	default:
		shown.Kept, shown.Bytes = new(true), new(len(raw))
	}
	switch {
	case payload && err != nil:
		return failed(errors.New(control.PayloadTrouble(err)))
	case payload && utf8.Valid(raw):
		shown.Payload = new(string(raw))
	case payload:
		shown.Base64 = raw
	}
	if as != formatTable {
		return as.write(c.out, &shown, list(as, []deadShown{shown},
			keys[deadShown]("", append(slices.Clone(deadKeys), "remedy", "payload_kept", "bytes",
				"payload")...)...))
	}
	deadFacts(&shown).draw(c.out)
	switch {
	case shown.Payload != nil:
		fmt.Fprintln(c.out, *shown.Payload)
	case shown.Base64 != nil:
		fmt.Fprintf(c.out, "It is not UTF-8:\n%q\n", shown.Base64)
	}
	return nil
}

// deadFacts are the facts of one record, one per row.
func deadFacts(d *deadShown) sheet {
	s := sheet{header: []string{"record", d.Record}, wrap: map[int]int{2: 90}}
	add := func(name, value string) {
		if value != "" {
			s.rows = append(s.rows, []string{name, value})
		}
	}
	add("id", d.ID)
	if d.ID == "" {
		add("id", "none that can be used")
	}
	add("lane", d.Lane)
	add("tenant", d.Tenant)
	add("read", d.ReceivedAt.Format(instant))
	add("reason", d.Reason)
	add("what is wrong", d.Detail)
	add("what to do", d.Remedy)
	add("payload", d.payloadFact())
	add("replayed", d.replayedFact())
	return s
}

func (d *deadShown) payloadFact() string {
	switch {
	case d.Kept == nil:
		return "this login may not read it"
	case !*d.Kept:
		return "not kept any more"
	}
	return fmt.Sprintf("%d bytes; --payload shows them", *d.Bytes)
}

func (d *deadShown) replayedFact() string {
	if d.ReplayedAt == nil {
		return "no"
	}
	return fmt.Sprintf("by %s at %s, as %s", d.ReplayedBy, d.ReplayedAt.Format(instant), d.ReplayedAs)
}
