package ledger

import (
	"fmt"
	"regexp"
	"slices"
)

var nameInSQL = regexp.MustCompile(`@[a-z_]+`)

// named is a statement whose parameters stand in it as @name, and which takes them in the order of
// names. It runs once for a statement, at the start: pgx.NamedArgs, which statements off the hot
// path use, would do it again for each call.
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
