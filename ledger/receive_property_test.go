package ledger_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
	"dispatcher/provider"
)

// deed is one event of a message: a settlement, a receipt, a call of Overdue, or an operator's
// resolution of an ambiguity.
type deed struct {
	// kind is settle, receipt, look (Overdue), verdict, or time: the time of all receipts ends, if the
	// message is unknown by then.
	kind    string
	part    int  // that a receipt is about, or whose id the operator names; -1 for none
	keyed   bool // the receipt carries our key
	state   provider.ReceiptState
	verdict ledger.ResolvedAs
}

// Answers of a part.
const (
	taken    = "taken"    // with an id
	nameless = "nameless" // taken without an id
	silent   = "silent"   // nobody knows
	unsent   = "unsent"   // certainly not taken
)

// lastWords are the final states of receipts.
var lastWords = []provider.ReceiptState{provider.Delivered, provider.Undelivered}

// life is a message of several parts, the provider's answers to each of them, and the events.
type life struct {
	answers []string
	deeds   []deed
	// endsEarly: the time of the parts with an answer ends before anything is known of the others.
	endsEarly bool
	expired   bool // in the end the time of all receipts is over
	mute      bool // no receipts are expected
}

// known reports whether the provider answered that it took the message.
func (l *life) known() bool { return !slices.Contains(l.answers, silent) }

// drawLife draws answers that lead to an accepted or unknown settlement, and events in any order.
func drawLife(t *rapid.T) life {
	l := life{expired: rapid.Bool().Draw(t, "expired"), endsEarly: rapid.IntRange(0, 3).Draw(t,
		"endsEarly") == 0}
	if l.endsEarly {
		l.answers = rapid.SampledFrom([][]string{{taken, silent}, {taken, taken, silent}, {
			taken, silent, silent,
		}}).Draw(t, "answers")
		l.deeds = deeds(t, &l)
		return l
	}
	l.mute = rapid.IntRange(0, 3).Draw(t, "mute") == 0
	parts := rapid.IntRange(1, 3).Draw(t, "parts")
	kinds := []string{taken, taken, nameless}
	if rapid.Bool().Draw(t, "unanswered") {
		kinds = []string{taken, nameless, silent, silent, unsent}
	}
	for range parts {
		l.answers = append(l.answers, rapid.SampledFrom(kinds).Draw(t, "answer"))
	}
	if l.known() && slices.Contains(l.answers, unsent) {
		l.answers[rapid.IntRange(0, parts-1).Draw(t, "silent part")] = silent
	}
	l.deeds = deeds(t, &l)
	return l
}

// deeds are a settlement, any number of receipts for the parts that were sent, resolutions and
// calls of Overdue, in any order and with repetitions.
func deeds(t *rapid.T, l *life) []deed {
	var left []int
	for i, answer := range l.answers {
		if answer != unsent {
			left = append(left, i)
		}
	}
	first, all := []deed{}, []deed{{kind: "settle"}}
	if l.endsEarly {
		first, all = []deed{{kind: "settle"}, {kind: "time"}}, nil
		for i, answer := range l.answers {
			if answer == silent {
				all = append(all, deed{
					kind: "receipt", part: i, keyed: true,
					state: rapid.SampledFrom(lastWords).Draw(t, "last word"),
				})
			}
		}
	}
	for range rapid.IntRange(0, 7).Draw(t, "receipts") {
		all = append(all, deed{
			kind: "receipt", part: rapid.SampledFrom(left).Draw(t, "part"), keyed: rapid.Bool().
				Draw(t, "keyed"),
			state: rapid.SampledFrom([]provider.ReceiptState{
				provider.Pending, provider.Delivered,
				provider.Undelivered,
			}).Draw(t, "state"),
		})
	}
	for range rapid.IntRange(0, 2).Draw(t, "verdicts") {
		all = append(all, deed{
			kind: "verdict", part: rapid.SampledFrom(append([]int{-1}, left...)).Draw(t, "named"),
			verdict: rapid.SampledFrom([]ledger.ResolvedAs{
				ledger.Taken, ledger.NotTaken, ledger.Unresolved,
			}).Draw(t, "verdict"),
		})
	}
	for range rapid.IntRange(0, 3).Draw(t, "others") {
		all = append(all, deed{kind: rapid.SampledFrom([]string{"settle", "look", "time"}).Draw(t,
			"other")})
	}
	return append(first, rapid.Permutation(all).Draw(t, "order")...)
}

// resolution is the last resolution of the operator that took effect.
type resolution struct {
	verdict ledger.ResolvedAs
	part    int // whose id was named; -1 for none
}

// model is the expected result:
//
//   - A message was accepted if its provider or an operator says so, or a receipt with our key
//     about a part that had no answer.
//   - For each part pending < undelivered < delivered. A receipt without our key counts for a part
//     whose id is known.
//   - Receipts are awaited from the proof on, however long the attempt was unknown. Where none are
//     expected, ids are known only from receipts with our key, and none is ever missing.
//   - The message is delivered when all parts are. It is undelivered when all parts are final or
//     were never sent, and not all are delivered. Else it has no receipt yet.
//   - Receipts of a denied message change nothing, unless receipts with our key, or by the ids in
//     those, say that all of it was delivered: then the message is delivered.
func model(l *life, said resolution) (state, attempt string) {
	proved := l.known()
	best, named := make([]provider.ReceiptState, len(l.answers)), make([]bool, len(l.answers))
	for i, answer := range l.answers {
		named[i] = !l.mute && (answer == taken || said.verdict == ledger.Taken && said.part == i)
	}
	for _, d := range l.deeds {
		if d.kind == "receipt" && d.keyed {
			named[d.part], proved = true, proved || l.mute || l.answers[d.part] != taken
		}
	}
	rank := map[provider.ReceiptState]int{
		provider.Pending: 0, provider.Undelivered: 1,
		provider.Delivered: 2,
	}
	for _, d := range l.deeds {
		if d.kind == "receipt" && named[d.part] && rank[d.state] > rank[best[d.part]] {
			best[d.part] = d.state
		}
	}
	open, failed := false, false
	for i, answer := range l.answers {
		open = open || answer != unsent && best[i] == provider.Pending
		failed = failed || answer == unsent || best[i] == provider.Undelivered
	}
	switch {
	case said.verdict == ledger.NotTaken && !open && !failed:
		return "delivered", ""
	case said.verdict == ledger.NotTaken:
		return "failed", ""
	case !proved && said.verdict != ledger.Taken:
		return "unknown", ""
	case open && l.expired && !l.mute:
		return "no_receipt", "no_receipt"
	case open:
		return "accepted", ""
	case failed:
		return "undelivered", "undelivered"
	}
	return "delivered", "delivered"
}

// settlement is what the dispatcher settles for the answers.
func (l *life) settlement(m ledger.Message, names []string) ledger.Settlement {
	s := expecting(m, "")[0]
	var ids []string
	for i, answer := range l.answers {
		switch answer {
		case taken:
			ids = append(ids, names[i])
			s.Receipts++
		case nameless:
			ids = append(ids, "")
			s.Receipts++
		case silent:
			s.Receipts++
		case unsent:
			s.CutShort = true
		}
	}
	s.Reference, s.Hold, s.Segments = strings.Join(ids, " "), time.Hour, s.Receipts
	if l.mute {
		s.Await, s.Hold = 0, 0
	}
	if !l.known() {
		s.Outcome, s.State, s.Hold = provider.Unknown, ledger.Unknown, 0
		s.Ambiguity = &ledger.Ambiguity{
			Key: "k", Step: ledger.AwaitReceipt, Until: time.Now().Add(time.Hour),
			NextAt: time.Now().Add(time.Hour), Partly: len(ids) > 0,
		}
	}
	return s
}

// rule resolves the ambiguity, and reports whether there was one to resolve.
func (l *life) rule(
	t *testing.T, on *ledger.Ledger, m ledger.Message, names []string, d *deed,
) bool {
	t.Helper()
	ambiguity, err := on.Ambiguities.Of(t.Context(), m.ID, 0)
	if errors.Is(err, ledger.ErrNotAmbiguous) || d.verdict == ledger.NotTaken && ambiguity.Partly {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	j := ledger.Resolution{
		Seq: m.Seq, Key: ambiguity.Key, As: d.verdict, Author: "ops",
		Note: "in its log",
	}
	s := expecting(m, ambiguity.Reference)[0]
	s.Await = ambiguity.Await
	switch d.verdict {
	case ledger.Taken:
		if d.part >= 0 {
			s.Reference = strings.TrimSpace(s.Reference + " " + names[d.part])
		}
		j.Settlement = &s
	case ledger.NotTaken:
		s.Outcome, s.State, s.Await, s.Segments, s.PriceMicros = provider.Refused, ledger.Failed, 0,
			0, 0
		j.Settlement = &s
	default:
		j.Move = &ledger.Move{State: ledger.Unknown, Reason: "ambiguous_final"}
	}
	return resolve(t, on, j)
}

// fixedLives once had a wrong result.
var fixedLives = []life{
	{ // an operator says that it was not taken, and then our key proves that it was delivered
		answers: []string{silent}, mute: true,
		deeds: []deed{
			{kind: "settle"}, {kind: "verdict", part: -1, verdict: ledger.NotTaken}, {
				kind: "receipt", keyed: true, state: provider.Delivered,
			},
		},
	},
}

// failing is a test, or a property of rapid.
type failing interface {
	Fatalf(format string, args ...any)
}

// TestAnyOrderOfSettlementAndReceiptsComesToTheSame: receipts are early, late, repeated or
// contradictory, for parts with and without an answer, with and without our key, together with
// resolutions by operators, and handled by two instances in turns. Each state is told once, states
// only advance, and the slot is free once a receipt is final. While the message is accepted some
// row is due, also if the time of its parts ended while other parts were unknown, but none if no
// receipts are expected.
func TestAnyOrderOfSettlementAndReceiptsComesToTheSame(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	url, db := rig.url, rig.db
	ledgers := []*ledger.Ledger{
		connect(t, ledger.Config{URL: url, MaxConns: tier.Size(0, 1)}),
		connect(t, ledger.Config{URL: url, MaxConns: tier.Size(0, 1)}),
	}
	apply(t, ledgers[0], ledger.ChannelSpec{Name: "a", ActiveMax: 5})
	n := 0
	live := func(rt failing, l life) {
		n++
		m := claimAll(t, ledgers[0], []ledger.Message{message(fmt.Sprintf("p-%06d", n))}, "a").
			Messages[0]
		var names []string
		for i := range l.answers {
			names = append(names, fmt.Sprintf("r%d-%d", n, i))
		}
		s := []ledger.Settlement{l.settlement(m, names)}
		said := resolution{part: -1}
		take := func(on *ledger.Ledger, d *deed) {
			r := receipt(names[d.part], d.state)
			if d.keyed {
				r.Seq, r.Attempt = m.Seq, 1
			}
			receive(t, on, r)
		}
		for i := range l.deeds {
			on, d := ledgers[i%2], &l.deeds[i]
			switch d.kind {
			case "settle":
				if i%2 == 1 {
					execute(t, db, ledgertest.StoreOpen) // as a recovery does for the other process
				}
				settleAll(t, on, s)
			case "receipt":
				take(on, d)
			case "look":
				lookSoon(t, db)
				overdue(t, on)
			case "time":
				if scalar[bool](t, db, `select coalesce(outcome, '') = 'unknown'
					from dispatcher.all_attempts where message_seq = $1`, m.Seq) {
					lateForAll(t, db, on)
				}
			case "verdict":
				if l.rule(t, on, m, names, d) {
					said = resolution{d.verdict, d.part}
				}
			}
		}
		lookSoon(t, db)
		overdue(t, ledgers[0])
		if l.expired {
			lateForAll(t, db, ledgers[1])
		}
		state, attempt := model(&l, said)
		check(rt, t, db, m, &l, state, attempt)
		// Settling, receiving and handling everything again changes nothing.
		settleAll(t, ledgers[1], s)
		for i := range l.deeds {
			if d := &l.deeds[i]; d.kind == "receipt" {
				take(ledgers[0], d)
			}
		}
		overdue(t, ledgers[1])
		check(rt, t, db, m, &l, state, attempt)
		execute(t, db, `update dispatcher.channels c set active = 0, freed = (
			select slots from dispatcher.freed_slots f where f.channel = c.channel)`)
		execute(t, db, `update dispatcher.attempts set freed = true`)
	}
	for _, l := range fixedLives {
		live(t, l)
	}
	tier.Check(t, func(rt *rapid.T) { live(rt, drawLife(rt)) })
}

// lookSoon makes the rows due that are due within seconds.
func lookSoon(t testing.TB, db *pgx.Conn) {
	t.Helper()
	execute(t, db, soonDue)
}

// lateForAll makes four days pass, longer than receipts are awaited, and calls Overdue.
func lateForAll(t *testing.T, db *pgx.Conn, l *ledger.Ledger) {
	t.Helper()
	execute(t, db, `update dispatcher.attempts set settled_at = settled_at - interval '4 days'`)
	timeUp(t, db)
	overdue(t, l)
}

// check compares the message with what the model says.
func check(
	rt failing, t *testing.T, db *pgx.Conn, m ledger.Message, l *life, state, attempt string,
) {
	got := scalar[string](t, db, `
		select concat_ws(' ', m.state, '/', a.receipt_state, '/',
		  (a.delivered_at is not null)::text, (m.finished_at is not null)::text)
		from dispatcher.message_states m join dispatcher.all_attempts a on a.message_seq = m.seq
		where m.seq = $1`, m.Seq)
	want := strings.Join(strings.Fields(fmt.Sprint(state, " / ", attempt, " / ",
		attempt == "delivered", " ", state != "accepted")), " ")
	if got != want {
		rt.Fatalf("came to %q, want %q", got, want)
	}
	told := scalar[[]string](t, db, `
		select coalesce(array_agg(split_part(convert_from(u.value, 'UTF8'), ' ', 1)
		order by o.seq), '{}')
		from dispatcher.outbox o, unnest(o.keys, o."values") as u(key, value)
		where u.key = $1`, m.ID)
	order := []string{"accepted", "no_receipt", "undelivered", "delivered"}
	last := -1
	for _, word := range told {
		at := slices.Index(order, word)
		if at <= last {
			rt.Fatalf("told %v", told)
		}
		last = at
	}
	if at := slices.Index(order, state); last > max(at, 0) || at > 0 && last != at {
		rt.Fatalf("told %v of a message that is %s", told, state)
	}
	if watched := scalar[int](t, db,
		`select count(*) from dispatcher.receipts where message_seq = $1 and due_at is not null`,
		m.Seq); state == "accepted" && (watched == 0) != l.mute {
		rt.Fatalf("%d of its rows are going to be looked at again", watched)
	}
	if got := amiss(t, db, always...); got != "" {
		rt.Fatalf("%s", got)
	}
	held := scalar[int](t, db,
		`select active::int from audit.active where channel = 'a'`) > 0
	finals := scalar[int](t, db, `select count(*) from dispatcher.receipts where message_seq = $1
		and state in ('delivered', 'undelivered')`, m.Seq)
	holds := scalar[bool](t, db,
		`select held_until is not null from dispatcher.all_attempts where message_seq = $1`, m.Seq)
	if held != (holds && finals == 0 && state == "accepted") {
		rt.Fatalf("its slot is held: %t, with %d last words, %s", held, finals, state)
	}
}
