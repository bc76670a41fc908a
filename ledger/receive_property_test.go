package ledger_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
	"dispatcher/provider"
)

// deed is one thing that happens to a message: it is settled, a receipt comes, or somebody looks at what is due.
type deed struct {
	kind  string // settle, receipt, look
	part  int
	state provider.ReceiptState
}

// deeds are a settlement, any number of receipts for its parts, and looks, in any order and with repetitions.
func deeds(t *rapid.T, parts int) []deed {
	all := []deed{{kind: "settle"}}
	for range rapid.IntRange(0, 7).Draw(t, "receipts") {
		all = append(all, deed{
			kind: "receipt", part: rapid.IntRange(0, parts-1).Draw(t, "part"),
			state: rapid.SampledFrom([]provider.ReceiptState{provider.Pending, provider.Delivered, provider.Undelivered}).Draw(t, "state"),
		})
	}
	for range rapid.IntRange(0, 3).Draw(t, "others") {
		all = append(all, deed{kind: rapid.SampledFrom([]string{"settle", "look"}).Draw(t, "other")})
	}
	return rapid.Permutation(all).Draw(t, "order")
}

// model is what receipts come to, by the words of the design: pending < undelivered < delivered for each part; all
// parts delivered is delivered, all with their last word and one of them not is undelivered, else it is not known.
func model(all []deed, parts int, expired bool) (state, attempt string) {
	best := make([]provider.ReceiptState, parts)
	rank := map[provider.ReceiptState]int{provider.Pending: 0, provider.Undelivered: 1, provider.Delivered: 2}
	for _, d := range all {
		if d.kind == "receipt" && rank[d.state] > rank[best[d.part]] {
			best[d.part] = d.state
		}
	}
	switch {
	case slices.Contains(best, provider.Pending) && expired:
		return "no_receipt", "no_receipt"
	case slices.Contains(best, provider.Pending):
		return "accepted", ""
	case slices.Contains(best, provider.Undelivered):
		return "undelivered", "undelivered"
	}
	return "delivered", "delivered"
}

// TestAnyOrderOfSettlementAndReceiptsComesToTheSame: early, late, repeated, contradictory, and by two instances in
// turns. Each state is told once, in an order that goes forward only, and the slot is free once there is a last word.
func TestAnyOrderOfSettlementAndReceiptsComesToTheSame(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	ledgers := []*ledger.Ledger{connect(t, ledger.Config{URL: url, MaxConns: 1}), connect(t, ledger.Config{URL: url, MaxConns: 1})}
	db := raw(t, url)
	apply(t, ledgers[0], ledger.ChannelSpec{Name: "a", ActiveMax: 5})
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		parts := rapid.IntRange(1, 3).Draw(rt, "parts")
		all := deeds(rt, parts)
		expired := rapid.Bool().Draw(rt, "expired")
		m := claimAll(t, ledgers[0], []ledger.Message{message(fmt.Sprintf("p-%06d", n))}, "a").Messages[0]
		var references []string
		for i := range parts {
			references = append(references, fmt.Sprintf("r%d-%d", n, i))
		}
		s := expecting(m, strings.Join(references, " "))
		s[0].Hold = time.Hour
		for i, d := range all {
			l := ledgers[i%2]
			switch d.kind {
			case "settle":
				settleAll(t, l, s)
			case "receipt":
				receive(t, l, receipt(references[d.part], d.state))
			case "look":
				overdue(t, l)
			}
		}
		overdue(t, ledgers[0])
		if expired {
			timeUp(t, db)
			overdue(t, ledgers[1])
		}
		state, attempt := model(all, parts, expired)
		check(rt, t, db, m, state, attempt)
		// What is settled once more, received once more and looked at once more changes nothing.
		settleAll(t, ledgers[1], s)
		for _, d := range all {
			if d.kind == "receipt" {
				receive(t, ledgers[0], receipt(references[d.part], d.state))
			}
		}
		overdue(t, ledgers[1])
		check(rt, t, db, m, state, attempt)
		execute(t, db, `update dispatcher.channels set active = 0`)
		execute(t, db, `update dispatcher.attempts set freed = true`)
	})
}

// check compares the message with what the model says.
func check(rt *rapid.T, t *testing.T, db *pgx.Conn, m ledger.Message, state, attempt string) {
	got := scalar[string](t, db, `
		select concat_ws(' ', m.state, '/', a.receipt_state, '/', (a.delivered_at is not null)::text, (m.finished_at is not null)::text)
		from dispatcher.messages m join dispatcher.attempts a on a.message_seq = m.seq where m.seq = $1`, m.Seq)
	want := strings.Join(strings.Fields(fmt.Sprint(state, " / ", attempt, " / ", state == "delivered", " ", state != "accepted")), " ")
	if got != want {
		rt.Fatalf("came to %q, want %q", got, want)
	}
	told := scalar[[]string](t, db, `
		select coalesce(array_agg(split_part(convert_from(u.value, 'UTF8'), ' ', 1) order by o.seq), '{}')
		from dispatcher.outbox o, unnest(o.keys, o."values") as u(key, value) where u.key = $1`, m.ID)
	order := []string{"no_receipt", "undelivered", "delivered"}
	last := -1
	for _, word := range told {
		at := slices.Index(order, word)
		if at <= last {
			rt.Fatalf("told %v", told)
		}
		last = at
	}
	if state != "accepted" && (len(told) == 0 || told[len(told)-1] != state) || state == "accepted" && len(told) > 0 {
		rt.Fatalf("told %v of a message that is %s", told, state)
	}
	held := scalar[bool](t, db, `select not freed from dispatcher.attempts where message_seq = $1`, m.Seq)
	finals := scalar[int](t, db, `select count(*) from dispatcher.receipts where message_seq = $1 and state in ('delivered', 'undelivered')`, m.Seq)
	if held != (finals == 0 && state == "accepted") {
		rt.Fatalf("its slot is held: %t, with %d last words, %s", held, finals, state)
	}
}
