package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
	"dispatcher/selector"
)

// erasing is a database with messages to one subscriber, and the settings to run erase on it.
type erasing struct {
	url string
	env []string
	key selector.Key
}

func newErasing(t *testing.T) *erasing {
	t.Helper()
	url := ledgertest.URL(t)
	l := openSeeded(t, url)
	messages := []ledger.Message{drawn("ended", 17, "a"), drawn("unended", 18, "a")}
	for i := range messages {
		messages[i].Recipient = ledger.Recipient("shop", "+447700900123")
	}
	settled(t, l, claimed(t, l, messages...))
	alter(t, url, `update dispatcher.messages set state = 'delivered', finished_at = now()
		where id = 'ended'`)
	alter(t, url, `insert into dispatcher.receipts (channel, reference, message_seq, attempt, part,
		due_at) select 'a', 'awaited', seq, 1, 1, now() + interval '1 hour'
		from dispatcher.messages where id = 'unended'`)
	file := write(t, "draw.key", config.NewDrawKey())
	keys, err := config.DrawKeys(file)
	if err != nil {
		t.Fatal(err)
	}
	return &erasing{
		url: url, key: keys[0],
		env: []string{"DISPATCHER_POSTGRES_URL=" + url, "DISPATCHER_DRAW_KEY_FILE=" + file},
	}
}

// run runs erase with the number in a form that people write.
func (e *erasing) run(t *testing.T, more ...string) result {
	t.Helper()
	got := dispatcher(t, "", e.env, append([]string{
		"erase", "--number", "07700 900-123", "--default-region", "GB", "--author", "ann",
		"--reason", "asked by letter",
	}, more...)...)
	if strings.Contains(got.out+got.err, "7700900123") {
		t.Errorf("the output shows the number: %+v", got)
	}
	return got
}

func TestASubscribersNumberAndTextsAreErased(t *testing.T) {
	t.Parallel()
	e := newErasing(t)
	dry := e.run(t, "--dry-run", "--format", "json")
	want := erased{
		DryRun: true, Messages: 1, Unended: 1,
		Tenants: []erasedTenant{{Tenant: "shop", Messages: 1, Unended: 1}},
	}
	if got := shown[erased](t, dry); dry.code != exitOK || got.Messages != want.Messages ||
		got.Unended != want.Unended || !got.DryRun || len(got.Tenants) != 1 ||
		got.Tenants[0] != want.Tenants[0] {
		t.Errorf("got %+v", dry)
	}
	got := e.run(t)
	if got.code != exitFailed || !strings.Contains(got.err, "1 message has not ended") ||
		!strings.Contains(got.out, "│ shop   │        1 │         1 │") {
		t.Errorf("got %+v, want exit code %d, %q in the error and %q in the output",
			got, exitFailed, "1 message has not ended", "│ shop   │        1 │         1 │")
	}
	if got := e.run(t, "--tenant", "bank"); got.code != exitOK ||
		got.out != "0 messages and 0 incoming parts erased.\n" {
		t.Errorf("another tenant: %+v", got)
	}
	conn, err := pgx.Connect(t.Context(), e.url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // It has no more to do.
	var left string
	var recorded bool
	err = conn.QueryRow(t.Context(), `
		select (select string_agg(m.id, ' ') from dispatcher.payloads
		    join dispatcher.messages m using (seq)),
		  (select count(*) = 2 and sum(messages) = 1 and bool_and(number_hmac = $1
		    and author = 'ann') from audit.erasures)`,
		decide.NumberHMAC(e.key, "+447700900123")).Scan(&left, &recorded)
	if err != nil || left != "unended" || !recorded {
		t.Errorf("left %s, recorded %v, %v", left, recorded, err)
	}
	alter(t, e.url, `update dispatcher.messages set state = 'delivered', finished_at = now()
		where id = 'unended'`)
	if got := e.run(t); got.code != exitOK {
		t.Errorf("when all have ended: %+v", got)
	}
}

// A message without payload is explained without its number and text.
func TestAMessageWithoutPayloadIsExplained(t *testing.T) {
	t.Parallel()
	e := newErasing(t)
	e.run(t)
	got := dispatcher(t, "", e.env, "explain", "ended")
	for _, want := range []string{
		"and its text are not kept any more.", "draw was 17 of 0 to 99", "ref-ended",
	} {
		if !strings.Contains(strings.Join(strings.Fields(got.out), " "), want) {
			t.Errorf("%q is missing in %s", want, got.out)
		}
	}
	for id, want := range map[string]bool{"ended": true, "unended": false} {
		got := dispatcher(t, "", e.env, "explain", id, "--format", "json")
		var explanation report.Explanation
		if err := json.Unmarshal([]byte(got.out), &explanation); err != nil || got.code != exitOK ||
			explanation.PayloadGone != want {
			t.Errorf("%s: %+v, %v", id, got, err)
		}
	}
}

func TestEraseWantsANumberAReasonAndKeys(t *testing.T) {
	t.Parallel()
	url := "DISPATCHER_POSTGRES_URL=postgres://127.0.0.1:1/none"
	for want, args := range map[string][]string{
		"--number is missing":      {"--reason", "r"},
		"--reason is missing":      {"--number", "+447700900123"},
		"--number is not a number": {"--number", "07700900123", "--reason", "r"},
		"--author is empty":        {"--number", "+447700900123", "--reason", "r", "--author", " "},
		"--default-region":         {"--number", "07700900123", "--reason", "r", "--default-region", "?"},
	} {
		got := dispatcher(t, "", []string{url}, append([]string{"erase"}, args...)...)
		if got.code != exitUsage || !strings.Contains(got.err, want) {
			t.Errorf("%v: got %+v, want exit code %d and %q in the error", args, got, exitUsage, want)
		}
	}
}

func TestWhatHasNoPayloadIsNotSettledAsToBeSentAgain(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	ambiguousMessages(t, openSeeded(t, url), "final-1")
	alter(t, url, `delete from dispatcher.payloads`)
	got := settleAs(t, url, exitFailed, "final-1", "not_taken")
	if !strings.Contains(got.err, "cannot be sent again, because its number and text are not kept") {
		t.Errorf("got %+v, want %q in the error",
			got, "cannot be sent again, because its number and text are not kept")
	}
	settleAs(t, url, exitOK, "final-1", "taken")
}
