package main

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"dispatcher/cmd/dispatcher/internal/app"
	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
)

// budgeted is testRouting with a budget of tenant shop over all channels.
func budgeted(amount string) string {
	budget := `limits: [{tenant: shop, window: 1d, unit: money, currency: GBP, max: "` + amount +
		"\"}]\n"
	return strings.Replace(testRouting, "routes:", budget+"routes:", 1)
}

// waits stores a message that waits under routing version 2 and was last planned ago before now.
func waits(t *testing.T, l *ledger.Ledger, url string, m ledger.Message, ago time.Duration) {
	t.Helper()
	seen := decide.AppendRanking(nil,
		&decide.Ranking{Version: 2, By: "load_ratio", Candidates: []decide.Ranked{
			{Channel: "a", Capacity: 100, Reason: "no_budget"},
			{Channel: "b", Capacity: 100, Reason: "no_budget"},
			{Channel: "c", Capacity: 100, Reason: "draining"},
		}})
	tx, err := l.Claims.Lock(t.Context(),
		ledger.Claim{Messages: []ledger.Message{m}, Channels: []string{"a", "b", "c"}})
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	err = tx.Commit(t.Context(), ledger.Decisions{Each: []ledger.Decision{{
		State: ledger.Waiting, Reason: "no_budget", WaitsFor: "tenant:shop 1d money",
		NextAt: m.ExpiresAt, Plan: m.Plan, Seen: seen,
	}}})
	if err != nil {
		t.Fatal(err)
	}
	db, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	_, err = db.Exec(t.Context(),
		`
			update dispatcher.messages set waiting_since = waiting_since - make_interval(secs => $2)
			where id = $1`,
		m.ID, ago.Seconds())
	if err != nil {
		t.Fatal(err)
	}
}

// TestExplainShowsACurrentWaitByTheVersionOfItsPlan: the message was first planned under
// version 1, which has no limits.
func TestExplainShowsACurrentWaitByTheVersionOfItsPlan(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	l, env := openSeeded(t, url), []string{"DISPATCHER_POSTGRES_URL=" + url}
	document := budgeted("0.50")
	doc, err := config.ParseDocument("routing.yaml", []byte(document))
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.Routing.Apply(t.Context(), app.NewRouting(doc, nil, "ann", "a budget", nil))
	if err != nil {
		t.Fatal(err)
	}
	m := drawn("order-7731", 17, "a")
	m.ExpiresAt = time.Now().Add(72 * time.Hour).UTC()
	waits(t, l, url, m, 20*time.Second)
	got := dispatcher(t, "", env, "explain", "order-7731")
	text := strings.Join(strings.Fields(got.out), " ")
	for _, want := range []string{
		"So far it has waited for 2",
		"It waits for the limit of tenant shop over all channels: its 0.50 GBP of the day are " +
			"spent. ",
		"Besides, c could not take it (being drained).", "The limit has room again on ",
		"its deadline.",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in %s", want, text)
		}
	}
	tooWide := slices.ContainsFunc(strings.Split(got.out, "\n"), func(line string) bool {
		return utf8.RuneCountInString(line) > 100
	})
	if tooWide {
		t.Errorf("got %s", got.out)
	}
	explanation := decoded[report.Explanation](t,
		dispatcher(t, "", env, "explain", "order-7731", "--format", "json"))
	if len(explanation.Waits) != 1 || explanation.Waits[0].On != "tenant:shop 1d money" ||
		explanation.Waits[0].Seconds < 20 || explanation.Waits[0].Seconds > 300 {
		t.Errorf("got %+v", explanation.Waits)
	}
	if explanation.Limit != "tenant:shop 1d money" || explanation.Until == nil ||
		!explanation.Until.Before(*explanation.Deadline) || explanation.Until.In(doc.Routing.Timezone).Hour() != 0 {
		t.Errorf("%q until %v, deadline %v", explanation.Limit, explanation.Until, explanation.Deadline)
	}
}

func TestForecastSaysThatAChannelIsClosed(t *testing.T) {
	t.Parallel()
	closed := `{provider: sandbox, limits: [{window: 1s, max: 0}]}`
	document := "channels:\n  a: " + closed + "\n  b: " + closed +
		"\nroutes: [{name: default, match: {}, channels: [a, b], mode: round_robin}]\n"
	explanation, _ := forecastIn(t, document, testMessage, "")
	if explanation.State != "would_wait" || explanation.Limit != "a 1s messages" ||
		explanation.Candidates[1].Never != "closed" ||
		!strings.Contains(explanation.Text,
			"It would wait, because a is closed (its limit of messages per second is 0). "+
				"Besides, b could not take it (closed: its limit is 0).") {
		t.Errorf("got %+v", explanation)
	}
	message := `{"id":"order-1","to":"+447700900123","text":"hi","tenant":"shop"}`
	explanation, _ = forecastIn(t, budgeted("0"), message, "")
	if explanation.Limit != "tenant:shop 1d money" ||
		!strings.Contains(explanation.Text,
			"It would wait, because all channels are closed to tenant shop (the limit of money "+
				"per day is 0). It would be") {
		t.Errorf("got %+v", explanation)
	}
}

// TestExplainSaysThatTheWindowOfALimitBeginsInTheFuture: only the limit's row shows it.
func TestExplainSaysThatTheWindowOfALimitBeginsInTheFuture(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	l, env := openSeeded(t, url), []string{"DISPATCHER_POSTGRES_URL=" + url}
	document := budgeted("0.50")
	doc, err := config.ParseDocument("routing.yaml", []byte(document))
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.Routing.Apply(t.Context(), app.NewRouting(doc, nil, "ann", "a budget", nil))
	if err != nil {
		t.Fatal(err)
	}
	m := drawn("order-7731", 17, "a")
	waits(t, l, url, m, 20*time.Second)
	const said = "its window begins in the future, "
	got := dispatcher(t, "", env, "explain", "order-7731")
	if strings.Contains(strings.Join(strings.Fields(got.out), " "), said) {
		t.Errorf("got %s", got.out)
	}
	db, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	_, err = db.Exec(t.Context(),
		`update dispatcher.limits set window_start = now() + interval '2 days'`)
	if err != nil {
		t.Fatal(err)
	}
	got = dispatcher(t, "", env, "explain", "order-7731")
	text := strings.Join(strings.Fields(got.out), " ")
	for _, want := range []string{
		said, "because the database's clock was ahead when it was opened", "limits set --restart",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in %s", want, text)
		}
	}
}
