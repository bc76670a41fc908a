package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"dispatcher/cmd/dispatcher/internal/lookup"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/ledger"
)

// explainFlags are the arguments of explain.
type explainFlags struct {
	routing, message, state, lane string
	as                            format
}

func (c *cli) explainCommand() *cobra.Command {
	var f explainFlags
	cmd := &cobra.Command{
		Use:   "explain ID | explain --routing FILE --message FILE",
		Short: "Explain why a message went where it went, or where it would go",
		Long: `Tells from the record why the message with this id went to its channel, in a
paragraph that holds neither its number nor its text.

With --routing and --message it works out where a message would go, without a database and without
sending: plan, draw and ranking are those of "dispatcher run". --state tells what the channels
carry: {"channels": {"a": {"active": 3, "ready": true}}}. The draw is made with the key of
DISPATCHER_DRAW_KEY_FILE or of "run --embedded", else with a public one for trying out. CSV has
the candidates of the latest choice; JSON has everything.`,
		Args: arguments(0, 1),
		RunE: work(func(ctx context.Context, args []string) error {
			switch forecast := f.routing != "" || f.message != ""; {
			case forecast && len(args) > 0:
				return usage(errors.New("an id and --routing exclude each other: name one"))
			case forecast:
				return c.forecast(&f)
			case len(args) == 0 || args[0] == "":
				return usage(errors.New("name the id of a message, or --routing and --message"))
			}
			return c.withLedger(ctx, func(l *database) error {
				return c.explain(ctx, l, args[0], f.as)
			})
		}),
	}
	cmd.Flags().StringVar(&f.routing, "routing", "", "routing document")
	cmd.Flags().StringVar(&f.message, "message", "", "file with one envelope (JSON); - is "+
		"standard input")
	cmd.Flags().StringVar(&f.state, "state", "", "file with the state of the channels (JSON)")
	cmd.Flags().StringVar(&f.lane, "lane", "", "lane of the message (default transactional, or "+
		"the document's first)")
	f.as.addTo(cmd.Flags())
	return cmd
}

// explain prints the record of one message.
func (c *cli) explain(ctx context.Context, l *database, id string, as format) error {
	explanation, err := lookup.Explain(ctx, l.Ledger, keysIfReadable(l.settings), id, true)
	if pending, ok := errors.AsType[*lookup.Pending](err); ok {
		return failed(pending)
	}
	if errors.Is(err, ledger.ErrNoMessage) {
		return failed(fmt.Errorf("no message has the id %s: it may not have been read from Kafka "+
			"yet, or the id is another", quoted(id)))
	}
	if err != nil {
		return err
	}
	return c.printExplanation(explanation, as)
}

// printExplanation prints the paragraph, the candidates, the attempts and the timeline.
func (c *cli) printExplanation(e *report.Explanation, as format) error {
	if as != formatTable {
		return as.write(c.out, e, candidateSheet(e.Candidates, as))
	}
	fmt.Fprintln(c.out, wrapped(e.Text, 100))
	if len(e.Candidates) > 0 {
		fmt.Fprintln(c.out)
		candidateSheet(e.Candidates, formatTable).draw(c.out)
	}
	if len(e.Attempts) > 0 {
		fmt.Fprintln(c.out)
		attemptSheet(e.Attempts).draw(c.out)
	}
	if len(e.Timeline) > 0 {
		fmt.Fprintln(c.out)
		timelineSheet(e).draw(c.out)
	}
	return nil
}

// candidateSheet has a column for limits if one had no free slot, for second draws if a redraw
// ranked, and for prices if the message was not sent yet.
func candidateSheet(candidates []report.Candidate, as format) sheet {
	columns := keys[report.Candidate]("", "channel", "score", "load_ratio", "eligible", "reason")
	if slices.ContainsFunc(candidates, func(c report.Candidate) bool { return c.Limit != "" }) {
		columns = append(columns, column[report.Candidate]{key: "limit"})
	}
	if slices.ContainsFunc(candidates, func(c report.Candidate) bool { return c.Redraw != nil }) {
		columns = append(columns, column[report.Candidate]{
			name: "redraw", cell: func(c *report.Candidate) any { return redrawn(c.Redraw) },
		})
	}
	priced := func(c report.Candidate) bool { return c.CostMicros != nil && c.Currency != "" }
	if slices.ContainsFunc(candidates, priced) {
		columns = append(columns, column[report.Candidate]{key: "segments"},
			column[report.Candidate]{
				name: "cost", right: true, cell: func(c *report.Candidate) any {
					return report.Amount(*c.CostMicros, c.Currency)
				},
			})
	}
	return list(as, candidates, columns...)
}

// redrawn is a second draw as a cell.
func redrawn(r *report.Redraw) string {
	switch {
	case r == nil:
		return ""
	case r.Draw == nil:
		return fmt.Sprintf("draw %d: %d–%d of 0–%d", r.Number, r.Low, r.High, r.Size-1)
	}
	return fmt.Sprintf("draw %d: %d in %d–%d of 0–%d", r.Number, *r.Draw, r.Low, r.High, r.Size-1)
}

func attemptSheet(attempts []report.Attempt) sheet {
	return list(formatTable, attempts, []column[report.Attempt]{
		{key: "attempt"},
		{key: "channel", width: 16},
		{key: "reason"},
		{head: "outcome", width: 13, cell: func(a *report.Attempt) any { return outcomeWord(a) }},
		{key: "provider_code", head: "code", width: 12},
		{key: "provider_reference", head: "reference", width: 20},
		{key: "segments"},
		{head: "cost", right: true, cell: func(a *report.Attempt) any {
			return report.Amount(a.CostMicros, a.Currency)
		}},
	}...)
}

// timelineSheet has the events in the time zone of the paragraph.
func timelineSheet(e *report.Explanation) sheet {
	return list(formatTable, e.Timeline, []column[report.Event]{
		{head: "at, " + e.Zone.String(), cell: func(event *report.Event) any {
			return event.At.In(e.Zone).Format("2006-01-02 15:04:05.000")
		}},
		{head: "what happened", width: 60, cell: func(event *report.Event) any {
			if event.Until.IsZero() {
				return event.Title
			}
			return event.Title + ", until " + event.Until.In(e.Zone).Format(time.DateTime)
		}},
	}...)
}

// outcomeWord is the outcome of an attempt, and whether a receipt contradicts it.
func outcomeWord(a *report.Attempt) string {
	if a.ContradictedAt != nil {
		return a.Outcome + ", contradicted"
	}
	return a.Outcome
}

// wrapped breaks a paragraph into lines of at most width characters.
func wrapped(text string, width int) string {
	var out strings.Builder
	at := 0
	// A number and its percent sign stay on one line.
	for word := range strings.FieldsSeq(strings.ReplaceAll(text, " %", "\x00%")) {
		word = strings.ReplaceAll(word, "\x00", " ")
		n := utf8.RuneCountInString(word)
		switch {
		case at == 0:
		case at+1+n > width:
			out.WriteByte('\n')
			at = 0
		default:
			out.WriteByte(' ')
			at++
		}
		out.WriteString(word)
		at += n
	}
	return out.String()
}
