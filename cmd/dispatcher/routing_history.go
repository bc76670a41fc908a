package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"dispatcher/config"
	"dispatcher/ledger"
)

// historyLine is one version without its document.
type historyLine struct {
	Version   int64     `json:"version"`
	Base      int64     `json:"base"`
	CreatedAt time.Time `json:"created_at"`
	Author    string    `json:"author"`
	Reason    string    `json:"reason"`
	// EffectsOnly is whether the version only changed effective weights.
	EffectsOnly bool         `json:"effects_only"`
	Changes     []changeLine `json:"changes"`
}

// history is what the command prints.
type history struct {
	Versions []historyLine `json:"versions"` // newest first
	Ramps    []rampShown   `json:"ramps"`
}

func (c *cli) routingHistoryCommand() *cobra.Command {
	var as format
	var limit int
	cmd := &cobra.Command{
		Use:   "history",
		Short: "List the versions: who, when, why, and what changed",
		Long: `Lists the versions, newest first, and below them the ramps. A version that only
changed effective weights, as health weighting does, says which version's document it carries on.`,
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
	lines, err := historyLines(ctx, l, limit)
	if err != nil {
		return err
	}
	h := history{Versions: lines, Ramps: []rampShown{}}
	ramps, err := l.Ramps.List(ctx, true)
	if err != nil {
		return err
	}
	for i := range ramps[:min(limit, len(ramps))] {
		moves, err := l.Ramps.Moves(ctx, ramps[i].ID)
		if err != nil {
			return err
		}
		shown := newRampShown(&ramps[i])
		shown.Moves = rampMoves(moves)
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

// rampMoveSheet lists what was done about ramps beside their steps, which are versions: who held,
// resumed or ended one, and why.
func rampMoveSheet(ramps []rampShown) sheet {
	type row struct {
		ramp int64
		rampMove
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
		{head: "at, by", cell: func(r *row) any { return r.At.Format(instant) + "\n" + r.Author }},
		{head: "move", cell: func(r *row) any {
			return fmt.Sprintf("%s at step %d", r.Move, r.Step)
		}},
		{key: "reason", width: 60},
	}...)
}

// historyLines compares each of the newest versions with the one before it. Versions are read
// one by one: a document may be large, and health weighting makes many versions of it.
func historyLines(ctx context.Context, l *database, limit int) ([]historyLine, error) {
	v, err := l.Routing.Current(ctx)
	if errors.Is(err, ledger.ErrNoRouting) {
		return []historyLine{}, nil
	}
	if err != nil {
		return nil, err
	}
	lines := []historyLine{}
	after, err := storedRouting(&v)
	for err == nil {
		lines = append(lines, historyLine{
			Version: v.Version, Base: v.Base, CreatedAt: v.CreatedAt, Author: v.Author,
			Reason: v.Reason, EffectsOnly: v.Base != v.Version,
			Changes: []changeLine{},
		})
		if v.Version == 1 {
			break
		}
		if v, err = storedVersion(ctx, l, v.Version-1); err != nil {
			break
		}
		var before *config.Routing
		if before, err = storedRouting(&v); err != nil {
			break
		}
		lines[len(lines)-1].Changes = versionDiff(before, after)
		if len(lines) == limit {
			break
		}
		after = before
	}
	return lines, err
}

// versionDiff compares two versions as diffLines does. An effective weight is told as a move from
// or to the configured one, which is what draws went by without it.
func versionDiff(before, after *config.Routing) []changeLine {
	lines := diffLines(config.Diff(before, after))
	configured := func(doc *config.Routing) map[string]string {
		weights := map[string]string{}
		for i := range doc.Routes {
			for _, w := range doc.Routes[i].Weights {
				path := "routes." + doc.Routes[i].Name + ".effective_weights." + w.Channel
				weights[path] = w.Configured.String()
			}
		}
		return weights
	}
	old, now := configured(before), configured(after)
	for i := range lines {
		if lines[i].From == nil {
			lines[i].From = present(old[lines[i].Path])
		}
		if lines[i].To == nil {
			lines[i].To = present(now[lines[i].Path])
		}
	}
	return lines
}

// historySheet has who and when in one column where room is scarce.
func historySheet(lines []historyLine, as format) sheet {
	return list(as, lines, []column[historyLine]{
		{key: "version"},
		{key: "created_at", only: formatCSV},
		{key: "author", only: formatCSV},
		{head: "created_at, author", only: formatTable, width: 23, cell: func(h *historyLine) any {
			return h.CreatedAt.Format(instant) + "\n" + h.Author
		}},
		{key: "reason", width: 30},
		{key: "changes", width: 46, cell: func(h *historyLine) any { return h.summary() }},
	}...)
}

// summary says in a few words what a version changed.
func (h *historyLine) summary() string {
	words := summary(h.Changes)
	switch {
	case h.EffectsOnly:
		return fmt.Sprintf("effect on version %d: %s", h.Base, words)
	case words == "" && h.Version == 1:
		return "the first document"
	case words == "":
		return "only comments or the layout"
	}
	return words
}
