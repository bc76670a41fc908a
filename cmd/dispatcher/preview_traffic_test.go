package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// daysTraffic stores n messages with real draws and returns env with the key file that they were
// drawn with.
func daysTraffic(t *testing.T, l *ledger.Ledger, env []string, n int) []string {
	t.Helper()
	hex := strings.Repeat("02", selector.KeySize)
	key, err := selector.ParseKey(hex)
	if err != nil {
		t.Fatal(err)
	}
	drawer := selector.NewDrawer(key)
	var messages []ledger.Message
	for i := range n {
		id := fmt.Sprintf("m-%d", i)
		draw := drawer.Draw(id, 1, 100)
		first := "c"
		if draw < 25 {
			first = "a"
		} else if draw < 40 {
			first = "b"
		}
		m := drawn(id, int64(draw), first)
		m.Plan.KeyID = key.ID()
		messages = append(messages, m)
	}
	settled(t, l, claimed(t, l, messages...))
	return append(env,
		"DISPATCHER_DRAW_KEY_FILE="+write(t, "draw.key",
			strings.Repeat("04", selector.KeySize)+"\n"+hex+"\n"))
}

func trafficOf(
	t *testing.T, env []string, document string, more ...string,
) (*report.Traffic, result) {
	t.Helper()
	args := append([]string{
		"preview", "--routing", write(t, "next.yaml", document), "--format", "json",
	},
		more...)
	got := dispatcher(t, "", env, args...)
	traffic := decoded[report.Preview](t, got).Traffic
	if got.code != exitOK || traffic == nil {
		t.Fatalf("got %+v", got)
	}
	return traffic, got
}

func today(t *testing.T) string {
	t.Helper()
	zone, err := time.LoadLocation("Europe/London")
	if err != nil {
		t.Fatal(err)
	}
	return time.Now().In(zone).Format(time.DateOnly)
}

// TestPreviewWeighsADayWithItsOwnDraws: under the same document nothing moves. With the weights of
// a and c exchanged, the draws [0,24], [25,39] and [40,99] move as computed.
func TestPreviewWeighsADayWithItsOwnDraws(t *testing.T) {
	t.Parallel()
	l, env := seeded(t)
	env = daysTraffic(t, l, env, 200)
	same, _ := trafficOf(t, env, testRouting, "--day", today(t))
	if same.Messages != 200 || same.Redrawn != 200 || same.Compared != 200 || same.Moved != 0 ||
		same.ByShare != 0 || same.Against != nil {
		t.Errorf("got %+v", same)
	}
	total := 0.0
	for _, ch := range same.Routes[0].Channels {
		if *ch.Messages != *ch.BeforeMessages || *ch.Segments != *ch.BeforeSegments {
			t.Errorf("got %+v", ch)
		}
		total += *ch.Messages
	}
	if total != 200 {
		t.Errorf("%v messages", total)
	}
	b := same.Routes[0].Channels[1]
	if *b.CostMicros != int64(*b.Messages)*35_000 || b.Currency != "GBP" ||
		*b.BeforeCostMicros != int64(*b.BeforeMessages)*28_000 {
		t.Errorf("%+v: the price of the document beside the one that was billed", b)
	}

	// a gets [0,74]: all of b's draws and the first 35 of c's move to it. b has no draws left, c keeps
	// [75,99].
	moved, _ := trafficOf(t, env,
		strings.Replace(testRouting, "{a: 25, b: 15, c: 60}", "{a: 75, b: 0, c: 25}", 1), "--day",
		today(t))
	a := moved.Routes[0].Channels[0]
	if moved.Moved != int64(*a.Messages-*a.BeforeMessages) || moved.Moved == 0 ||
		*moved.Routes[0].Channels[1].Messages != 0 || moved.Routes[0].Moved != moved.Moved {
		t.Errorf("got %+v", moved)
	}
}

func TestPreviewAgainstAVersionComparesDocuments(t *testing.T) {
	t.Parallel()
	l, env := seeded(t)
	got := dispatcher(t, "", env, withReason("try", "weights", "set", "default", "a=60", "c=25")...)
	if got.code != exitOK {
		t.Fatalf("got %+v, want exit code %d", got, exitOK)
	}
	env = daysTraffic(t, l, env, 100)
	second, _ := trafficOf(t, env,
		strings.Replace(testRouting, "{a: 25, b: 15, c: 60}", "{a: 60, b: 15, c: 25}", 1),
		"--against", "2", "--day", today(t))
	if second.Against == nil || *second.Against != 2 || second.Compared != 100 ||
		second.Moved != 0 || second.Routes[0].BeforeMessages != 100 {
		t.Errorf("got %+v", second)
	}
	yesterday, _ := trafficOf(t, env, testRouting, "--against", "1")
	if yesterday.Messages != 0 || yesterday.Day == today(t) {
		t.Errorf("got %+v", yesterday)
	}
	got = dispatcher(t, "", env, "preview", "--routing", write(t, "r.yaml", testRouting),
		"--against", "9")
	if got.code != exitUsage || !strings.Contains(got.err, "no routing version 9") {
		t.Errorf("got %+v, want exit code %d and %q in the error", got, exitUsage, "no routing version 9")
	}
}

func TestPreviewCountsBySharesWithoutTheKey(t *testing.T) {
	t.Parallel()
	l, env := seeded(t)
	daysTraffic(t, l, env, 200)
	traffic, _ := trafficOf(t, env, testRouting, "--day", today(t)) // env names no key file
	a := traffic.Routes[0].Channels[0]
	if traffic.ByShare != 200 || traffic.Compared != 0 || *a.Messages != 50 ||
		*a.CostMicros != 50*31_000 || len(traffic.MissingKeys) != 1 {
		t.Errorf("got %+v", traffic)
	}
	text := dispatcher(t, "", env, "preview", "--routing", write(t, "r.yaml", testRouting), "--day",
		today(t)).out
	text = strings.Join(strings.Fields(text), " ")
	if !strings.Contains(text, "counted by the shares of the weights alone") ||
		!strings.Contains(text, traffic.MissingKeys[0]) {
		t.Error(text)
	}
}

func TestPreviewOfModesThatDoNotDraw(t *testing.T) {
	t.Parallel()
	l, env := seeded(t)
	env = daysTraffic(t, l, env, 90)
	turns := strings.Replace(testRouting, "weights: {a: 25, b: 15, c: 60}",
		"mode: round_robin, channels: [a, b, c]", 1)
	even, _ := trafficOf(t, env, turns, "--day", today(t))
	if even.Undecided != 90 || even.Moved != 0 || *even.Routes[0].Channels[0].Messages != 30 ||
		*even.Routes[0].Channels[0].CostMicros != 30*31_000 {
		t.Errorf("got %+v", even)
	}
	idle, got := trafficOf(t, env, strings.Replace(turns, "round_robin", "longest_idle", 1),
		"--day", today(t))
	if idle.Routes[0].Messages != 90 || idle.Routes[0].Channels[0].Messages != nil ||
		*idle.Routes[0].Channels[0].BeforeMessages == 0 {
		t.Errorf("got %+v", got)
	}
	unpredictable, _ := trafficOf(t, env,
		strings.Replace(testRouting, "match: {}", "match: {tenant: other}", 1), "--day", today(t))
	if unpredictable.Unroutable != 90 || unpredictable.Routes[0].BeforeMessages != 90 ||
		unpredictable.Routes[0].Messages != 0 {
		t.Errorf("got %+v, want Unroutable %v, Routes[0].BeforeMessages %v and Routes[0].Messages %v",
			unpredictable, 90, 90, 0)
	}
}

// TestPreviewAgainstAModeThatCannotBeComputedHasNoFormerShares: version 2 selects by load, so
// the choices before the change cannot be computed.
func TestPreviewAgainstAModeThatCannotBeComputedHasNoFormerShares(t *testing.T) {
	t.Parallel()
	l, env := seeded(t)
	idle := write(t, "idle.yaml",
		strings.Replace(testRouting, "weights: {a: 25, b: 15, c: 60}",
			"mode: longest_idle, channels: [a, b, c]", 1))
	applyRouting(t, env, idle)
	env = daysTraffic(t, l, env, 50)
	traffic, got := trafficOf(t, env, testRouting, "--against", "2", "--day", today(t))
	route := traffic.Routes[0]
	if route.BeforeMessages != 50 || len(route.Channels) != 3 || !traffic.SoFar ||
		!strings.Contains(got.out, `"before_cost_micros": null`) {
		t.Errorf("got %+v", got)
	}
	for _, ch := range route.Channels {
		if ch.BeforeMessages != nil || ch.BeforeSegments != nil || ch.BeforeCostMicros != nil ||
			ch.Messages == nil {
			t.Errorf("got %+v", ch)
		}
	}
	for want, args := range map[string][]string{
		"has not begun":           {"--day", "2999-01-01"},
		"that is not a version":   {"--against", "0"},
		"Usage: dispatcher previ": {"--against", "-1"},
	} {
		got := dispatcher(t, "", env, append([]string{"preview", "--routing", idle}, args...)...)
		if got.code != exitUsage || !strings.Contains(got.err, want) {
			t.Errorf("%v: %+v, want %q", args, got, want)
		}
	}
}

// First choices do not depend on prices, senders and blocks. The output says so.
func TestPreviewSaysWhatItIgnores(t *testing.T) {
	t.Parallel()
	l, env := seeded(t)
	env = daysTraffic(t, l, env, 3)
	plain, _ := trafficOf(t, env, testRouting, "--day", today(t))
	if len(plain.NotHonored) != 0 {
		t.Errorf("got %v, want %d of them", plain.NotHonored, 0)
	}
	blocked := "blocked: {premium: true}\n" + testRouting
	traffic, _ := trafficOf(t, env, blocked, "--day", today(t))
	got := dispatcher(t, "", env, "preview", "--routing", write(t, "next.yaml", blocked), "--day",
		today(t))
	if !slices.Equal(traffic.NotHonored, []string{"blocked"}) ||
		!strings.Contains(strings.Join(strings.Fields(got.out), " "),
			"without blocked of the document and without limits") {
		t.Errorf("%v: got %+v", traffic.NotHonored, got)
	}
}

// TestPreviewCountsNumbersWithoutACountry: if the document has prices by country, the figures use
// the default price for these numbers.
func TestPreviewCountsNumbersWithoutACountry(t *testing.T) {
	t.Parallel()
	l, env := seeded(t)
	env = daysTraffic(t, l, env, 3) // to fictitious numbers, which belong to no country
	if plain, _ := trafficOf(t, env, testRouting, "--day", today(t)); plain.WithoutCountry != 0 {
		t.Errorf("got %+v, want WithoutCountry %v", plain, 0)
	}
	priced := "blocked: {country: kp}\n" + testRouting
	traffic, _ := trafficOf(t, env, priced, "--day", today(t))
	got := dispatcher(t, "", env, "preview", "--routing", write(t, "next.yaml", priced), "--day",
		today(t))
	if traffic.WithoutCountry != 3 ||
		!strings.Contains(strings.Join(strings.Fields(got.out), " "),
			"The numbers of 3 have no country that is known") {
		t.Errorf("%+v %+v", traffic, got)
	}
}

// TestPreviewSkipsMessagesWithoutPayload: without payload the choice of another document cannot be
// computed.
func TestPreviewSkipsMessagesWithoutPayload(t *testing.T) {
	t.Parallel()
	l, env := seeded(t)
	env = daysTraffic(t, l, env, 3)
	db, err := pgx.Connect(t.Context(), strings.TrimPrefix(env[0], "DISPATCHER_POSTGRES_URL="))
	if err != nil {
		t.Fatal(err)
	}
	//nolint:errcheck // The database goes with the test.
	defer db.Close(context.WithoutCancel(t.Context()))
	for deleted, sql := range []string{
		`select 1`,
		`delete from dispatcher.payloads where seq = (select min(seq) from dispatcher.messages)`,
		`truncate dispatcher.payloads`,
	} {
		if _, err := db.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
		if deleted == 2 {
			deleted = 3
		}
		traffic, _ := trafficOf(t, env, testRouting, "--day", today(t))
		out := dispatcher(t, "", env, "preview", "--routing", write(t, "next.yaml", testRouting),
			"--day", today(t)).out
		want := fmt.Sprintf("%d messages are not counted, because their numbers and texts are not "+
			"kept any more, or this login may not read them.", deleted)
		if traffic.WithoutPayload != int64(deleted) || traffic.Messages != int64(3-deleted) ||
			traffic.Unroutable != 0 ||
			strings.Contains(strings.Join(strings.Fields(out), " "), want) != (deleted > 0) {
			t.Errorf("%d gone: %+v in\n%s", deleted, traffic, out)
		}
	}
}
