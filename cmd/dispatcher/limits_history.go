package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/config"
	"dispatcher/ledger"
)

// limitMove is one change of one limit.
type limitMove struct {
	Version   int64     `json:"version"`
	CreatedAt time.Time `json:"created_at"`
	Author    string    `json:"author"`
	Reason    string    `json:"reason"`
	Channel   string    `json:"channel"` // empty for a limit over all channels
	Scope     string    `json:"scope"`
	// Window and Unit are empty for settings of the channel as a whole: active and admission.
	Window string `json:"window"`
	Unit   string `json:"unit"`
	// What is max, or another value of the limit that changed, such as burst or reserve.otp; restart
	// when its window was restarted; or active.max, active.until, active.hold, admission or
	// admission.curve_factor.
	What string  `json:"what"`
	From *string `json:"from"` // null when it did not exist
	To   *string `json:"to"`   // null when it was removed
	// Login is the login at the database; empty where it was not recorded.
	Login string `json:"login"`
	// Via is how it came in, as in the audit log; empty where it was not recorded.
	Via ledger.Via `json:"via"`

	key admission.Key
}

func (c *cli) limitsHistoryCommand() *cobra.Command {
	var as format
	var limit int
	f := &limitFlags{}
	cmd := &cobra.Command{
		Use:   "history [CHANNEL]",
		Short: "List the changes of limits: who, when, why, from what to what",
		Long: `Lists the changes of limits, newest first: those of a channel, with --all-channels
those over all channels, without either all of them. --window, --unit, --tenant and --prefix leave
only those of such limits; without them the changes of a channel's active and admission are listed
as well. Those are made in the document, by "dispatcher routing apply".`,
		Args: arguments(0, 1),
		RunE: work(func(ctx context.Context, args []string) error {
			if limit < 1 {
				return misused(errors.New("--limit must be above 0"))
			}
			if f.all && len(args) > 0 {
				return misused(errors.New("CHANNEL and --all-channels exclude each other: name " +
					"one"))
			}
			if err := f.check(); err != nil {
				return err
			}
			return c.withLedger(ctx, func(l *database) error {
				return c.limitHistory(ctx, l, f, args, limit, as)
			})
		}),
	}
	f.addTo(cmd)
	cmd.Flags().IntVar(&limit, "limit", 20, "at most this many versions with changes, and restarts")
	as.addTo(cmd.Flags())
	return cmd
}

func (c *cli) limitHistory(
	ctx context.Context, l *database, f *limitFlags, args []string, limit int, as format,
) error {
	asked := func(channel string, key admission.Key) bool { return f.covers(args, channel, key) }
	moves, err := limitMoves(ctx, l, asked, limit)
	if err != nil {
		return err
	}
	restarts, err := l.Limits.Restarts(ctx)
	if err != nil {
		return err
	}
	moves = mergedMoves(moves, restartMoves(restarts, asked), limit)
	if as == formatTable && len(moves) == 0 {
		fmt.Fprintln(c.out, "Such a limit never changed.")
		return nil
	}
	return as.write(c.out, struct {
		Changes []limitMove `json:"changes"`
	}{moves}, limitMoveSheet(moves, as))
}

// covers reports whether the flags select a limit.
func (f *limitFlags) covers(args []string, channel string, key admission.Key) bool {
	if key == (admission.Key{}) && (f.window != "" || f.unit != "" || f.tenant != "" ||
		f.prefix != "") {
		return false // active and admission belong to no such limit
	}
	is := func(asked, has string) bool { return asked == "" || asked == has }
	return (len(args) == 0 || args[0] == channel) && (!f.all || channel == "") &&
		is(f.window, key.Window.String()) && is(f.unit, key.Unit.String()) && is(f.tenant,
		key.Scope.Tenant) && is(f.prefix, key.Scope.Prefix)
}

// limitMoves compares each version of the document with the one before it, newest first. Versions
// that only add effects have the document of their base.
func limitMoves(
	ctx context.Context, l *database, asked func(channel string,
		key admission.Key) bool, limit int,
) ([]limitMove, error) {
	v, err := currentVersion(ctx, l)
	if err == nil && v.Base != v.Version {
		v, err = storedVersion(ctx, l, v.Base)
	}
	if err != nil {
		return nil, err
	}
	after, err := control.StoredRouting(&v)
	moves := []limitMove{}
	for found := 0; err == nil && found < limit; {
		before, older := &config.Routing{Timezone: time.UTC}, v
		if v.Version > 1 {
			if older, err = storedVersion(ctx, l, v.Version-1); err == nil &&
				older.Base != older.Version {
				older, err = storedVersion(ctx, l, older.Base)
			}
			if err == nil {
				before, err = control.StoredRouting(&older)
			}
			if err != nil {
				return nil, err
			}
		}
		made := movesBetween(before, after, asked)
		for i := range made {
			made[i].Version, made[i].CreatedAt = v.Version, v.CreatedAt
			made[i].Author, made[i].Login, made[i].Reason = v.Author, v.Login, v.Reason
			made[i].Via = v.Via
		}
		moves = append(moves, made...)
		found += min(len(made), 1)
		if v.Version == 1 {
			break
		}
		v, after = older, before
	}
	return moves, err
}

// movesBetween are the changes of limits between two documents.
func movesBetween(
	before, after *config.Routing, asked func(channel string, key admission.Key) bool,
) []limitMove {
	changes := control.Lines(config.Diff(before, after))
	var moves []limitMove
	told := map[string]bool{}
	tell := func(channel string, limits []admission.Limit) {
		for i := range limits {
			key := limits[i].Key()
			path := config.LimitPath(channel, key)
			if told[path] || !asked(channel, key) {
				continue
			}
			told[path] = true
			for _, c := range below(changes, path) {
				moves = append(moves, limitMove{
					Channel: channel, Scope: key.Scope.String(), Window: key.Window.String(),
					Unit: key.Unit.String(),
					What: cmp.Or(c.Path, "max"), From: c.From, To: c.To, key: key,
				})
			}
		}
	}
	tellWhole := func(channel string) {
		path := config.ChannelPath(channel)
		if told[path] || !asked(channel, admission.Key{}) {
			return
		}
		told[path] = true
		for _, what := range []string{"active", "admission"} {
			for _, c := range below(changes, path+"."+what) {
				moves = append(moves, limitMove{
					Channel: channel, Scope: admission.Scope{}.String(),
					What: strings.TrimSuffix(what+"."+c.Path, "."), From: c.From, To: c.To,
				})
			}
		}
	}
	for _, doc := range []*config.Routing{after, before} {
		for i := range doc.Channels {
			tell(doc.Channels[i].Name, doc.Channels[i].Limits)
			tellWhole(doc.Channels[i].Name)
		}
		tell("", doc.Limits)
	}
	return moves
}

// below are the changes at and below a path, with paths relative to it; the change at the path has
// an empty one.
func below(changes []control.Line, path string) []control.Line {
	var out []control.Line
	for _, c := range changes {
		if rest, within := strings.CutPrefix(c.Path+".", path+"."); within {
			c.Path = strings.TrimSuffix(rest, ".")
			out = append(out, c)
		}
	}
	return out
}

// limitMoveSheet has every change in CSV. A table has who and when in one column, and an added or
// removed limit with all its values in one row.
func limitMoveSheet(moves []limitMove, as format) sheet {
	if as == formatCSV {
		return list(as, moves, keys[limitMove]("", "version", "created_at", "author", "reason",
			"channel",
			"scope", "window", "unit", "what", "from", "to", "login", "via")...)
	}
	s := list(as, joinedMoves(moves), []column[limitMove]{
		{key: "version"},
		{head: "when (UTC), who (login)", width: 23, cell: func(m *limitMove) any {
			return as.cell(byType, m.CreatedAt) + "\n" + withLogin(m.Author, m.Login, m.Via)
		}},
		{key: "reason", width: 18},
		{head: "limit", width: 17, cell: func(m *limitMove) any { return m.words() }},
		{key: "from", width: 12},
		{key: "to", width: 13},
	}...)
	s.tight = true
	return s
}

// joinedMoves merges the changes of an added or removed limit into the row of its max.
func joinedMoves(moves []limitMove) []limitMove {
	var out []limitMove
	whole := false // the last of out is an added or removed limit
	for i := range moves {
		m := moves[i]
		if n := len(out) - 1; whole && m.Version == out[n].Version && m.Channel == out[n].Channel &&
			m.key == out[n].key {
			from, to := orEmpty(out[n].From)+m.detail(m.From), orEmpty(out[n].To)+m.detail(m.To)
			out[n].From, out[n].To = &from, &to
			continue
		}
		whole = m.What == "max" && (m.From == nil || m.To == nil)
		out = append(out, m)
	}
	return out
}

// detail is one side of a change, to be shown after the max.
func (m *limitMove) detail(side *string) string {
	if side == nil {
		return ""
	}
	return ", " + m.What + " " + *side
}

// words name the limit and what changed.
func (m *limitMove) words() string {
	if m.Window == "" {
		return m.Channel + " " + m.What
	}
	words := cmp.Or(m.Channel, allChannels) + " " + limitName(m.key)
	if m.What != "max" {
		words += ", " + m.What
	}
	return words
}
