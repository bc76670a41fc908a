package ledger

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
)

// follow moves a cursor to the members of a new document, so that no channel is passed over and
// none has two turns. before are the route's members that the cursor refers to, after those of the
// new document, both in configured order.
//
// A channel that stays keeps the last turn, at its new position. When it was removed, the last turn
// goes to the nearest channel before it in the old order that is still a member: the next turn is
// then that of the channel which would have come after the removed one. When no member is left, the
// round robin starts anew. When the old members are not known, because another release wrote the
// cursor, it stays as it is.
func (c Cursor) follow(before, after []string) Cursor {
	last := slices.Index(before, c.Channel)
	if place := slices.Index(after, c.Channel); place >= 0 {
		return Cursor{Route: c.Route, Channel: c.Channel, Position: place}
	}
	if last < 0 {
		return c
	}
	for back := 1; back < len(before); back++ {
		channel := before[(last-back+len(before))%len(before)]
		if place := slices.Index(after, channel); place >= 0 {
			return Cursor{Route: c.Route, Channel: channel, Position: place}
		}
	}
	return Cursor{Route: c.Route, Position: -1}
}

// collectCursors reads the locked cursors into one entry per route. A route without a row gets a
// cursor before its first turn, and is returned in missing.
func collectCursors(
	rows pgx.Rows, routes []string,
) (cursors []Cursor, missing []string, err error) {
	cursors = make([]Cursor, len(routes))
	found := make([]bool, len(routes))
	var c Cursor
	_, err = pgx.ForEachRow(rows, []any{&c.Route, &c.Channel, &c.Position}, func() error {
		if i := slices.Index(routes, c.Route); i >= 0 {
			cursors[i], found[i] = c, true
		}
		return nil
	})
	for i, route := range routes {
		if !found[i] {
			cursors[i] = Cursor{Route: route, Position: -1}
			missing = append(missing, route)
		}
	}
	return cursors, missing, err
}

// moved lists the cursors that the decisions changed.
func moved(before, after []Cursor) []Cursor {
	var changed []Cursor
	for i := range after {
		if after[i] != before[i] {
			changed = append(changed, after[i])
		}
	}
	return changed
}

// cursorArrays are the parameters of updateCursors.
func cursorArrays(cursors []Cursor) []any {
	n := len(cursors)
	route, channel, position := make([]string, n), make([]string, n), make([]int32, n)
	for i := range cursors {
		route[i], channel[i], position[i] = cursors[i].Route, cursors[i].Channel,
			int32(cursors[i].Position)
	}
	return []any{route, channel, position}
}

// writeRotations writes the cursors under the members of the new document and notifies Watch.
func writeRotations(
	ctx context.Context, tx pgx.Tx, version int64, n *NewRouting, rotations []rotation,
) error {
	batch := &pgx.Batch{}
	for i := range n.Routes {
		route := &n.Routes[i]
		c := Cursor{Route: route.Name, Position: -1}
		if at := slices.IndexFunc(rotations, func(r rotation) bool {
			return r.Route == route.Name
		}); at >= 0 {
			c = rotations[at].follow(rotations[at].members, route.Members)
		}
		batch.Queue(putCursor, c.Route, c.Channel, c.Position, route.Members)
	}
	batch.Queue(notify, routingChannel, version)
	return tx.SendBatch(ctx, batch).Close()
}

// rotation is a cursor with the members that it refers to.
type rotation struct {
	Cursor
	members []string
}

func scanRotation(row pgx.CollectableRow) (rotation, error) {
	var r rotation
	err := row.Scan(&r.Route, &r.Channel, &r.Position, &r.members)
	return r, err
}

// dropCursors locks in the order of claims before it deletes.
const dropCursors = `
	with gone as materialized (
	  select route from dispatcher.cursors where route <> all($1) order by route for update
	)
	delete from dispatcher.cursors where route in (select route from gone)`

const lockRotations = `select route, channel, position, members from dispatcher.cursors
	order by route for update`

const putCursor = `
	insert into dispatcher.cursors (route, channel, position, members) values ($1, $2, $3, $4)
	on conflict (route) do update
	set channel = excluded.channel, position = excluded.position, members = excluded.members`
