package ledger

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"dispatcher/config/tier"
)

func TestACursorGoesBackToWhoIsStillThere(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ before, cursor, after, next string }{
		"stays":                                {"abc", "b", "abc", "c"},
		"stays elsewhere":                      {"abc", "b", "xybc", "c"},
		"stays at the end":                     {"abc", "c", "ab", "a"},
		"is taken out":                         {"abc", "b", "ac", "c"},
		"is taken out with an earlier one":     {"abxc", "x", "bc", "c"},
		"is taken out with all earlier ones":   {"abxce", "x", "ce", "c"},
		"is taken out at the start":            {"abc", "a", "bc", "b"},
		"is taken out at the end":              {"abc", "c", "ab", "a"},
		"is replaced":                          {"abc", "b", "anc", "n"},
		"is alone and replaced":                {"a", "a", "bc", "b"},
		"all are replaced":                     {"abc", "b", "xyz", "x"},
		"never had a turn":                     {"abc", "", "bc", "b"},
		"is of a rotation that nobody noted":   {"", "b", "abc", "c"},
		"is gone from a rotation nobody noted": {"", "x", "abc", "b"}, // by its place, 1
		"is given by a process with old news":  {"abc", "x", "abc", "b"},
	} {
		before, after := strings.Split(c.before, ""), strings.Split(c.after, "")
		cursor := Cursor{
			Route: "r", Channel: c.cursor,
			Position: max(slices.Index(before, c.cursor), 1),
		}
		if c.cursor == "" {
			cursor.Position = -1
		}
		got := cursor.follow(before, after)
		if place := slices.Index(after, got.Channel); got.Channel != cursor.Channel &&
			place != got.Position {
			t.Errorf("%s: %+v stands at %d", name, got, place)
		}
		if next := after[nextPlace(got, after)]; next != c.next || got.Route != "r" {
			t.Errorf("%s: %s is next, want %s", name, next, c.next)
		}
	}
}

// nextPlace is the member that has the next turn, computed as in the pipeline.
func nextPlace(c Cursor, members []string) int {
	after := slices.Index(members, c.Channel)
	if after < 0 && c.Channel != "" {
		after = max(c.Position-1, -1)
	}
	return (after + 1) % len(members)
}

// TestNobodyIsSkippedOrDoubledOverAnyDocuments takes turns while documents add and remove members
// and rotate the list. Every member that stays has one turn in each round.
func TestNobodyIsSkippedOrDoubledOverAnyDocuments(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		stay := strings.Split("ABCDE"[:rapid.IntRange(1, 5).Draw(t, "stay")], "")
		members := change(t, stay)
		cursor := Cursor{Route: "r", Position: -1}
		var turns []string
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "a new document") {
				next := change(t, members)
				cursor, members = cursor.follow(members, next), next
				if cursor.Channel != "" && members[cursor.Position] != cursor.Channel {
					t.Fatalf("%+v is not in its place among %v", cursor, members)
				}
				continue
			}
			cursor.Position = nextPlace(cursor, members)
			cursor.Channel = members[cursor.Position]
			if slices.Contains(stay, cursor.Channel) {
				turns = append(turns, cursor.Channel)
			}
		}
		for i := 1; i < len(turns); i++ {
			if want := stay[(slices.Index(stay, turns[i-1])+1)%len(stay)]; turns[i] != want {
				t.Fatalf("after %s came %s, want %s: %v", turns[i-1], turns[i], want, turns)
			}
		}
	})
}

// change removes some of the lower-case members, adds others anywhere, and rotates the list.
func change(t *rapid.T, members []string) []string {
	var out []string
	for _, channel := range members {
		if strings.ToUpper(channel) == channel || rapid.Bool().Draw(t, channel+" stays") {
			out = append(out, channel)
		}
	}
	for _, channel := range []string{"u", "v", "w", "x"} {
		if !slices.Contains(members, channel) && rapid.Bool().Draw(t, channel+" comes") {
			out = slices.Insert(out, rapid.IntRange(0, len(out)).Draw(t, "place"), channel)
		}
	}
	first := rapid.IntRange(0, len(out)-1).Draw(t, "first")
	return slices.Concat(out[first:], out[:first])
}
