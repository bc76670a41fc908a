package ledger

import (
	"fmt"
	"regexp"
	"slices"
)

var nameInSQL = regexp.MustCompile(`@[a-z_]+`)

// named replaces each @name in a statement by the position of the name in names. It does so once
// for each statement, at the start. pgx.NamedArgs, which statements off the hot path use, does it
// for each call.
func named(names []string, sql string) string {
	used := make([]bool, len(names))
	sql = nameInSQL.ReplaceAllStringFunc(sql, func(name string) string {
		i := slices.Index(names, name[1:])
		if i < 0 {
			panic("a statement has a parameter without a name in Go: " + name)
		}
		used[i] = true
		return fmt.Sprintf("$%d", i+1)
	})
	if i := slices.Index(used, false); i >= 0 {
		panic("a statement does not use its parameter " + names[i])
	}
	return sql
}
