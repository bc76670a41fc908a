package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"dispatcher/cmd/dispatcher/internal/audit"
	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/config"
	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
	"dispatcher/ledger/migrations"
	"dispatcher/provider"
	"dispatcher/selector"
)

// lifeChannels are the kinds of channel that a message may be sent by: receipts that name
// references only, receipts that carry our key, a provider that knows keys and can be asked, one
// without receipts, and one on whose route messages go on when no receipt comes. The first two send
// the parts of a text separately.
var lifeChannels = map[string]provider.Capabilities{
	"a": {Receipts: true, PartReceipts: true},
	"b": {Receipts: true, KeyInReceipt: true, PartReceipts: true},
	"c": {Receipts: true, KeyInReceipt: true, SameKeyFor: time.Hour, LookupFor: time.Hour},
	"d": {},
	"e": {Receipts: true, KeyInReceipt: true},
}

// lifeLanes differ in what follows a submission without an answer.
var lifeLanes = map[string]decide.Lane{
	"never": {Lane: config.Lane{
		Clarify:    []string{"same_key", "lookup", "receipt"},
		ClarifyFor: 10 * time.Minute,
	}},
	"once": {Lane: config.Lane{
		Clarify:    []string{"lookup", "same_key", "receipt"},
		ClarifyFor: 10 * time.Minute, Ambiguous: "resend_once",
	}},
	"bare":  {},
	"hasty": {Lane: config.Lane{Ambiguous: "resend_once"}},
	"keyed": {Lane: config.Lane{
		Clarify:    []string{"same_key", "receipt"},
		ClarifyFor: 10 * time.Minute, Ambiguous: "resend_once",
	}},
}

const (
	// lifeAwait is how long receipts are awaited, and shortAwait how long those of channel e are: so
	// short that this may end while a further attempt is in flight.
	lifeAwait  = 72 * time.Hour
	shortAwait = 20 * time.Minute
	// lifeGoesOn is the time after which messages that channel e accepted go on.
	lifeGoesOn = 10 * time.Minute
)

// awaited is how long receipts of a channel are awaited.
func awaited(channel string) time.Duration {
	if channel == "e" {
		return shortAwait
	}
	return lifeAwait
}

// lifeRig is a real ledger with the pipeline's decisions, without its goroutines: the test chooses
// what happens when.
type lifeRig struct {
	d   *Dispatcher
	l   *ledger.Ledger
	sql *pgx.Conn
	n   int
	now *messageLife // the message whose carriers are asked

	verifier *audit.Verifier // verifies the ledger's records, as `audit verify` does
}

func newLifeRig(t *testing.T) *lifeRig {
	t.Helper()
	ctx, url := t.Context(), ledgertest.URL(t)
	l, err := ledger.Connect(ctx, ledger.Config{
		URL: ledgertest.As(migrations.RoleApp, url), Region: "test", Host: "test", MaxConns: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	if err := l.Instances.Register(ctx); err != nil {
		t.Fatal(err)
	}
	rig := &lifeRig{l: l}
	routing := &decide.Routing{Zone: time.UTC, Lanes: map[string]decide.Lane{}}
	for name, lane := range lifeLanes {
		lane.Name, lane.TTL, lane.MaxWaiting = name, time.Hour, 1000
		routing.Lanes[name] = lane
	}
	names := []string{"a", "b", "c", "d", "e"}
	channels := map[string]provider.Channel{}
	spec := ledger.NewRouting{Author: "test", Reason: "test", Document: "{}"}
	for _, name := range names {
		c := decide.Channel{
			Channel: config.Channel{Name: name, Capacity: 100},
			Price:   decide.NewPrice("GBP", decide.PriceList{Default: 30_000}), Account: name,
			AwaitReceipts: awaited(name),
		}
		if name == "a" || name == "b" {
			c.Cut, c.Active = func(string) string {
				return "cut"
			}, config.ActiveLimit{Hold: time.Hour, Until: "receipt"}
		}
		routing.Channels = append(routing.Channels, c)
		spec.Channels = append(spec.Channels, ledger.ChannelSpec{Name: name, ActiveMax: 100})
		channels[name] = &lookupChannel{
			scriptedChannel: &scriptedChannel{answer: accepts},
			can:             lifeChannels[name], find: rig.find,
		}
	}
	for i, first := range names {
		var entries []selector.Entry
		route := decide.Route{Route: config.Route{
			Name:  "to-" + first,
			Match: decide.Match{Tenants: []string{first}}, MaxSegments: 10,
		}}
		for j := range names { // the first choice is certain, the others follow in turn
			if (names[j] == "e") != (first == "e") && (first != "e" || names[j] > "b") {
				continue // e has a route of its own, which goes on to a and b
			}
			weight := "0"
			if j == i {
				weight = "1"
			}
			entries = append(entries, selector.Entry{
				Name:   names[j],
				Weight: selector.MustWeight(weight),
			})
			route.Members = append(route.Members, j)
		}
		if first == "e" {
			route.NoReceipt = &config.NoReceipt{After: lifeGoesOn}
		}
		if route.Table, err = selector.NewTable(entries); err != nil {
			t.Fatal(err)
		}
		routing.Routes = append(routing.Routes, route)
		members := make([]string, len(entries))
		for i := range entries {
			members[i] = entries[i].Name
		}
		spec.Routes = append(spec.Routes, ledger.RouteSpec{Name: route.Name, Members: members})
	}
	if routing.Version, err = l.Routing.Apply(ctx, spec); err != nil {
		t.Fatal(err)
	}
	rig.d, err = New(Config{
		Ledger: l, Keys: testKeys, MaxUnsettled: 500, SendTimeout: 5 * time.Second,
		DeadAfter: time.Minute,
		Metrics:   NewMetrics(prometheus.NewRegistry()), Reload: func(context.Context) error {
			return nil
		},
		Trouble: func(where string, err error) { t.Errorf("%s: %v", where, err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := rig.d.Apply(routing, channels); err != nil {
		t.Fatal(err)
	}
	rig.verifier = audit.NewVerifier(testKeys, func(int64) (audit.Edition, error) {
		return audit.Edition{
			Routing: routing,
			Bounded: map[string]bool{
				"a": true, "b": true, "c": true, "d": true, "e": true,
			},
		}, nil
	})
	rig.sql = observer(t, url)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), tier.LongestWait)
		defer cancel()
		_ = rig.sql.Close(ctx)
		if err := rig.d.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return rig
}

// find is the look-up of a carrier that can be asked.
func (r *lifeRig) find(string) provider.LookupResult {
	m := r.now
	if m.silent {
		return provider.LookupResult{}
	}
	first := m.lastUnknown()
	if first == 0 {
		return provider.LookupResult{}
	}
	if m.took(first) {
		m.history.Findings = append(m.history.Findings, finding{first, ledger.Taken, []int{0}})
		return provider.LookupResult{State: provider.Taken, Reference: m.reference(first, 0)}
	}
	m.history.Findings = append(m.history.Findings, finding{First: first, Verdict: ledger.NotTaken})
	return provider.LookupResult{State: provider.NotTaken}
}

// failing is a *testing.T or a *rapid.T.
type failing interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
	Logf(format string, args ...any)
}

// messageLife is one message, the attempts that processes hold of it, and its carriers.
type messageLife struct {
	t       failing
	ctx     context.Context
	rig     *lifeRig
	id      string
	seq     int64
	history history
	held    []*heldAttempt        // by processes that have not settled them
	silent  bool                  // carriers do not answer look-ups
	again   string                // what carriers answer after the script
	clock   time.Duration         // how much time has passed
	since   map[int]time.Duration // when a submission was known to be accepted
	log     []string
}

// heldAttempt is an attempt whose answer its process has not stored.
type heldAttempt struct {
	flight *openAttempt
	result *provider.Result // nil before it left
	over   bool             // its lease has ended: no byte leaves any more
}

// begin stores a message and claims it.
func (r *lifeRig) begin(ctx context.Context, t failing, lane, first string,
	segments int,
) *messageLife {
	r.n++
	m := &messageLife{
		t: t, ctx: ctx, rig: r, id: fmt.Sprintf("life-%06d", r.n), again: "yes",
		since: map[int]time.Duration{},
	}
	r.now = m
	m.history.Lane, m.history.Expects = lifeLanes[lane],
		map[string]bool{"a": true, "b": true, "c": true, "e": true}
	text := "Your code is 123456"
	if segments == 2 {
		text = strings.Repeat("0123456789", 20)
	}
	message := envelope.Message{
		ID: m.id, To: "+447700900123", Text: text, Tenant: first,
		Metadata: map[string]string{"at": `,"at":"`},
	}
	m.claim([]decide.Job{{
		Lane: lane, Produced: time.Now(), Message: message,
		Raw: message.Append(nil), Origin: decide.Origin{Topic: "sms." + lane},
	}}, 0)
	m.seq = queryLife[int64](m, `select seq from dispatcher.messages where id = $1`, m.id)
	return m
}

// row is the message's row and the last event.
type row struct {
	state, reason string
	attempts      int
	flagged       bool
	events        int
	last          string // the state of the last event
}

func (m *messageLife) row() (r row) {
	m.t.Helper()
	err := m.rig.sql.QueryRow(m.ctx, `
		select m.state, coalesce(m.reason, ''), m.attempts, m.possible_duplicate, count(u.value),
		  coalesce((array_agg(u.value order by u.place, u.nr))[count(u.value)], '')
		from dispatcher.message_states m left join (
		  select o.seq as place, u.nr, u.key,
		    convert_from(u.value, 'UTF8')::jsonb ->> 'state' as value
		  from dispatcher.outbox o, unnest(o.keys, o."values") with ordinality as u(key, value, nr)
		  where o.kind = 'status') u on u.key = m.id
		where m.seq = $1 group by 1, 2, 3, 4`, m.seq).Scan(&r.state, &r.reason, &r.attempts, &r.flagged,
		&r.events, &r.last)
	if err != nil {
		m.t.Fatalf("%v\n%s", err, m.trace())
	}
	return r
}

// step runs one transaction of the ledger, and checks its events and the state of the message.
func (m *messageLife) step(what string, do func()) {
	m.t.Helper()
	was := m.row()
	do()
	is := m.row()
	events := is.events - was.events
	reported := is.last
	is.events, is.last, was.events, was.last = 0, "", 0, ""
	switch {
	case events > 0 && is == was:
		m.t.Fatalf("%s published %q although nothing moved\n%s", what, reported, m.trace())
	case events > 0 && reported != is.state:
		m.t.Fatalf("%s published %q of a message that is %s\n%s", what, reported, is.state, m.trace())
	case is.state == string(ledger.NoReceipt) && was.state != is.state && !m.waited():
		m.t.Fatalf("%s: no receipt came, before its time was over\n%s", what, m.trace())
	case is.state == string(ledger.NoReceipt) && was.state != is.state && m.inFlight():
		m.t.Fatalf("%s: no receipt came, while an attempt is in flight\n%s", what, m.trace())
	}
	m.learn()
}

// learn records when submissions became known as accepted.
func (m *messageLife) learn() {
	for _, s := range m.history.submissions() {
		if _, ok := m.since[s.first]; !ok && s.known == provider.Accepted {
			m.since[s.first] = m.clock
		}
	}
}

// waited reports whether the time in which receipts of a submission are expected has ended, counted
// from when it was known to be accepted.
func (m *messageLife) waited() bool {
	for first, since := range m.since {
		if m.clock-since >= awaited(m.facts(first).Channel)-time.Minute {
			return true
		}
	}
	return false
}

// inFlight reports whether a process holds an attempt that nobody has settled.
func (m *messageLife) inFlight() bool {
	return slices.ContainsFunc(m.held, func(h *heldAttempt) bool {
		facts := m.facts(h.flight.Submission.Attempt)
		return facts.Answer == nil && !facts.Lost
	})
}

func queryLife[T any](m *messageLife, sql string, args ...any) (v T) {
	m.t.Helper()
	if err := m.rig.sql.QueryRow(m.ctx, sql, args...).Scan(&v); err != nil {
		m.t.Fatalf("%s: %v\n%s", sql, err, m.trace())
	}
	return v
}

func (m *messageLife) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatalf("%v\n%s", err, m.trace())
	}
}

// trace returns the steps so far.
func (m *messageLife) trace() string {
	return strings.Join(m.log[:min(len(m.log), 40)], "; ")
}

// claim is Dispatcher.claim without slots, and without launching the attempts.
func (m *messageLife) claim(jobs []decide.Job, due int) {
	d := m.rig.d
	routing := d.routing.Load()
	plan := decide.NewPlan(routing, d.cfg.Keys, d.now(), jobs)
	c := &claim{
		plan: plan, unready: make([]string, len(routing.Channels)), slots: d.slots,
		request: plan.Request(due, d.neededScopes.open(time.Now())),
	}
	if m.seq == 0 {
		m.must(d.claim(m.ctx, c))
	} else {
		m.step("claim", func() { m.must(d.claim(m.ctx, c)) })
	}
	d.complete(c)
	for _, f := range c.attempts {
		if f.Submission.ID != m.id {
			continue
		}
		m.log = append(m.log, fmt.Sprintf("[attempt %d on %s]", f.Submission.Attempt, f.Channel))
		further := queryLife[string](m, `select a.reason from dispatcher.all_attempts a
			join dispatcher.messages m on m.seq = a.message_seq and m.attempts = a.attempt
			where m.id = $1`, m.id) == string(ledger.ByNoReceipt)
		if !further && queryLife[bool](m,
			`select exists (select
			from dispatcher.all_attempts a join dispatcher.messages m on m.seq = a.message_seq
			where m.id = $1 and a.outcome = 'accepted')`, m.id) {
			m.t.Fatalf("it is sent again although an attempt is accepted\n%s", m.trace())
		}
		known := func(s submission) bool { return s.known == provider.Accepted }
		if !further && !f.Repeats() && slices.ContainsFunc(m.history.submissions(), known) {
			m.t.Fatalf("it is sent again although an earlier submission is known to be taken\n%s",
				m.trace())
		}
		first := f.Submission.Attempt
		for i, a := range m.history.Attempts {
			if f.Repeats() && f.Submission.Key == d.keys.Key(f.Seq, a.Number) {
				first = m.history.Attempts[i].First
			}
		}
		parts := []int{0}
		if apart(f.Channel) {
			parts = f.Submission.Parts
			if len(parts) == 0 {
				for i := 1; i < f.Segments; i++ {
					parts = append([]int{}, append(parts, i)...)
				}
				parts = append([]int{0}, parts...)
			}
		}
		m.history.Attempts = append(m.history.Attempts,
			attemptFacts{
				Number: f.Submission.Attempt, Channel: f.Channel, First: first,
				Parts: parts, Further: further,
			})
		m.held = append(m.held, &heldAttempt{flight: f})
	}
}

// apart reports whether a channel sends the parts of a text separately.
func apart(channel string) bool { return lifeChannels[channel].PartReceipts }

func (m *messageLife) facts(number int) *attemptFacts { return &m.history.Attempts[number-1] }

// took reports whether the carrier has accepted any part of a submission.
func (m *messageLife) took(first int) bool {
	return slices.ContainsFunc(m.history.Attempts, func(a attemptFacts) bool {
		return a.First == first && len(a.Taken) > 0
	})
}

func (m *messageLife) reference(first, part int) string {
	return fmt.Sprintf("%s-%d-%d", m.id, first, part)
}

// lastUnknown returns the last unknown submission; 0 for none.
func (m *messageLife) lastUnknown() int {
	all := m.history.submissions()
	for i := range slices.Backward(all) {
		if all[i].known == provider.Unknown {
			return all[i].first
		}
	}
	return 0
}

// submit sends the first attempt that has not left, and answers each part: yes, no (the message is
// at fault), busy, slow, lost (accepted, and the answer is lost) or void (lost on the way).
func (m *messageLife) submit(answers ...string) *heldAttempt {
	at := slices.IndexFunc(m.held, func(h *heldAttempt) bool { return h.result == nil && !h.over })
	if at < 0 {
		return nil
	}
	h := m.held[at]
	a, facts := h.flight, m.facts(h.flight.Submission.Attempt)
	outcomes := map[string]provider.Outcome{
		"yes": provider.Accepted, "no": provider.Rejected, "busy": provider.Refused,
		"slow": provider.Throttled, "lost": provider.Unknown, "void": provider.Unknown,
	}
	result := &provider.Result{}
	worst := provider.Accepted
	for i, part := range facts.Parts {
		answer := answers[i%len(answers)]
		known := m.took(facts.First) && facts.First != facts.Number
		if known && answer == "no" {
			answer = "yes" // the provider knows the key
		}
		o := outcomes[answer]
		if (answer == "yes" || answer == "lost") && !known {
			facts.Taken = append(facts.Taken, part)
		}
		p := provider.Part{Index: part, Outcome: o}
		if o == provider.Accepted {
			p.Reference = m.reference(facts.First, part)
		}
		result.Parts = append(result.Parts, p)
		switch {
		case o == provider.Unknown, worst == provider.Accepted:
			worst = o
		case worst == provider.Unknown:
		case o == provider.Rejected:
			worst = o
		}
	}
	result.Outcome, result.Code, result.Cut = worst, worst.String(), "cut"
	if !apart(a.Channel) || a.Segments == 1 {
		result.Reference, result.Parts = result.Parts[0].Reference, nil
	}
	h.result = result
	return h
}

// settle stores the answer of a held attempt, as the settler does. An attempt that did not leave in
// time never leaves.
func (m *messageLife) settle(h *heldAttempt) {
	m.held = slices.DeleteFunc(m.held, func(other *heldAttempt) bool { return other == h })
	result := h.result
	if result == nil {
		r := decide.NotSent(decide.CodeStale)
		result = &r
	}
	facts := m.facts(h.flight.Submission.Attempt)
	stored := &answerFacts{Outcome: result.Outcome}
	for _, p := range result.Parts {
		if p.Outcome == provider.Accepted {
			stored.Named = append(stored.Named, p.Index)
		}
		if p.Outcome != provider.Accepted && p.Outcome != provider.Unknown {
			stored.Denied = append(stored.Denied, p.Index)
		}
	}
	if result.Reference != "" {
		stored.Named = facts.Parts
	}
	facts.Answer = stored
	if result.Outcome == provider.Unknown {
		m.must(m.rig.d.lookForReceipts(m.ctx, h.flight.Attempt))
	}
	now := m.rig.d.now()
	s := decide.Settle(h.flight.Attempt, result, now)
	m.step("settle", func() { m.must(m.rig.l.Settlements.Settle(m.ctx, []ledger.Settlement{s})) })
}

// wake settles everything that processes hold.
func (m *messageLife) wake() bool {
	held := slices.Clone(m.held)
	for _, h := range held {
		m.settle(h)
	}
	return len(held) > 0
}

// recover declares all unsettled attempts lost, as another process does.
func (m *messageLife) recover() bool {
	r, err := m.rig.l.Messages.Record(m.ctx, m.id)
	m.must(err)
	any := false
	for _, h := range m.held {
		at := h.flight.Submission.Attempt - 1
		if h.over = true; r.Attempts[at].Outcome != "" {
			continue
		}
		any = true
		m.facts(at + 1).Lost = true
		a := m.rig.d.recorded(&r.Message, &r.Attempts[at].Attempt, r.Attempts[at].ClaimedAt,
			m.rig.d.cfg.Keys[0].ID())
		m.must(m.rig.d.lookForReceipts(m.ctx, a))
		lost := decide.SettleLost(a, m.rig.d.now())
		m.step("recover", func() {
			m.must(m.rig.l.Settlements.Settle(m.ctx, []ledger.Settlement{lost}))
		})
	}
	return any
}

// receipt sends a receipt of the carrier for an accepted part of a submission: by reference, by
// key, or both.
func (m *messageLife) receipt(number, part int, by string, state provider.ReceiptState) bool {
	if number > len(m.history.Attempts) {
		return false
	}
	facts := m.facts(number)
	can := lifeChannels[facts.Channel]
	taken := facts.First == number &&
		slices.ContainsFunc(m.history.Attempts, func(a attemptFacts) bool {
			return a.First == number && slices.Contains(a.Taken, part)
		})
	if !taken || !can.Receipts || by != "reference" && !can.KeyInReceipt {
		return false
	}
	if by == "key" && len(facts.Parts) > 1 {
		by = "both" // without a reference the part would not be known
	}
	r := ledger.Receipt{Channel: facts.Channel, State: state, Code: state.String(), At: time.Now()}
	if by != "key" {
		r.Reference = m.reference(number, part)
	}
	if by != "reference" {
		r.Seq, r.Attempt = m.seq, number
	}
	m.step("receipt", func() {
		_, err := m.rig.l.Receipts.Receive(m.ctx, []ledger.Receipt{r}, m.compose)
		m.must(err)
	})
	m.history.Receipts = append(m.history.Receipts,
		partReceipt{
			First: number, Part: part, ByKey: by != "reference", ByReference: by != "key",
			AfterLost: facts.Lost && facts.Answer == nil, State: state,
		})
	m.learn()
	return true
}

func (m *messageLife) compose(c *ledger.Closing) *ledger.Notice {
	status := envelope.Status{
		ID: c.ID, State: string(c.State), At: c.At, Lane: c.Lane, Channel: c.Channel,
		Attempt: c.Attempt, PossibleDuplicate: c.PossibleDuplicate,
	}
	return &ledger.Notice{Kind: ledger.Status, Key: c.ID, Value: envelope.AppendStatus(nil, status)}
}

// operator settles unknown submissions: by the carrier's log, or as final.
func (m *messageLife) operator(final bool) bool {
	o, err := m.rig.l.Ambiguities.Of(m.ctx, m.id, 0)
	if err != nil {
		return false
	}
	verdict, reference := ledger.NotTaken, ""
	switch {
	case final:
		verdict = ledger.Unresolved
	case m.took(o.First):
		verdict = ledger.Taken
		facts := m.facts(o.First)
		for _, part := range facts.Parts {
			if m.takes(o.First, part) && !strings.Contains(o.Reference,
				m.reference(o.First, part)) {
				reference += " " + m.reference(o.First, part)
			}
		}
	case o.Partly:
		return false
	}
	r := decide.Resolve(&o, verdict, decide.CodeOperator, strings.TrimSpace(reference),
		m.rig.d.now())
	r.Author, r.Note = "ops", "in its log"
	var ended bool
	m.step("operator", func() {
		ended, err = m.rig.l.Ambiguities.Resolve(m.ctx, r)
		m.must(err)
	})
	if ended && !final {
		v := finding{First: o.First, Verdict: verdict}
		if verdict == ledger.Taken {
			v.Named = m.facts(o.First).Parts
		}
		m.history.Findings = append(m.history.Findings, v)
		m.learn()
	}
	return ended
}

func (m *messageLife) takes(first, part int) bool {
	return slices.ContainsFunc(m.history.Attempts, func(a attemptFacts) bool {
		return a.First == first && slices.Contains(a.Taken, part)
	})
}

// pass makes everything of the message older.
func (m *messageLife) pass(by time.Duration) {
	m.clock += max(by, 0)
	if by > 2*time.Hour {
		m.recover() // no process holds an attempt for that long
	}
	if _, err := m.rig.sql.Exec(m.ctx, ledgertest.StoreOpen); err != nil {
		m.must(err)
	}
	for _, sql := range []string{
		`update dispatcher.messages set received_at = received_at - $2::interval, expires_at = ` +
			`expires_at - $2::interval, next_at = next_at - $2::interval, same_key_until = ` +
			`same_key_until - $2::interval where seq = $1`,
		`update dispatcher.attempts set claimed_at = claimed_at - $2::interval, settled_at = ` +
			`settled_at - $2::interval, held_until = held_until - $2::interval where message_seq ` +
			`= $1`,
		`update dispatcher.attempts set ranking = jsonb_set(ranking, '{latest}', ` +
			`to_jsonb((ranking ->> 'latest')::bigint - (extract(epoch from $2::interval) * ` +
			`1e6)::bigint)) where message_seq = $1 and ranking ? 'latest'`,
		`update dispatcher.messages set seen = jsonb_set(seen, '{latest}', to_jsonb((seen ->> ` +
			`'latest')::bigint - (extract(epoch from $2::interval) * 1e6)::bigint)) where seq = ` +
			`$1 and seen ? 'latest'`,
		`update dispatcher.ambiguous set until = until - $2::interval, next_at = next_at - ` +
			`$2::interval, opened_at = opened_at - $2::interval where message_seq = $1`,
		`update dispatcher.awaited set due_at = due_at - $2::interval where $1 = any(seqs)`,
		`update dispatcher.receipts set due_at = due_at - $2::interval, look_at = look_at - ` +
			`$2::interval, received_at = received_at - $2::interval where message_seq = $1 or ` +
			`channel || reference like '_' || (select id from dispatcher.messages where seq = $1) || '%'`,
	} {
		if _, err := m.rig.sql.Exec(m.ctx, sql, m.seq, by); err != nil {
			m.must(err)
		}
	}
	for _, h := range m.held {
		a := h.flight
		a.Expires, a.claimed, a.Search.Begun = a.Expires.Add(-by), a.claimed.Add(-by),
			a.Search.Begun.Add(-by)
		if a.Repeats() {
			a.RepeatUntil = a.RepeatUntil.Add(-by)
		}
		if by > 10*time.Second {
			h.over = h.over || h.result == nil
		}
	}
}

// nextDue returns how many seconds from now something of the message becomes due; false for never.
func (m *messageLife) nextDue() (time.Duration, bool) {
	var at *float64
	m.must(m.rig.sql.QueryRow(m.ctx, `
		select extract(epoch from min(at) - now())::float8 from (
		  select next_at as at from dispatcher.messages where seq = $1
		  union all select next_at from dispatcher.ambiguous where message_seq = $1
		  union all select due_at from dispatcher.receipts where message_seq = $1) s`,
		m.seq).Scan(&at))
	if at == nil {
		return 0, false
	}
	return time.Duration(*at * float64(time.Second)), true
}

// runDue processes everything that is due: waiting messages, ambiguous ones and receipts.
func (m *messageLife) runDue() {
	m.search()
	m.claim(nil, 10)
	m.sweep()
}

func (m *messageLife) search() {
	m.step("search", func() { m.must(m.rig.d.resolveAmbiguities(m.ctx)) })
}

// sweep processes receipts. It may be the first to find that a receipt proves an attempt which was
// declared lost after the receipt came.
func (m *messageLife) sweep() {
	m.step("sweep", func() {
		_, err := m.rig.l.Receipts.Overdue(m.ctx, 100, m.compose)
		m.must(err)
	})
	for i := range m.history.Receipts {
		r := &m.history.Receipts[i]
		if facts := m.facts(r.First); r.ByKey && facts.Lost && facts.Answer == nil {
			r.AfterLost = r.AfterLost || queryLife[bool](m, `
				select coalesce(proved, false) from dispatcher.all_attempts
				where message_seq = $1 and attempt = `+fmt.Sprint(r.First), m.seq)
		}
	}
}

// due lets time pass until something is due, and processes it.
func (m *messageLife) due() bool {
	wait, ok := m.nextDue()
	if !ok {
		return false
	}
	if wait > -time.Millisecond {
		m.pass(wait + 10*time.Millisecond)
	}
	m.runDue()
	return true
}

// end settles all attempts and processes everything that becomes due, until nothing is left.
func (m *messageLife) end() {
	for round := range 100 {
		if round == 12 { // carriers that never accept it: let the deadline pass
			m.pass(time.Hour)
		}
		for m.submit(m.again) != nil { // all that have not left
		}
		m.wake()
		if len(m.held) == 0 && !m.due() {
			return
		}
	}
	m.t.Fatalf("rows stay due for ever: %s", m.trace())
}

// events returns the published events of the message in order.
func (m *messageLife) events() (all []ledger.Notice) {
	for {
		n, err := m.rig.l.Outbox.Publish(m.ctx, 1000,
			func(_ context.Context, notices []ledger.Notice) error {
				for _, one := range notices {
					if one.Key == m.id && one.Kind == ledger.Status {
						all = append(all, one)
					}
				}
				return nil
			})
		m.must(err)
		if n == 0 {
			return all
		}
	}
}

// event is a status event.
type event struct {
	State             string
	PossibleDuplicate bool `json:"possible_duplicate"`
}

func eventOf(n *ledger.Notice) (e event) {
	_ = json.Unmarshal(n.Value, &e)
	return e
}

// violations returns the invariants that do not hold for the message. The one about the times of
// claims and versions is left out: pass changes the times of claims, not those of versions.
func (m *messageLife) violations() (found []string) {
	m.t.Helper()
	scope := ledger.ScopeOf(ledger.DayOf(m.seq), ledger.DayOf(m.seq), time.Hour)
	scope.First, scope.Next = m.seq, m.seq+1
	for i := range ledger.Invariants {
		one := &ledger.Invariants[i]
		if one.Name == "claims_follow_the_version" {
			continue
		}
		rows, err := m.rig.sql.Query(m.ctx, one.SQL(&scope), pgx.QueryExecModeExec)
		m.must(err)
		details, err := pgx.CollectRows(rows, pgx.RowTo[string])
		m.must(err)
		found = append(found, details...)
	}
	return found
}

// check compares the ledger with the oracle.
func (m *messageLife) check() {
	m.t.Helper()
	r, err := m.rig.l.Messages.Record(m.ctx, m.id)
	m.must(err)
	wrong := func(format string, args ...any) {
		m.t.Helper()
		m.t.Fatalf("%s\n%s\nledger: %s", fmt.Sprintf(format, args...), m.trace(), m.stored(&r))
	}
	if want := m.history.ends(); !slices.Contains(want, r.Message.State) {
		wrong("it is %s %s, and should be %v", r.Message.State, r.Message.Reason, want)
	}
	if r.Message.State == ledger.Unknown && r.Message.Reason != decide.ReasonAmbiguous {
		wrong("it is unknown for the reason %q", r.Message.Reason)
	}
	must, may := m.history.flags()
	if r.Message.PossibleDuplicate && !may || must && !r.Message.PossibleDuplicate {
		wrong("flagged as possible duplicate: %t; it must be: %t, it may be: %t",
			r.Message.PossibleDuplicate, must, may)
	}
	for _, s := range m.history.submissions() {
		m.checkSubmission(&s, &r, wrong)
	}
	if n := queryLife[int64](m, `select sum(active)::bigint from audit.active`); n != 0 {
		_, err := m.rig.l.Settlements.ReleaseSlots(m.ctx, time.Hour)
		m.must(err)
		if n := queryLife[int64](m, `select sum(active)::bigint from audit.active`); n != 0 {
			wrong("%d slots are not given back", n)
		}
	}
	if found := m.violations(); len(found) > 0 {
		wrong("these invariants do not hold: %v", found)
	}
	mismatches, err := m.rig.verifier.Verify(&r)
	m.must(err)
	if len(mismatches) > 0 {
		wrong("the audit finds %+v", mismatches)
	}
	events := m.events()
	for i := range events {
		if i > 0 && (events[i].Seq <= events[i-1].Seq || events[i].At.Before(events[i-1].At)) {
			wrong("event %d has seq %d at %s after seq %d at %s", i, events[i].Seq, events[i].At,
				events[i-1].Seq, events[i-1].At)
		}
	}
	var reported []event
	for i := range events {
		reported = append(reported, eventOf(&events[i]))
	}
	if is := (event{string(r.Message.State), r.Message.PossibleDuplicate}); len(reported) == 0 ||
		reported[len(reported)-1] != is {
		wrong("it is %v, and its events were %v", is, reported)
	}
}

// checkSubmission compares the attempts of one submission: its outcome, the state of its receipts
// and what is billed.
func (m *messageLife) checkSubmission(s *submission, r *ledger.Record, wrong func(string, ...any)) {
	segments, accepted, denied := 0, false, true
	for _, a := range m.history.Attempts {
		if a.First != s.first {
			continue
		}
		one := &r.Attempts[a.Number-1]
		if !one.ContradictedAt.IsZero() {
			wrong("a receipt contradicts the answer to attempt %d", a.Number)
		}
		segments += one.Segments
		if one.PriceMicros != int64(one.Segments)*30_000 {
			wrong("attempt %d costs %d for %d segments", a.Number, one.PriceMicros, one.Segments)
		}
		accepted = accepted || one.Outcome == provider.Accepted.String()
		denied = (denied || s.repeats) && one.Outcome != provider.Unknown.String() &&
			one.Outcome != provider.Accepted.String()
	}
	switch s.known {
	case provider.Accepted:
		if !accepted {
			wrong("the submission of attempt %d is known to be accepted and no attempt is", s.first)
		}
	case provider.Unknown:
		if accepted || denied {
			wrong("nobody knows of the submission of attempt %d; accepted: %t, denied: %t", s.first,
				accepted, denied)
		}
	default:
		if !denied {
			wrong("the submission of attempt %d is known not to be taken", s.first)
		}
	}
	per := 1
	if !apart(s.channel) {
		per = r.Message.Plan.Segments // one part stands for all
	}
	if least, most := m.history.billed(s); segments < least*per || segments > most*per {
		wrong("%d segments are billed for the submission of attempt %d, and should be %d to %d",
			segments, s.first, least*per, most*per)
	}
}

// stored describes the ledger's record.
func (m *messageLife) stored(r *ledger.Record) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %q flagged %t", r.Message.State, r.Message.Reason,
		r.Message.PossibleDuplicate)
	for i := range r.Attempts {
		a := &r.Attempts[i]
		fmt.Fprintf(&b, "; %d on %s: %s (%s) %d segments, %s, ref %q", a.Number, a.Channel,
			a.Outcome, a.Code, a.Segments, a.Receipt, a.Reference)
	}
	for i := range r.Ambiguities {
		d := &r.Ambiguities[i]
		fmt.Fprintf(&b, "; ambiguous %d to %d: %s %s", d.Attempt, d.Last, d.Step, d.ResolvedAs)
	}
	return b.String()
}
