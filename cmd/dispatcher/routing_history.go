package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/ledger"
)

// history is what the command prints.
type history struct {
	Versions []control.HistoryLine `json:"versions"` // newest first
	Ramps    []control.Ramp        `json:"ramps"`
}

func (c *cli) routingHistoryCommand() *cobra.Command {
	var as format
	var limit int
	cmd := &cobra.Command{
		Use:   "history",
		Short: "List the versions: who, when, why, and what changed",
		Long: `Lists the versions, newest first, and below them the ramps. A version that only
changed effective weights, as health weighting does, says which version's document it carries on.
In a table, (api) or (console) behind the author means that the author was signed in there. Any
other name in brackets is the login of the database that a command used: the author is then only
what the user claims.`,
		Args: cobra.NoArgs,
		RunE: work(func(ctx context.Context, _ []string) error {
			if limit < 1 {
				return usage(errors.New("--limit must be above 0"))
			}
			return c.withLedger(ctx, func(l *database) error {
				return c.printHistory(ctx, l, limit, as)
			})
		}),
	}
	cmd.Flags().IntVar(&limit, "limit", 20, "at most this many versions, and as many ramps")
	as.addTo(cmd.Flags())
	return cmd
}

func (c *cli) printHistory(ctx context.Context, l *database, limit int, as format) error {
	lines, err := control.History(ctx, l.Ledger, limit)
	if err != nil {
		return inCommands(err)
	}
	h := history{Versions: lines, Ramps: []control.Ramp{}}
	ramps, err := l.Ramps.List(ctx, true)
	if err != nil {
		return err
	}
	for i := range ramps[:min(limit, len(ramps))] {
		moves, err := l.Ramps.Moves(ctx, ramps[i].ID)
		if err != nil {
			return err
		}
		shown := control.NewRamp(&ramps[i])
		shown.Moves = control.RampMoves(moves)
		h.Ramps = append(h.Ramps, shown)
	}
	if err := as.write(c.out, h, historySheet(h.Versions, as)); err != nil {
		return err
	}
	if as == formatTable && len(h.Ramps) > 0 {
		fmt.Fprintln(c.out)
		rampSheet(h.Ramps, as).draw(c.out)
	}
	if moves := rampMoveSheet(h.Ramps); as == formatTable && len(moves.rows) > 0 {
		fmt.Fprintln(c.out)
		moves.draw(c.out)
	}
	return nil
}

// rampMoveSheet lists who held, resumed or ended a ramp, and why. The steps of ramps are versions.
func rampMoveSheet(ramps []control.Ramp) sheet {
	type row struct {
		ramp int64
		control.RampMove
	}
	var rows []row
	for i := range ramps {
		for _, m := range ramps[i].Moves {
			if m.Move != "step" && m.Move != "started" && m.Move != "done" {
				rows = append(rows, row{ramps[i].ID, m})
			}
		}
	}
	return list(formatTable, rows, []column[row]{
		{head: "ramp", right: true, cell: func(r *row) any { return r.ramp }},
		{head: "at, by (login)", cell: func(r *row) any {
			return r.At.Format(instant) + "\n" + withLogin(r.Author, r.Login, r.Via)
		}},
		{head: "move", cell: func(r *row) any {
			return fmt.Sprintf("%s at step %d", r.Move, r.Step)
		}},
		{key: "reason", width: 60},
	}...)
}

// historySheet joins who and when in one column of a table, to save room. The login is there too,
// because the author may be any name.
func historySheet(lines []control.HistoryLine, as format) sheet {
	return list(as, lines, []column[control.HistoryLine]{
		{key: "version"},
		{key: "created_at", only: formatCSV},
		{key: "author", only: formatCSV},
		{head: "created_at, author (login)", only: formatTable, width: 26, cell: func(
			h *control.HistoryLine,
		) any {
			return h.CreatedAt.Format(instant) + "\n" + withLogin(h.Author, h.Login, h.Via)
		}},
		{key: "reason", width: 30},
		{key: "changes", width: 43, cell: func(h *control.HistoryLine) any { return h.Summary() }},
		{key: "login", only: formatCSV},
		{key: "via", only: formatCSV},
	}...)
}

// withLogin is an author with the login of the database and the way, where they were recorded. By
// the API or the console the author was authenticated, and the login is that of the dispatcher.
func withLogin(author, login string, via ledger.Via) string {
	switch {
	case author == "":
		return author
	case via == ledger.ViaAPI || via == ledger.ViaConsole:
		return author + " (" + string(via) + ")"
	case login == "":
		return author
	}
	return author + " (" + login + ")"
}
