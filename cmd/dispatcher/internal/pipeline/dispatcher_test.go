package pipeline

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/config"
	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest/lent"
	"dispatcher/ledger/migrations"
	"dispatcher/provider"
	"dispatcher/selector"
)

// scriptedChannel answers as its script says and logs every submit.
type scriptedChannel struct {
	answer func(s provider.Submission) provider.Result

	mu     sync.Mutex
	log    []provider.Submission // guarded by mu
	closed bool                  // guarded by mu
}

func (c *scriptedChannel) Send(_ context.Context, s provider.Submission) provider.Result {
	c.mu.Lock()
	c.log = append(c.log, s)
	c.mu.Unlock()
	return c.answer(s)
}

func (c *scriptedChannel) Ready() (bool, string) { return true, "" }

func (c *scriptedChannel) Close(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	return nil
}

func (c *scriptedChannel) submits() []provider.Submission {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]provider.Submission(nil), c.log...)
}

func accepts(s provider.Submission) provider.Result {
	return provider.Result{Outcome: provider.Accepted, Reference: "ref-" + s.ID}
}

func always(o provider.Outcome) func(provider.Submission) provider.Result {
	return func(provider.Submission) provider.Result {
		return provider.Result{Outcome: o, Code: "scripted"}
	}
}

// pipeline is a dispatcher with a real ledger and scripted channels.
type pipeline struct {
	*Dispatcher
	ledger   *ledger.Ledger
	routing  *decide.Routing
	channels map[string]*scriptedChannel
	sql      *pgx.Conn
	stop     func()
	received numbersReceived
}

// numbersReceived counts the calls of Config.Received.
type numbersReceived struct {
	mu  sync.Mutex
	all map[string]int // guarded by mu; by number
}

func (n *numbersReceived) add(number string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.all == nil {
		n.all = map[string]int{}
	}
	n.all[number]++
}

// setup starts a pipeline over channels a, b and c at 25/15/60 that accept everything.
func setup(t *testing.T, change func(*decide.Routing)) *pipeline {
	t.Helper()
	return setupScored(t, change, nil)
}

// setupScored is setup with a scorer.
func setupScored(t *testing.T, change func(*decide.Routing), scorer Scorer) *pipeline {
	t.Helper()
	ctx := t.Context()
	l, url := lent.Ledger(t, ledger.Config{
		URL: migrations.RoleApp, Region: "test", Host: "test", MaxConns: 2,
	})
	if err := l.Instances.Register(ctx); err != nil {
		t.Fatal(err)
	}
	p := &pipeline{ledger: l, routing: testRouting(t), channels: map[string]*scriptedChannel{}}
	for i := range p.routing.Channels {
		p.routing.Channels[i].Concurrency = 100 // as adapters have it by default
	}
	if change != nil {
		change(p.routing)
	}
	p.routing.Version = p.applyRouting(t, nil)
	var err error
	p.Dispatcher, err = New(Config{
		Ledger: l, Keys: testKeys, Scorer: scorer, MaxUnsettled: 500, SendTimeout: 5 * time.Second,
		DeadAfter: time.Minute, Received: p.received.add,
		Metrics: NewMetrics(prometheus.NewRegistry()),
		Trouble: func(where string, err error) { t.Logf("%s: %v", where, err) },
		Reload: func(context.Context) error {
			next := *p.routing
			next.Version++
			return p.Apply(&next, nil)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	connected := map[string]provider.Channel{}
	for _, c := range p.routing.Channels {
		p.channels[c.Name] = &scriptedChannel{answer: accepts}
		connected[c.Name] = p.channels[c.Name]
	}
	if err := p.Apply(p.routing, connected); err != nil {
		t.Fatal(err)
	}
	p.run(t)
	p.sql = observer(t, url)
	t.Cleanup(func() { _ = p.sql.Close(context.WithoutCancel(ctx)) })
	return p
}

// observer is a connection for what the test asks again and again. Its statements are planned once:
// to plan one for the partitions of all days takes longer than to run it.
func observer(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	config.RuntimeParams["plan_cache_mode"] = "force_generic_plan"
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// run starts the background work; stop ends everything in order.
func (p *pipeline) run(t *testing.T) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() { p.Run(ctx); close(done) }()
	p.stop = sync.OnceFunc(func() {
		cancel()
		<-done
		ctx, end := context.WithTimeout(context.WithoutCancel(t.Context()), tier.LongestWait)
		defer end()
		if err := p.Stop(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	t.Cleanup(p.stop)
}

func (p *pipeline) applyRouting(t *testing.T, limits []admission.Limit) int64 {
	t.Helper()
	n := ledger.NewRouting{Author: "test", Reason: "test", Document: "{}"}
	for _, c := range p.routing.Channels {
		n.Channels = append(n.Channels, ledger.ChannelSpec{Name: c.Name, Limits: limits})
	}
	for _, r := range p.routing.Routes {
		spec := ledger.RouteSpec{Name: r.Name}
		for _, m := range r.Members {
			spec.Members = append(spec.Members, p.routing.Channels[m].Name)
		}
		n.Routes = append(n.Routes, spec)
	}
	version, err := p.ledger.Routing.Apply(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return version
}

// jobsNamed returns n records with the ids prefix-0, prefix-1, ...
func jobsNamed(prefix string, n int) []decide.Job {
	jobs := make([]decide.Job, n)
	for i := range jobs {
		m := envelope.Message{
			ID: fmt.Sprintf("%s-%d", prefix, i), To: "+447700900123",
			Text: "Your code is 123456",
		}
		jobs[i] = decide.Job{
			Lane: "bulk", Produced: time.Now(), Message: m, Raw: m.Append(nil),
			Origin: decide.Origin{Topic: "sms.bulk", Offset: int64(i)},
		}
	}
	return jobs
}

// forLater schedules records so far ahead that they do not become due during a test, however busy
// the machine is; see comeDue.
func forLater(jobs []decide.Job) []decide.Job {
	for i := range jobs {
		jobs[i].Message.SendAt = time.Now().Add(time.Hour).UTC().Truncate(time.Second)
		jobs[i].Raw = jobs[i].Message.Append(nil)
	}
	return jobs
}

// comeDue makes all scheduled messages due, in the order in which they came.
func (p *pipeline) comeDue(t *testing.T) {
	t.Helper()
	const sql = `update dispatcher.messages set next_at = now() - interval '1 minute' + ` +
		`(seq - dispatcher.first_of(dispatcher.day_of(seq))) * interval '1 microsecond' ` +
		`where state = 'scheduled'`
	if tag, err := p.sql.Exec(t.Context(), sql); err != nil || tag.RowsAffected() == 0 {
		t.Fatal(tag, err)
	}
}

func (p *pipeline) handle(t *testing.T, jobs []decide.Job) {
	t.Helper()
	if err := p.Handle(t.Context(), jobs, nil); err != nil {
		t.Fatal(err)
	}
}

// counts runs a query of (text, bigint) rows.
func (p *pipeline) counts(t *testing.T, sql string) map[string]int64 {
	t.Helper()
	rows, err := p.sql.Query(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	out, key, n := map[string]int64{}, "", int64(0)
	if _, err := pgx.ForEachRow(rows, []any{&key, &n}, func() error {
		out[key] = n
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

const (
	byState   = `select state, count(*) from audit.messages group by 1`
	byOutcome = `select coalesce(outcome, 'pending'), count(*) from audit.attempts group by 1`
)

// eventually waits until the query returns want.
func (p *pipeline) eventually(t *testing.T, sql string, want map[string]int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), tier.LongestWait)
	defer cancel()
	for {
		began := time.Now()
		got := p.counts(t, sql)
		if cmp.Equal(got, want) {
			return
		}
		// After a slow look it waits longer, so that most of the time is left to the pipeline.
		if !ledger.Pause(ctx, max(20*time.Millisecond, 4*time.Since(began))) {
			t.Fatalf("%s gave %v, want %v", sql, got, want)
		}
	}
}

func TestEveryMessageIsSentOnceToItsFirstChoice(t *testing.T) {
	t.Parallel()
	p := setup(t, nil)
	p.handle(t, jobsNamed("m", 1200))
	p.eventually(t, byState, map[string]int64{"accepted": 1200})
	seen := map[string]int{}
	for name, c := range p.channels {
		for _, s := range c.submits() {
			seen[s.ID]++
			table, draw := p.routing.Routes[0].Table,
				selector.NewDrawer(selector.Key{1}).Draw(s.ID, 1, 100)
			if first := table.Entry(table.Pick(draw)).Name; first != name {
				t.Errorf("message %s: got channel %s, its draw picked %s", s.ID, name, first)
			}
		}
	}
	if len(seen) != 1200 {
		t.Errorf("%d of 1200 ids were submitted", len(seen))
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("%s was submitted %d times", id, n)
		}
	}
	p.eventually(t, `select channel, active from audit.active`,
		map[string]int64{"a": 0, "b": 0, "c": 0})
}

func TestRedeliveredRecordIsDroppedAndChangedOneIsAConflict(t *testing.T) {
	t.Parallel()
	p := setup(t, nil)
	jobs := jobsNamed("m", 10)
	p.handle(t, jobs)
	changed := jobsNamed("m", 3)
	for i := range changed {
		changed[i].Message.Text = "something else"
		changed[i].Raw = changed[i].Message.Append(nil)
	}
	p.handle(t, append(append(jobs, jobs[:5]...), changed...))
	p.eventually(t, byState, map[string]int64{"accepted": 10})
	p.eventually(t, `select kind, sum(cardinality(keys)) from dispatcher.outbox group by 1`,
		map[string]int64{"status": 23, "dead": 3})
}

func TestRefusedMessageGoesToTheNextChannelAndFirstChoicesStillCount(t *testing.T) {
	t.Parallel()
	p := setup(t, nil)
	p.channels["c"].answer = always(provider.Refused)
	p.handle(t, jobsNamed("m", 300))
	p.eventually(t, byState, map[string]int64{"accepted": 300})
	first := p.counts(t, `select first_choice, count(*) from audit.messages group by 1`)
	moved := p.counts(t, `select reason, count(*) from audit.attempts where outcome = 'accepted' `+
		`group by 1`)
	if first["c"] < 140 || first["c"] != moved["fallback"] ||
		moved["first_choice"] != 300-first["c"] {
		t.Errorf("first choices %v, accepted attempts by reason %v", first, moved)
	}
}

func TestUnknownIsNotSentAgain(t *testing.T) {
	t.Parallel()
	p := setup(t, nil)
	for _, c := range p.channels {
		c.answer = always(provider.Unknown)
	}
	p.handle(t, jobsNamed("m", 100))
	p.eventually(t, byState, map[string]int64{"unknown": 100})
	p.stop()
	total := 0
	for _, c := range p.channels {
		total += len(c.submits())
	}
	if total != 100 {
		t.Errorf("%d submits for 100 messages", total)
	}
}

func TestLaneMayResendOnceFlagged(t *testing.T) {
	t.Parallel()
	p := setup(t, func(r *decide.Routing) {
		lane := r.Lanes["bulk"]
		lane.Ambiguous = "resend_once"
		r.Lanes["bulk"] = lane
	})
	for _, c := range p.channels {
		c.answer = always(provider.Unknown)
	}
	p.handle(t, jobsNamed("m", 50))
	p.eventually(t, byState, map[string]int64{"unknown": 50})
	p.eventually(t, byOutcome, map[string]int64{"unknown": 100})
	p.eventually(t, `select reason, count(*) from audit.attempts group by 1`,
		map[string]int64{"first_choice": 50, "resend": 50})
	p.eventually(t, `select 'flagged', count(*) from audit.messages where possible_duplicate`,
		map[string]int64{"flagged": 50})
}

func TestThrottledMessageTriesTheOthersAndComesBack(t *testing.T) {
	t.Parallel()
	p := setup(t, func(r *decide.Routing) {
		for i := range r.Channels {
			r.Channels[i].Concurrency = 1 // so that messages queue behind the first answer
		}
	})
	var once sync.Map
	for _, c := range p.channels {
		c.answer = func(s provider.Submission) provider.Result {
			if _, again := once.LoadOrStore(s.ID, true); again {
				return accepts(s)
			}
			return provider.Result{
				Outcome: provider.Throttled, Code: "0x00000058",
				RetryAfter: 250 * time.Millisecond,
			}
		}
	}
	p.handle(t, jobsNamed("m", 12))
	p.eventually(t, byState, map[string]int64{"accepted": 12})
	// Messages queued behind a throttled one do not leave during the pause, which is longer than a
	// stall of a busy machine.
	p.eventually(t, `select outcome, count(*) from audit.attempts where outcome <> 'refused' `+
		`group by 1`, map[string]int64{"accepted": 12, "throttled": 12})
	p.eventually(t, `select provider_code, 1 from audit.attempts where outcome = 'refused' group `+
		`by 1`, map[string]int64{"late": 1})
}

func TestNothingIsSentTwiceWhenEveryChannelRefusesForAWhile(t *testing.T) {
	t.Parallel()
	p := setup(t, nil)
	began := time.Now()
	for _, c := range p.channels {
		c.answer = func(s provider.Submission) provider.Result {
			if time.Since(began) < 1500*time.Millisecond {
				return provider.Result{Outcome: provider.Refused, Code: "dial"}
			}
			return accepts(s)
		}
	}
	p.handle(t, jobsNamed("m", 30))
	p.eventually(t, byState, map[string]int64{"accepted": 30})
	p.eventually(t, `select 'accepted', count(*) from audit.attempts where outcome = 'accepted'`,
		map[string]int64{"accepted": 30})
}

func TestClaimUnderAnOldRoutingIsPlannedAgain(t *testing.T) {
	t.Parallel()
	p := setup(t, nil)
	p.applyRouting(t, nil) // the dispatcher does not know yet
	p.handle(t, jobsNamed("m", 20))
	p.eventually(t, `select routing_version::text, count(*) from audit.messages group by 1`,
		map[string]int64{"2": 20})
}

func TestLimitHoldsMessagesBackAndNeverLetsOneTooManyThrough(t *testing.T) {
	t.Parallel()
	p := setup(t, nil)
	p.applyRouting(t, []admission.Limit{
		{Window: admission.Second, Max: 20},
		{Window: admission.Minute, Max: 30},
	})
	p.handle(t, jobsNamed("m", 200))
	// At least 30 per channel of one minute's window; two windows if the test crosses the turn of a
	// minute.
	p.eventually(t, `select 'enough', least(90, count(*)) from audit.attempts`,
		map[string]int64{"enough": 90})
	over := p.counts(t,
		`select channel, granted - max from audit.limit_windows where granted > max`)
	if len(over) != 0 {
		t.Errorf("over the limit: %v", over)
	}
	if waiting := p.counts(t, byState)["waiting"]; waiting == 0 {
		t.Error("no message waits")
	}
}

func TestScheduledMessageLeavesAtItsTime(t *testing.T) {
	t.Parallel()
	p := setup(t, nil)
	jobs := jobsNamed("m", 1)
	jobs[0].Message.SendAt = time.Now().Add(8 * time.Second).UTC().Truncate(time.Millisecond)
	jobs[0].Raw = jobs[0].Message.Append(nil)
	p.handle(t, jobs)
	p.eventually(t, byState, map[string]int64{"scheduled": 1})
	p.eventually(t, byState, map[string]int64{"accepted": 1})
	early := p.counts(t, fmt.Sprintf(`select 'early', count(*) from audit.attempts where `+
		`claimed_at < '%s'`, jobs[0].Message.SendAt.Format(time.RFC3339Nano)))
	if early["early"] != 0 {
		t.Error("the message was sent before its time")
	}
}

func TestRecordTheLedgerRefusesIsBuriedAndTheOthersGoOn(t *testing.T) {
	t.Parallel()
	p := setup(t, nil)
	jobs := jobsNamed("m", 8)
	jobs[3].Message.Tenant = "\x00" // no text column can hold it; Decode would refuse it
	p.handle(t, jobs)
	p.eventually(t, byState, map[string]int64{"accepted": 7, "dead": 1})
}

func TestRemovedChannelIsDrainedAndClosed(t *testing.T) {
	t.Parallel()
	p := setup(t, nil)
	next := *p.routing
	next.Version = p.applyRouting(t, nil)
	next.Channels = next.Channels[:2]
	table, err := selector.NewTable([]selector.Entry{
		{Name: "a", Weight: selector.MustWeight("1")},
		{Name: "b", Weight: selector.MustWeight("1")},
	})
	if err != nil {
		t.Fatal(err)
	}
	next.Routes = []decide.Route{{
		Route: config.Route{Name: "default", MaxSegments: 10},
		Table: table, Members: []int{0, 1},
	}}
	if err := p.Apply(&next, nil); err != nil {
		t.Fatal(err)
	}
	p.handle(t, jobsNamed("m", 50))
	p.eventually(t, byState, map[string]int64{"accepted": 50})
	p.stop()
	if c := p.channels["c"]; len(c.submits()) != 0 || !c.closed {
		t.Errorf("the removed channel got %d submits, closed %v", len(c.submits()), c.closed)
	}
}

func TestAttemptsOfALostInstanceBecomeUnknown(t *testing.T) {
	t.Parallel()
	p := setup(t, nil)
	p.loseAttempts(t, testKeys[0].ID(), "a")
	p.eventually(t, byState, map[string]int64{"unknown": 1})
	p.eventually(t, `select channel, active from audit.active`,
		map[string]int64{"a": 0, "b": 0, "c": 0})
}

// TestRaisedLimitWakesThoseWhoWait: messages wait for a daily limit of 0, which is then raised.
func TestRaisedLimitWakesThoseWhoWait(t *testing.T) {
	t.Parallel()
	p := setup(t, nil)
	p.applyRouting(t, []admission.Limit{{Window: admission.Day, Max: 1}})
	p.handle(t, jobsNamed("m", 20))
	p.eventually(t, byState, map[string]int64{"accepted": 3, "waiting": 17})
	p.cfg.Reload = func(context.Context) error {
		next := *p.routing
		next.Version = 3
		return p.Apply(&next, nil)
	}
	p.applyRouting(t, []admission.Limit{{Window: admission.Day, Max: 100}})
	p.eventually(t, byState, map[string]int64{"accepted": 20})
}

// TestRaisedLimitWakesWhatGoesOn: accepted messages, of which no receipt came, wait for the day's
// limit of a further channel. They go on once it is raised, and not the next day.
func TestRaisedLimitWakesWhatGoesOn(t *testing.T) {
	t.Parallel()
	tier.OneWindow(t, 24*time.Hour)
	p := setup(t, func(r *decide.Routing) {
		r.Routes[0].NoReceipt = &config.NoReceipt{After: time.Hour}
		lane := r.Lanes["bulk"]
		lane.TTL = 96 * time.Hour
		r.Lanes["bulk"] = lane
		for i := range r.Channels {
			r.Channels[i].AwaitReceipts = 72 * time.Hour
		}
	})
	connected := map[string]provider.Channel{}
	for name, c := range p.channels {
		connected[name] = &lookupChannel{
			scriptedChannel: c, can: provider.Capabilities{Receipts: true},
		}
	}
	next := *p.routing // the due loop reads the first one
	if err := p.Apply(&next, connected); err != nil {
		t.Fatal(err)
	}
	p.applyRouting(t, []admission.Limit{{Window: admission.Day, Max: 1}})
	p.handle(t, jobsNamed("m", 3))
	const waiting = `select coalesce(waits_for, 'nothing'), count(*) from dispatcher.due
		where state = 'accepted' and next_at > now() + interval '1 minute' group by 1`
	p.eventually(t, waiting, map[string]int64{"nothing": 3})
	p.heartbeat.receipts.Store(new(time.Now().Add(-3 * time.Hour))) // receipts could come all the time
	for _, sql := range []string{
		`update dispatcher.attempts set settled_at = settled_at - interval '2 hours'`,
		`update dispatcher.messages set next_at = now()`,
	} {
		if _, err := p.sql.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	p.eventually(t, `select 'for a limit', count(*) from dispatcher.due where state = 'accepted'
		and next_at > now() + interval '1 minute' and waits_for <> ''`,
		map[string]int64{"for a limit": 3})
	p.cfg.Reload = func(context.Context) error {
		next := *p.routing
		next.Version = 3
		return p.Apply(&next, nil)
	}
	p.applyRouting(t, []admission.Limit{{Window: admission.Day, Max: 100}})
	p.eventually(t, `select reason, count(*) from audit.attempts where reason = 'no_receipt'
		group by 1`, map[string]int64{"no_receipt": 3})
}

// TestOtpDoesNotWaitBehindACampaign fills the process with bulk messages whose channel does not
// answer: an otp message must still be claimed, and leave before what is queued.
func TestOtpDoesNotWaitBehindACampaign(t *testing.T) {
	t.Parallel()
	p := setup(t, func(r *decide.Routing) {
		r.Lanes = map[string]decide.Lane{
			"otp":  {Lane: config.Lane{Name: "otp", TTL: time.Hour, MaxWaiting: 100}, Order: 0},
			"bulk": {Lane: config.Lane{Name: "bulk", TTL: time.Hour, MaxWaiting: 100}, Order: 1},
		}
		for i := range r.Channels {
			r.Channels[i].Concurrency = 1 // so that the order in which they leave shows
		}
	})
	gate := make(chan struct{})
	for _, c := range p.channels {
		c.answer = func(s provider.Submission) provider.Result {
			<-gate
			return accepts(s)
		}
	}
	p.handle(t, jobsNamed("campaign", 450))
	code := jobsNamed("code", 1)
	code[0].Lane = "otp"
	p.handle(t, code) // blocks for ever if it needs a slot of the campaign
	tier.Eventually(t, "the feeders have read their inboxes", func() bool {
		for _, w := range p.workers {
			if len(w.inbox) > 0 {
				return false
			}
		}
		return true
	})
	close(gate)
	p.eventually(t, byState, map[string]int64{"accepted": 451})
	for name, c := range p.channels {
		for i, s := range c.submits() {
			if s.ID == "code-0" && i > 1 { // one was with the channel already
				t.Errorf("the otp message left channel %s as number %d", name, i+1)
			}
		}
	}
}
