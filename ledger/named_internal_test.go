package ledger

import "testing"

func TestNamedParametersAreNumberedByTheirPlace(t *testing.T) {
	t.Parallel()
	names := []string{"seqs", "state"}
	if got := named(names, `a = @state::text and b = any(@seqs) and c <> @state`); got !=
		`a = $2::text and b = any($1) and c <> $2` {
		t.Error(got)
	}
	for what, sql := range map[string]string{
		"a name that Go lacks":     `a = @state and b = @seqs and c = @other`,
		"a name that SQL does not": `a = @state`,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if recover() == nil {
					t.Error("accepted")
				}
			}()
			named(names, sql)
		})
	}
}
