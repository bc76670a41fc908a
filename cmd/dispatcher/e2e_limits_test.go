package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/config/tier"
	"dispatcher/provider/smpp/smpptest"
)

// among assigns the messages to tenants in turn.
func among(all []envelope.Message, tenants ...string) []envelope.Message {
	for i := range all {
		all[i].Tenant = tenants[i%len(tenants)]
	}
	return all
}

// taken is what a limit has granted, and the sum of the attempts that it counts.
type taken struct{ Granted, Attempts int64 }

// tenantLimit returns a tenant's daily limit over all channels and the sum of the tenant's
// attempts.
func (s *stage) tenantLimit(tenant, unit, attempts string) taken {
	s.t.Helper()
	all := query(s.t, s.postgres, pgx.RowToStructByPos[taken], `
		select coalesce((select sum(granted) from audit.limit_windows where channel = ''
		and scope = 'tenant:' || $1 and unit = $2), 0)::bigint,
		  coalesce((select `+attempts+` from audit.attempts a
		    join audit.messages m on m.id = a.message_id where m.tenant = $1), 0)::bigint`,
		tenant, unit)
	return all[0]
}

// passedOver counts the fallbacks whose ranking excludes a channel, by reason.
func (s *stage) passedOver(channel string) map[string]int {
	s.t.Helper()
	reasons := map[string]int{}
	for _, raw := range query(s.t, s.postgres, pgx.RowTo[[]byte], `
		select ranking::text::bytea from dispatcher.all_attempts where reason = 'fallback'`) {
		var r decide.Ranking
		if err := json.Unmarshal(raw, &r); err != nil {
			s.t.Fatal(err)
		}
		for _, candidate := range r.Candidates[:r.Chosen()] {
			if candidate.Channel == channel {
				reasons[candidate.Reason]++
			}
		}
	}
	return reasons
}

// untilRest waits until no attempt is in flight and every message that has not ended waits for
// waitsFor, and returns how many those are.
func (s *stage) untilRest(n int, waitsFor string) (waiting int64) {
	s.t.Helper()
	tier.Within(s.t, stepTimeout, "everything is sent or waits for "+waitsFor, func() bool {
		type counts struct{ Open, Done, Waiting int64 }
		p := query(s.t, s.postgres, pgx.RowToStructByPos[counts], `
			select (select count(*) from audit.attempts where outcome is null),
			  (select count(*) from audit.messages where state = 'accepted'
			or finished_at is not null),
			  (select count(*) from dispatcher.message_states where state = 'waiting'
			and waits_for = $1)`, waitsFor)[0]
		waiting = p.Waiting
		return p.Open == 0 && p.Waiting > 0 && p.Done+p.Waiting == int64(n)
	})
	return waiting
}

// edit replaces a text of the routing in force, applies the result, and returns the database's time
// after it.
func (s *stage) edit(before, after string) (since time.Time) {
	s.t.Helper()
	document := s.command("routing", "show")
	if strings.Count(document, before) != 1 {
		s.t.Fatalf("want %q exactly once in\n%s", before, document)
	}
	s.write("next.yaml", strings.Replace(document, before, after, 1))
	_, since = s.change("routing", "apply", s.path("next.yaml"))
	return since
}

// TestAPrepaidTenantSendsWhatWasPaid: each tenant waits for its own budget, continues at once after
// a top-up, and never spends more. Status reports that the budget is low, and the audit derives all
// choices again.
func TestAPrepaidTenantSendsWhatWasPaid(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	const n = 60
	s := newStage(t, stageConfig{
		limits: `[{tenant: "*", window: prepaid, unit: money, currency: GBP}]`,
	})
	s.joined(len(s.runAll(2)))
	s.command("budget", "top-up", "--all-channels", "--tenant", "other", "--amount", "1000",
		"--reason", "paid", "--author", "ann")
	s.publish("bulk", among(short("prepaid", n), "shop", "other"))
	if waiting := s.untilRest(n, "tenant:shop prepaid money"); waiting != n/2 {
		t.Fatalf("got %d waiting messages, want the %d of the tenant without budget", waiting, n/2)
	}
	if got := s.command("status"); !strings.Contains(got,
		"budget tenant:shop prepaid money: nothing was topped up, and 30 messages wait for it") {
		t.Errorf("got %s, want %q in it",
			got, "budget tenant:shop prepaid money: nothing was topped up, and 30 messages wait for it")
	}
	s.command("budget", "top-up", "--all-channels", "--tenant", "shop", "--amount", "0.50",
		"--reason", "paid", "--author", "ann")
	tier.Within(t, stepTimeout, "the budget is spent", func() bool {
		return strings.Contains(s.command("status"), "of 0.50 GBP are used")
	})
	s.untilRest(n, "tenant:shop prepaid money")
	got := s.tenantLimit("shop", "money", "sum(a.price_micros)")
	if got.Granted != got.Attempts || got.Granted > 500_000 || got.Granted < 460_000 {
		t.Errorf("%+v of 500000", got)
	}
	s.command("budget", "top-up", "--all-channels", "--tenant", "shop", "--amount", "100",
		"--reason", "paid", "--author", "ann")
	s.settled(n)
	s.command("audit", "verify")
	s.command("audit", "invariants")
}

// TestATenantsLimitHoldsOverAllChannels: two processes and three channels share the daily limit of
// one tenant. The other tenant is not delayed, and a higher limit takes effect at once.
func TestATenantsLimitHoldsOverAllChannels(t *testing.T) {
	t.Parallel()
	const most = 40
	n := tier.Size(160, 400)
	s := newStage(t, stageConfig{limits: "[{tenant: shop, window: 1d, max: 40}]"})
	processes := s.runAll(2)
	s.joined(len(processes))
	ids := s.publish("bulk", among(short("tenant", n), "shop", "other"))
	waiting := s.untilRest(n, "tenant:shop 1d messages")
	got := s.tenantLimit("shop", "messages", "count(*)")
	if got.Granted != most || got.Attempts != most {
		t.Errorf("got %+v, want %d granted and as many attempts", got, most)
	}
	other := s.count(`
		select count(*) from audit.messages where tenant = 'other' and state = 'accepted'`)
	if other != int64(n/2) {
		t.Errorf("%d of %d messages of the other tenant are accepted", other, n/2)
	}
	used := s.count(`
		select count(distinct channel) from audit.attempts a
		join audit.messages m on m.id = a.message_id where m.tenant = 'shop'`)
	if used != 3 {
		t.Errorf("got %d channels used by the tenant, want 3", used)
	}

	s.edit("max: 40", "max: 4000")
	s.settled(n)
	if got := s.tenantLimit("shop", "messages", "count(*)"); got.Granted != got.Attempts {
		t.Errorf("%+v after the limit was raised", got)
	}
	explained := s.count(`
		select count(*) from dispatcher.messages
		where waits @> '[{"reason": "tenant_limit", "on": "tenant:shop 1d messages"}]'`)
	if explained < waiting {
		t.Errorf("%d messages waited for the limit, %d of them say so", waiting, explained)
	}
	s.checkNoneTwice()
	s.checkAllArrived(ids)
	s.checkVerified(n)
}

// TestALimitOfEachTenantHoldsOverAllChannels: two processes create the counters of two tenants that
// the document does not name. The tenant that it names has its own limit.
func TestALimitOfEachTenantHoldsOverAllChannels(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	const most, n = 40, 600
	s := newStage(t, stageConfig{limits: `[{tenant: "*", window: 1d, max: 40},
  {tenant: bank, window: 1d, max: 9000}]`})
	s.joined(len(s.runAll(2)))
	ids := s.publish("bulk", among(short("each", n), "shop", "other", "bank"))
	s.untilRest(n-(n/3-most), "tenant:shop 1d messages")
	for _, tenant := range []string{"shop", "other"} {
		tier.Within(t, stepTimeout, "the limit of "+tenant+" is used up", func() bool {
			got := s.tenantLimit(tenant, "messages", "count(*)")
			return got.Granted == most && got.Attempts == most
		})
	}
	tier.Within(t, stepTimeout, "the tenant with a limit of its own is done", func() bool {
		return s.count(`select count(*) from audit.messages
			where tenant = 'bank' and state = 'accepted'`) == n/3
	})
	s.edit("max: 40", "max: 4000")
	s.settled(n)
	for _, tenant := range []string{"shop", "other", "bank"} {
		if got := s.tenantLimit(tenant, "messages", "count(*)"); got.Granted != got.Attempts ||
			got.Granted != n/3 {
			t.Errorf("%s: %+v after the limit was raised", tenant, got)
		}
	}
	s.checkNoneTwice()
	s.checkAllArrived(ids)
	s.checkVerified(n)
}

// TestAPrefixLimitClosesOneChannelToOneCountry: messages above the limit go to the other channel.
// Messages to other countries are not affected.
func TestAPrefixLimitClosesOneChannelToOneCountry(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	const most = 10
	const n = 600
	s := newStage(t, stageConfig{channels: []channel{
		{
			name: "a", weight: "50", behaviour: quick(),
			document: `limits: [{prefix: "+9997", window: 1d, max: 10}]`,
		},
		{name: "b", weight: "50", behaviour: quick()},
	}})
	processes := s.runAll(2)
	s.joined(len(processes))
	all := short("prefix", n)
	for i := range all {
		if i%2 == 1 {
			all[i].To = "+9998" + strings.TrimPrefix(all[i].To, "+9997")
		}
	}
	ids := s.publish("bulk", all)
	s.settled(n)

	to := map[string]int{}
	for _, submit := range s.carriers["a"].Submits() {
		to[submit.To[:4]]++
	}
	granted := s.count(`
		select coalesce(sum(granted), 0)::bigint from audit.limit_windows where channel = 'a'
		and scope = 'prefix:+9997'`)
	// An attempt that is late has taken a slot and is not sent.
	if granted != most || to["9997"] > most || to["9997"] < most-2 {
		t.Errorf("%d granted, the carrier saw %d, the limit is %d", granted, to["9997"], most)
	}
	if to["9998"] < n/2/3 {
		t.Errorf("the channel carried only %d messages to the other country", to["9998"])
	}
	if reasons := s.passedOver("a"); reasons["prefix_limit"] < n/2/5 || reasons["no_slot"] > 0 {
		t.Errorf("got exclusion reasons %v", reasons)
	}
	s.checkNoneTwice()
	s.checkAllArrived(ids)
	s.checkVerified(n)
}

// TestADaysBudgetIsKeptToTheMicro: a tenant may spend 1.50 a day over two channels, one of which
// refuses every third submit. The audit's sum, the limit's counter and what the carriers accepted
// are the same amount, which is not above the budget.
func TestADaysBudgetIsKeptToTheMicro(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	const budget, price = 1_500_000, 30_000
	const n = 300
	s := newStage(t, stageConfig{
		limits: `[{tenant: shop, window: 1d, max: "1.50", unit: money, currency: GBP}]`,
		channels: []channel{
			{
				name: "a", weight: "50",
				behaviour: smpptest.Behaviour{Latency: 5 * time.Millisecond, ErrorEvery: 3},
			},
			{name: "b", weight: "50", behaviour: quick()},
		},
	})
	processes := s.runAll(2)
	s.joined(len(processes))
	s.publish("bulk", messages("budget", n))
	check := func(when string, most int64) {
		t.Helper()
		spent := s.tenantLimit("shop", "money", "sum(a.price_micros)")
		carried := int64(0)
		for _, carrier := range s.carriers {
			carried += int64(carrier.Stats().Accepted) * price
		}
		t.Logf("%s: %d micros granted", when, spent.Granted)
		if spent.Granted != spent.Attempts || spent.Granted != carried || spent.Granted > most {
			t.Errorf("%s: %d micros granted, %d on record, %d accepted by the carriers, the "+
				"budget is %d",
				when, spent.Granted, spent.Attempts, carried, most)
		}
	}
	s.untilRest(n, "tenant:shop 1d money")
	check("at the limit", budget)
	refused := s.count(`select count(*) from audit.attempts where outcome = 'refused'`)
	if refused == 0 {
		t.Error("nothing was refused: the test proves nothing")
	}
	s.edit(`max: "1.50"`, `max: "150"`)
	s.settled(n)
	check("with a higher budget", 100*budget)
	s.checkNoneTwice()
	s.checkVerified(n)
}

// TestAReserveLetsOtpThroughAFlood: bulk messages use up a channel of 60 a minute, a fifth of which
// is reserved for otp. 48 bulk messages are sent and the others wait. The otp messages that come
// then are sent at once.
func TestAReserveLetsOtpThroughAFlood(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	const n, codes = 400, 8
	s := newStage(t, stageConfig{
		channels: []channel{
			{
				name: "a", weight: "1", behaviour: quick(),
				document: "limits: [{window: 1m, max: 60, reserve: {otp: 20%}}]",
			},
		},
		lanes: "  otp: {topics: [%s.otp], ttl: 10m}\n  bulk: {topics: [%s.bulk], ttl: 24h}\n",
	})
	processes := s.runAll(2)
	s.joined(len(processes)) // one lane's group stands for both
	s.publish("bulk", short("flood", n))
	tier.Within(t, stepTimeout, "bulk has used its part of a minute that is far from its end",
		func() bool {
			return s.count(`select count(*) filter (where extract(second
				from clock_timestamp()) < 20)
			from audit.attempts
			where claimed_at >= date_trunc('minute', clock_timestamp())`) == 48
		})
	kept := s.count(`
		select reserved from audit.limit_windows where window_start = date_trunc('minute',
		clock_timestamp())`)
	if kept != 12 {
		t.Errorf("got %d reserved slots, want 12", kept)
	}
	s.publish("otp", short("code", codes))
	tier.Within(t, stepTimeout, "every code is accepted", func() bool {
		return s.count(`
			select count(*) from audit.messages where lane = 'otp' and state = 'accepted'`) == codes
	})
	slow := s.count(`select count(*) from audit.attempts a join audit.messages m on m.id =
		a.message_id
		where m.lane = 'otp' and a.claimed_at > m.received_at + interval '20 seconds'`)
	if slow > 0 {
		t.Errorf("%d otp messages waited, although their lane has a reserve", slow)
	}
	tier.Within(t, stepTimeout, "a further minute is full", func() bool {
		return s.count(`select count(*) from audit.limit_windows where granted = max`) > 0
	})
	excess := s.count(`select count(*) from (
		select count(*) from audit.attempts a join audit.messages m on m.id = a.message_id
		where m.lane = 'bulk' and extract(second from a.claimed_at) < 53.5
		group by date_trunc('minute', a.claimed_at) having count(*) > 48) x`)
	if excess > 0 {
		t.Errorf("in %d minutes bulk messages took reserved slots before the last tenth", excess)
	}
	s.checkWindows()
	s.edit("max: 60", "max: 6000")
	s.settled(n + codes)
	s.checkNoneTwice()
	s.checkVerified(n + codes)
}

// TestALimitHoldsWhenACarrierAnswersAgain: a carrier of 40 segments a second does not answer until
// its window of 100 is full, and for two more seconds. Then all its answers come at once. No
// message leaves after the second that it was claimed for, and neither does the rest of a message
// of which some segments were sent.
func TestALimitHoldsWhenACarrierAnswersAgain(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	const perSecond, window = 40, 100
	const n = 120
	answers := make(chan struct{})
	s := newStage(t, stageConfig{
		channels: []channel{{
			name: "a", weight: "1", document: "limits: [{window: 1s, max: 40, unit: segments}]",
			behaviour: smpptest.Behaviour{Decide: func(smpptest.Submit) smpptest.Answer {
				return smpptest.Answer{Hold: answers}
			}},
		}},
	})
	s.runAll(1)
	stalls := watchStalls(t)
	all := short("silence", n)
	for i := range all {
		all[i].Text += strings.Repeat(" Terms and conditions apply.", 18) // four segments
	}
	ids := s.publish("bulk", all)
	carrier := s.carriers["a"]
	tier.Within(t, stepTimeout, "the window is full", func() bool {
		return carrier.Stats().Submits == window
	})
	full := s.now()
	tier.Within(t, stepTimeout, "messages find no room for two seconds", func() bool {
		return s.now().Sub(full) > 2*time.Second &&
			s.count(`select count(*) from audit.attempts where provider_code = 'late'`) > 0
	})
	if submits := carrier.Stats().Submits; submits != window {
		t.Errorf("the carrier that does not answer got %d segments, its window is %d", submits, window)
	}
	close(answers)
	s.settled(n)
	// A carrier that gets no CPU time for a moment counts the submits of two seconds in one.
	if most := mostInASecond(s.arrived("a")); most > perSecond*3/2+int(perSecond*stalls()/time.Second) {
		t.Errorf("the carrier got %d segments in one second, the limit is %d", most, perSecond)
	}
	for _, submit := range carrier.Submits() {
		if submit.Parts != 4 {
			t.Fatalf("got a message of %d segments, want 4", submit.Parts)
		}
	}
	s.checkNoneTwice()
	s.checkAllArrived(ids)
	if excess := s.count(`select count(*) from audit.limit_windows where granted > max`); excess > 0 {
		t.Errorf("%d seconds granted more than the limit", excess)
	}
	left := s.count(`select (select coalesce(sum(granted), 0) from audit.limit_windows)::bigint
		- (select sum(m.segments) from audit.attempts a join audit.messages m on m.id =
		a.message_id)::bigint`)
	if left != 0 {
		t.Errorf("%d more segments were granted than claimed", left)
	}
	s.checkVerified(n)
}

// TestLimitsChangeUnderTraffic: while two processes send a steady stream, the limit of a channel is
// opened, lowered and set to 0, and a tenant gets a limit over all channels and loses it again.
// Each change holds for every claim after it, nothing is lost or sent twice, and every choice can
// be derived again.
func TestLimitsChangeUnderTraffic(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	s := newStage(t, stageConfig{channels: threeChannels("limits: [{window: 1s, max: 0}]", "", "")})
	processes := s.runAll(2)
	s.joined(len(processes))
	stop := make(chan struct{})
	total := s.stream("limits", stop)
	claimed := func(channel string, from time.Time) int64 {
		t.Helper()
		return s.count(`select count(*) from audit.attempts where channel = $1 and claimed_at > $2`,
			channel, from)
	}
	// fullest returns the most that a limit granted in a second all of whose slots were taken between
	// two times. Some attempts are claimed in the second before their release time.
	fullest := func(channel, scope string, from, to time.Time) int64 {
		t.Helper()
		return s.count(`select coalesce(max(granted), 0) from audit.limit_windows
			where channel = $1 and scope = $2 and window_start >= $3 and window_start < $4`,
			channel, scope, from.Truncate(time.Second).Add(2*time.Second), to.Truncate(time.Second))
	}
	flows := func(from time.Time, channel string) {
		t.Helper()
		tier.Within(t, stepTimeout, "channel "+channel+" carries messages for whole seconds",
			func() bool {
				return claimed(channel, from) > 40 && s.now().Sub(from) > 3*time.Second
			})
	}
	// fills waits for a second in which a limit is nearly used up. The limits are far below the rate
	// of the stream, also on a busy machine.
	fills := func(from time.Time, channel, scope string, most int64) (until time.Time) {
		t.Helper()
		tier.Within(t, stepTimeout,
			fmt.Sprintf("a second of %s %s is filled to its limit of %d", channel, scope, most),
			func() bool {
				until = s.now()
				return until.Sub(from) > 3*time.Second &&
					fullest(channel, scope, from, until) >= most*9/10
			})
		return until
	}

	flows(time.Time{}, "c")
	if reasons := s.passedOver("a"); reasons["no_slot"] == 0 || s.carriers["a"].Stats().Submits > 0 {
		t.Errorf("got %d messages on a channel of limit 0, exclusion reasons %v",
			s.carriers["a"].Stats().Submits, reasons)
	}
	opened := s.edit("limits: [{window: 1s, max: 0}]", "limits: [{window: 1s, max: 10}]")
	fills(opened, "a", "channel", 10)
	_, narrowed := s.change("limits", "set", "a", "--window", "1s", "--max", "4")
	fills(narrowed, "a", "channel", 4)
	_, closed := s.change("limits", "set", "a", "--window", "1s", "--max", "0")
	flows(closed, "c")
	for _, step := range []struct {
		from, to time.Time
		most     int64
	}{{opened, narrowed, 10}, {narrowed, closed, 4}} {
		if got := fullest("a", "channel", step.from, step.to); got > step.most {
			t.Errorf("got %d granted in a second, the limit was %d", got, step.most)
		}
	}
	got := s.count(`
		select coalesce(sum(granted), 0)::bigint from audit.limit_windows where channel = 'a'`)
	if got != claimed("a", time.Time{}) {
		t.Errorf("got %d granted on the channel, want the %d claimed", got, claimed("a", time.Time{}))
	}
	if got := claimed("a", closed); got != 0 {
		t.Errorf("got %d claimed on a channel after its limit was 0", got)
	}

	tenant := []string{"limits", "set", "--all-channels", "--tenant", "shop", "--window", "1s"}
	_, bounded := s.change(append(tenant, "--max", "6")...)
	free := fills(bounded, "", "tenant:shop", 6)
	s.change(append(tenant, "--remove")...)
	if got := fullest("", "tenant:shop", bounded, free); got > 6 {
		t.Errorf("got %d granted to the tenant in a second, the limit was 6", got)
	}
	under := s.count(`
		select count(*) from audit.attempts where claimed_at > $1 and claimed_at < $2`,
		bounded, free)
	got = s.count(`
		select coalesce(sum(granted), 0)::bigint from audit.limit_windows
		where scope = 'tenant:shop'`)
	if got < under {
		t.Errorf("got %d granted to the tenant, want the %d claimed under its limit", got, under)
	}
	close(stop)
	n := <-total
	s.settled(n)
	s.checkNoneTwice()
	s.checkVerified(n)
}
