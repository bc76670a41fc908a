package ledger_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
)

// barred claims the messages and up to due due rows, makes all of them wait, and returns the ids of
// those whose recipient has opted out.
func barred(t testing.TB, l *ledger.Ledger, messages []ledger.Message, due int) (ids []string) {
	t.Helper()
	err := runClaim(t.Context(), l, ledger.Claim{Messages: messages, Due: due},
		func(seen *ledger.Seen) (ledger.Decisions, error) {
			d := ledger.Decisions{Each: make([]ledger.Decision, len(seen.Messages))}
			for i := range seen.Messages {
				if seen.IsOptedOut(i) {
					ids = append(ids, seen.Messages[i].ID)
				}
				if seen.Intakes[i] == ledger.Fresh || seen.Intakes[i] == ledger.Due {
					d.Each[i] = ledger.Decision{
						State: ledger.Waiting, Reason: "test",
						NextAt: seen.Now, Plan: seen.Messages[i].Plan,
					}
				}
			}
			return d, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(ids)
	return ids
}

// to is a message to a number.
func to(id, tenant, number string) ledger.Message {
	m := message(id)
	m.Tenant, m.Recipient = tenant, ledger.Recipient(tenant, number)
	m.Envelope = fmt.Appendf(nil, `{"id":%q,"to":%q,"text":"t","tenant":%q}`, id, number, tenant)
	return m
}

var byHand = ledger.Listing{
	Tenant: "shop", Source: ledger.ByCommand, Author: "ann",
	Reason: "asked by letter",
}

func optOut(t testing.TB, l *ledger.Ledger, by ledger.Listing, numbers ...string) int64 {
	t.Helper()
	n, err := l.OptOuts.Add(t.Context(), by, numbers)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func optIn(t testing.TB, l *ledger.Ledger, by ledger.Listing, numbers ...string) int64 {
	t.Helper()
	n, err := l.OptOuts.Remove(t.Context(), by, numbers)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestAClaimSeesOptOutsOfNewAndDueRows(t *testing.T) {
	t.Parallel()
	l := open(t)
	want(t, "empty list", barred(t, l, []ledger.Message{
		to("old-1", "shop", subscriber),
		to("old-2", "bank", subscriber),
	}, 0), []string(nil))
	optOut(t, l, byHand, subscriber)
	got := barred(t, l, []ledger.Message{
		to("new-2", "shop", "+447700900124"),
		to("new-1", "shop", subscriber), to("new-3", "bank", subscriber),
	}, 10)
	want(t, "on the list", got, []string{"new-1", "old-1"})
	optIn(t, l, byHand, subscriber)
	want(t, "off the list", barred(t, l, nil, 10), []string(nil))
	optOut(t, l, byHand, subscriber)
	want(t, "on it again", barred(t, l, nil, 10), []string{"new-1", "old-1"})
}

func TestAKeywordChangesTheList(t *testing.T) {
	t.Parallel()
	l := open(t)
	m := []ledger.Message{to("m", "shop", subscriber)}
	want(t, "stop", record(t, l, sms("1", "STOP")), ledger.InboxResult{Whole: 1, OptedOut: 1})
	want(t, "barred", barred(t, l, m, 0), []string{"m"})
	want(t, "stop again", record(t, l, sms("2", "STOP")), ledger.InboxResult{Whole: 1})
	want(t, "start", record(t, l, sms("3", "START")), ledger.InboxResult{Whole: 1, OptedIn: 1})
	want(t, "not barred", barred(t, l, nil, 10), []string(nil))
	want(t, "start after stop", record(t, l, sms("a", "STOP"), sms("b", "START")), ledger.InboxResult{
		Whole: 2,
	})
	want(t, "the last of a batch counts", record(t, l, sms("4", "STOP"), sms("5", "START"),
		sms("6", "STOP")), ledger.InboxResult{Whole: 3, OptedOut: 1})
	want(t, "barred again", barred(t, l, nil, 10), []string{"m"})
}

func TestTheListKeepsItsHistory(t *testing.T) {
	t.Parallel()
	l := open(t)
	imported := ledger.Listing{
		Tenant: "shop", Source: ledger.ByImport, Author: "ann",
		Reason: "old system",
	}
	want(t, "imported", optOut(t, l, imported, subscriber, "+447700900124", subscriber), int64(2))
	want(t, "there already", optOut(t, l, byHand, subscriber), int64(0))
	record(t, l, sms("1", "START"), sms("2", "hello"))
	record(t, l, sms("3", "STOP"))
	want(t, "taken off", optIn(t, l, ledger.Listing{
		Tenant: "shop", Source: ledger.ByCommand,
		Author: "bob", Reason: "by phone",
	}, subscriber, "+447700900999"), int64(1))
	got, err := l.OptOuts.Of(t.Context(), "shop", subscriber)
	if err != nil {
		t.Fatal(err)
	}
	wanted := []ledger.OptOutEntry{
		{
			Tenant: "shop", Source: ledger.BySubscriber, Channel: "a", EndedBy: ledger.ByCommand,
			EndedAuthor: "bob", EndedReason: "by phone",
			Login: "dispatcher", EndedLogin: "dispatcher",
		},
		{
			Tenant: "shop", Source: ledger.ByImport, Author: "ann", Reason: "old system",
			EndedBy: ledger.BySubscriber, EndedChannel: "a",
			Login: "dispatcher", EndedLogin: "dispatcher",
		},
	}
	if diff := cmp.Diff(wanted, got, cmpopts.IgnoreTypes(time.Time{})); diff != "" {
		t.Error(diff)
	}
	for i := range got {
		if got[i].Since.IsZero() || got[i].Until.Before(got[i].Since) {
			t.Errorf("entry %d is from %s until %s", i, got[i].Since, got[i].Until)
		}
	}
	optOut(t, l, ledger.Listing{Tenant: "bank", Source: ledger.ByCommand}, subscriber)
	counts, err := l.OptOuts.Count(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	wantedCounts := []ledger.OptOutCount{
		{Tenant: "bank", Source: ledger.ByCommand, Current: 1},
		{Tenant: "shop", Source: ledger.ByImport, Current: 1, Ended: 1},
		{Tenant: "shop", Source: ledger.BySubscriber, Channel: "a", Ended: 1},
	}
	if diff := cmp.Diff(wantedCounts, counts, cmpopts.IgnoreTypes(time.Time{})); diff != "" {
		t.Error(diff)
	}
	shop := "bank"
	if counts, err = l.OptOuts.Count(t.Context(), &shop); err != nil || len(counts) != 1 {
		t.Errorf("%+v, %v", counts, err)
	}
}

func TestTheDatabaseKeepsOptOutsInOrder(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db := rig.l, rig.db
	optOut(t, l, byHand, subscriber)
	for sql, constraint := range map[string]string{
		`insert into dispatcher.opt_outs (tenant, recipient, source) select tenant, recipient,
			'command' from dispatcher.opt_outs`: "opt_outs_current",
		`update dispatcher.opt_outs
			set until = now()`: "opt_outs_ended",
		`update dispatcher.opt_outs
			set ended_by = 'command'`: "opt_outs_ended",
		`update dispatcher.opt_outs
			set until = since - interval '1 second', ended_by = 'command'`: "opt_outs_until",
		`update dispatcher.opt_outs
			set source = 'whim'`: "opt_outs_source_check",
		`update dispatcher.opt_outs
			set until = now(), ended_by = 'import'`: "opt_outs_ended_by_check",
		`insert into dispatcher.inbound_parts
			values (default, 'i', 'c', 's', 'r', 1, 2, 2, 't', now(), now())`: "inbound_parts_part",
		`insert into dispatcher.inbound_parts
			values (default, 'i', 'c', 's', 'r', 1, 1, 0, 't', now(),
			  now())`: "inbound_parts_parts_check",
		`insert into dispatcher.inbound_outbox (keys, "values")
			values ('{a,b}', '{x}')`: "inbound_outbox_lengths",
	} {
		if got := refusal(t, db, sql); got != constraint {
			t.Errorf("%s: refused by %q, want %q", sql, got, constraint)
		}
	}
}

// TestGoAndTheSchemaGiveTheSameRecipient: claims use the Go function, auditors the one of the
// schema.
func TestGoAndTheSchemaGiveTheSameRecipient(t *testing.T) {
	t.Parallel()
	db := lend(t).db
	tier.Check(t, func(rt *rapid.T) {
		tenant := strings.ReplaceAll(rapid.String().Draw(rt, "tenant"), "\x00", "")
		number := rapid.StringMatching(`\+{0,2}[0-9]{3,15}`).Draw(rt, "number")
		want := ledger.Recipient(tenant, number)
		if got := scalar[int64](t, db, `select dispatcher.recipient($1, $2)`, tenant,
			number); got != want {
			rt.Fatalf("%q %q: %d, want %d", tenant, number, got, want)
		}
		if other := ledger.Recipient(tenant+"x", number); other == want {
			rt.Fatal("another tenant has the same recipient")
		}
		if bare := ledger.Recipient(tenant, strings.TrimLeft(number, "+")); bare != want {
			rt.Fatal("the plus makes a difference")
		}
	})
}

// TestOptOutsAreFoundThroughTheirIndex, also when the statistics are from a time without opt-outs.
func TestOptOutsAreFoundThroughTheirIndex(t *testing.T) {
	t.Parallel()
	db := raw(t, ledgertest.Fresh(t))
	if _, err := db.Exec(t.Context(),
		`set enable_seqscan = off; set enable_hashjoin = off; set enable_mergejoin = off; set plan_cache_mode = force_generic_plan`); err != nil {
		t.Fatal(err)
	}
	const question = `select case when (select exists (select from dispatcher.opt_outs
		where until is null))
		then coalesce((select true from dispatcher.opt_outs o where o.recipient = m.recipient
		  and o.until is null), false) else false end
		from dispatcher.payloads m`
	if got := ledger.PlanOf(t, db, question); strings.Count(got, "opt_outs_current") != 2 ||
		strings.Contains(got, "hashed") {
		t.Errorf("the list is not asked through its index:\n%s", got)
	}
}
