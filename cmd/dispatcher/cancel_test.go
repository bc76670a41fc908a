package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
)

// unsent stores messages that wait for a channel.
func unsent(t *testing.T, l *ledger.Ledger, messages ...ledger.Message) {
	t.Helper()
	tx, err := l.Claims.Lock(t.Context(), ledger.Claim{Messages: messages})
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	d := ledger.Decisions{Each: make([]ledger.Decision, len(messages))}
	for i := range messages {
		d.Each[i] = ledger.Decision{
			State: ledger.Waiting, Reason: "no_slot", NextAt: time.Now().Add(time.Hour),
			Plan: messages[i].Plan,
		}
	}
	if err := tx.Commit(t.Context(), d); err != nil {
		t.Fatal(err)
	}
}

// TestMessagesAreCancelledByAFilter: what a tenant has waiting to numbers of a country, after a dry
// run. Other messages, and those that have left, are not changed.
func TestMessagesAreCancelledByAFilter(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	l := openSeeded(t, url)
	claimed(t, l, drawn("sent", 1, "a"))
	var waiting []ledger.Message
	for i := range 1203 { // more than two pages
		waiting = append(waiting, drawn(fmt.Sprintf("wait-%04d", i), 1, "a"))
	}
	other := drawn("other-tenant", 1, "a")
	other.Tenant = "bank"
	abroad := drawn("abroad", 1, "a")
	abroad.Envelope = []byte(`{"id":"abroad","to":"+33612345678","text":"x"}`)
	unsent(t, l, append(waiting, other, abroad)...)
	cancel := func(code int, args ...string) result {
		t.Helper()
		got := dispatcher(t, "", []string{"DISPATCHER_POSTGRES_URL=" + url}, append([]string{
			"cancel", "--tenant", "shop", "--prefix", "+44", "--reason", "wrong text",
		}, args...)...)
		if got.code != code {
			t.Fatalf("%v: got %+v", args, got)
		}
		return got
	}
	const would = "1203 messages would be cancelled; with --yes in place of --dry-run they are.\n"
	if said := cancel(exitOK, "--dry-run").out; said != would {
		t.Error(said)
	}
	if said := cancel(exitUsage).err; !strings.Contains(said, "1203 messages would be cancelled") {
		t.Error(said)
	}
	for _, none := range [][]string{
		{"--lane", "transactional"}, {"--until", "1h"}, {"--prefix", "+1"},
	} {
		if said := cancel(exitOK, append(none, "--yes")...).out; said !=
			"0 of 0 messages are cancelled.\n" {
			t.Errorf("%v: %s", none, said)
		}
	}
	for _, typo := range [][]string{{"lane", "bulc"}, {"route", "none"}} {
		for _, do := range []string{"--yes", "--dry-run"} {
			said := cancel(exitUsage, "--"+typo[0], typo[1], do).err
			if want := fmt.Sprintf("there is no %s %q; choose one of ", typo[0], typo[1]); !strings.
				Contains(said, want) {
				t.Errorf("%v: %s", typo, said)
			}
		}
	}
	got := shown[cancelledMany](t, cancel(exitOK, "--yes", "--lane", "otp", "--route", "default",
		"--since", "1h", "--format", "json"))
	if got.Matched != 1203 || got.Cancelled != 1203 || len(got.Left) != 0 || got.DryRun {
		t.Errorf("got %+v", got)
	}
	states := queryOne[string](t, url, `select string_agg(state || ' ' || n, ', ' order by state) from (
		select state, count(*) as n from audit.messages group by state) s`)
	if want := "failed 1203, sending 1, waiting 2"; states != want {
		t.Errorf("%s, want %s", states, want)
	}
	if n := queryOne[int](t, url, `select count(*) from dispatcher.operator_actions
		where action = 'cancel' and reason = 'wrong text'`); n != 1203 {
		t.Errorf("%d cancellations are on record", n)
	}
	if got := queryOne[string](t, url, `select string_agg(author || ': ' || split_part(subject,
		', before', 1), '; ') from dispatcher.operator_actions where action = 'cancel_many'
		and subject like 'lane%'`); !strings.Contains(got,
		": lane otp, route default, tenant shop, prefix +44, since 20") {
		t.Errorf("on record: %s", got)
	}
	if n := queryOne[int](t, url, `select sum(cardinality(keys)) from dispatcher.outbox
		where kind = 'status'`); n != 1203 {
		t.Errorf("%d status events are to be published", n)
	}
}

// TestACancellationSaysWhatIsStillInKafka of the lane, or of all lanes, because resuming sends it.
func TestACancellationSaysWhatIsStillInKafka(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	l := openSeeded(t, url)
	if err := l.Instances.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Instances.Gather(t.Context(), nil, &ledger.InstanceState{
		Version: 1, Lanes: map[string]ledger.InstanceLane{
			"otp": {Joined: true, Lag: new(int64(1))}, "transactional": {Joined: true, Lag: new(int64(0))},
		},
	}, time.Minute); err != nil {
		t.Fatal(err)
	}
	cancel := func(more ...string) string {
		t.Helper()
		got := dispatcher(t, "", []string{"DISPATCHER_POSTGRES_URL=" + url},
			append([]string{"cancel", "--reason", "wrong text"}, more...)...)
		if got.code != exitOK {
			t.Fatalf("%v: got %+v", more, got)
		}
		return strings.Join(strings.Fields(got.out), " ")
	}
	const unread = "Lane otp has 1 more record in Kafka, which no filter finds"
	for _, args := range [][]string{{"--lane", "otp", "--yes"}, {"--tenant", "shop", "--dry-run"}} {
		if said := cancel(args...); !strings.Contains(said, unread) || strings.Contains(said,
			"A paused lane") || strings.Contains(said, "Lane transactional") {
			t.Errorf("%v: %s", args, said)
		}
	}
	if said := cancel("--lane", "transactional", "--yes"); said != "0 of 0 messages are cancelled." {
		t.Error(said)
	}
	if got := dispatcher(t, "", []string{"DISPATCHER_POSTGRES_URL=" + url}, withReason("stop", "pause",
		"--lane", "otp")...); got.code != exitOK {
		t.Fatalf("got %+v", got)
	}
	if said := cancel("--lane", "otp", "--yes"); !strings.Contains(said, unread) ||
		!strings.Contains(said, "A paused lane is not read, and resuming it sends them") {
		t.Error(said)
	}
}

func TestACancellationNeedsAnIDAFileOrAFilter(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"name a message, a file":      {},
		"--file exclude each other":   {"m", "--file", "x"},
		"and a filter":                {"m", "--lane", "otp"},
		"--yes exclude each other":    {"--lane", "otp", "--dry-run", "--yes"},
		"--format goes with a filter": {"m", "--format", "json"},
		"does not begin a number":     {"--prefix", "44"},
		"--since: write a time":       {"--since", "yesterday"},
		"--pending goes with an id":   {"--lane", "otp", "--pending"},
		"--reason is missing":         {"--lane", "otp", "--reason", " "},
		"the reason has a phone numb": {"--lane", "otp", "--reason", "asked by +447700900123"},
	} {
		got := dispatcher(t, "", nil, append([]string{"cancel", "--reason", "r"}, args...)...)
		if got.code != exitUsage || !strings.Contains(got.err, want) {
			t.Errorf("%v: got %+v, want %q", args, got, want)
		}
	}
}

// TestMessagesThatCannotBeCancelledAreListed, and the exit code says so.
func TestMessagesThatCannotBeCancelledAreListed(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	l := openSeeded(t, url)
	unsent(t, l, drawn("wait-1", 1, "a"), drawn("part", 1, "a"), drawn("wait-2", 1, "a"))
	queryOne[string](t, url, `update dispatcher.messages set pinned = 'a', parts_cut = 'x',
		parts_left = '{2}' where id = 'part' returning id`)
	run := dispatcher(t, "", []string{"DISPATCHER_POSTGRES_URL=" + url}, "cancel", "--tenant", "shop",
		"--reason", "wrong text", "--yes", "--format", "json")
	if run.code != exitFailed {
		t.Fatalf("got %+v", run)
	}
	got := decoded[cancelledMany](t, run)
	if got.Matched != 3 || got.Cancelled != 2 || len(got.Left) != 1 || got.Left[0].ID != "part" ||
		!strings.Contains(got.Left[0].Why, "has been taken by a in part") {
		t.Errorf("got %+v", got)
	}
}

// TestACancellationOfWhatIsStillInKafkaIsPending: only when the command asks for it, and once.
// Status and explanation show it.
func TestACancellationOfWhatIsStillInKafkaIsPending(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	openSeeded(t, url)
	run := func(code int, want string, args ...string) result {
		t.Helper()
		got := dispatcher(t, "", []string{"DISPATCHER_POSTGRES_URL=" + url}, args...)
		if got.code != code || !strings.Contains(strings.Join(strings.Fields(got.out+got.err), " "),
			want) {
			t.Fatalf("%v: got %+v, want %q", args, got, want)
		}
		return got
	}
	cancel := []string{"cancel", "early", "--reason", "wrong text", "--author", "ann"}
	run(exitFailed, "with --pending it is cancelled when it comes", cancel...)
	run(exitFailed, "no message has the id", "explain", "early")
	run(exitFailed, "no message can have the id", "cancel", strings.Repeat("x", 65), "--reason",
		"wrong text", "--pending")
	for range 2 {
		run(exitOK, "Message early is not in the ledger yet. It is cancelled if it comes",
			append(cancel, "--pending")...)
	}
	run(exitOK, "1 message is not in the ledger yet", "cancel", "--file",
		write(t, "ids.txt", "late\n"), "--reason", "wrong text", "--pending")
	if got := dispatcher(t, "later\n", []string{"DISPATCHER_POSTGRES_URL=" + url}, "cancel", "--file",
		"-", "--reason", "wrong text", "--pending"); got.code != exitOK ||
		!strings.Contains(got.out, "1 message is not in the ledger yet") {
		t.Errorf("from standard input: %+v", got)
	}
	run(exitFailed, "message early is not in the ledger yet: ann cancelled it at", "explain", "early")
	run(exitOK, "Cancellations that wait for their message: 3, the oldest since", "status")
	got := shown[struct {
		N      int       `json:"pending_cancellations"`
		Oldest time.Time `json:"oldest_pending_cancellation"`
	}](t, run(exitOK, "", "status", "--format", "json"))
	if got.N != 3 || time.Since(got.Oldest).Abs() > time.Minute {
		t.Errorf("got %+v", got)
	}
	if n := queryOne[int](t, url, `select count(*) from dispatcher.operator_actions
		where action = 'cancel_pending' and subject = 'early' and author = 'ann'
		  and via = 'command'`); n != 1 {
		t.Errorf("%d are on record", n)
	}
}
