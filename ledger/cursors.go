package ledger

import (
	"slices"

	"github.com/jackc/pgx/v5"
)

// collectCursors reads the locked cursors into one entry per route. A route without a row
// gets a cursor before its first turn and is returned as missing.
func collectCursors(rows pgx.Rows, routes []string) (cursors []Cursor, missing []string, err error) {
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

// moved lists the cursors that decide moved.
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
		route[i], channel[i], position[i] = cursors[i].Route, cursors[i].Channel, int32(cursors[i].Position)
	}
	return []any{route, channel, position}
}
