package ledger_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"dispatcher/config/tier"
	"dispatcher/ledger"
)

// TestPartsInAnyOrderGiveEachMessageOnce: whichever of two processes gets which part, in any order
// and any number of times, each message is published once and complete, and no part is left.
func TestPartsInAnyOrderGiveEachMessageOnce(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	processes, db := []*ledger.Ledger{rig.l, connect(t, ledger.Config{URL: rig.url})}, rig.db
	round := 0
	tier.Check(t, func(rt *rapid.T) {
		round++
		var parts []ledger.Inbound
		var wanted []string
		for m := range rapid.IntRange(1, 4).Draw(rt, "messages") {
			n := rapid.IntRange(1, 5).Draw(rt, "parts")
			var text strings.Builder
			for part := range n {
				in := pieceOf(uint16(m), part, n, fmt.Sprintf("[%d.%d.%d]", round, m, part))
				in.ID = fmt.Sprintf("%d.%d.%d", round, m, part)
				if rapid.Bool().Draw(rt, "referenced") || n == 1 {
					in.Reference = in.ID
				}
				text.WriteString(in.Text)
				parts = append(parts, in)
			}
			wanted = append(wanted, fmt.Sprintf("%d.%d.0 %s %d[]", round, m, &text, n))
		}
		for _, again := range rapid.SliceOfN(rapid.SampledFrom(parts), 0, len(parts)).
			Draw(rt, "repeated") {
			again.ID += " again"
			if again.Reference == "" && again.Parts > 1 || again.Reference != "" {
				parts = append(parts, again)
			}
		}
		parts = rapid.Permutation(parts).Draw(rt, "order")
		for len(parts) > 0 {
			n := rapid.IntRange(1, len(parts)).Draw(rt, "batch")
			if _, err := rapid.SampledFrom(processes).Draw(rt, "process").Inbox.Record(t.Context(),
				parts[:n], publish); err != nil {
				rt.Fatal(err)
			}
			parts = parts[n:]
		}
		var got []string
		for _, value := range published(t, processes[0]) {
			got = append(got, strings.Replace(value, " again", "", 1))
		}
		slices.Sort(got)
		slices.Sort(wanted)
		if !slices.Equal(got, wanted) {
			rt.Fatalf("got  %q\nwant %q", got, wanted)
		}
		if left := scalar[int](t, db, `select count(*) from dispatcher.inbound_parts`); left != 0 {
			rt.Fatalf("%d parts are left", left)
		}
	})
}
