package pipeline

import (
	"slices"
	"testing"
	"time"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/provider/sms"
)

func TestBlockedNumbersReachNoProviderAndAreReported(t *testing.T) {
	t.Parallel()
	a := &archive{versions: map[int64]*decide.Routing{}}
	p := setup(t, func(r *decide.Routing) { r.Blocked.Prefixes = []string{"+4487"} })
	first := *p.routing
	a.keep(&first)
	const blocked = "+448712345678"
	soon := time.Now().Add(200 * time.Millisecond)
	p.handle(t, []decide.Job{
		jobTo("blocked", "bulk", "", blocked, time.Time{}),
		jobTo("later", "bulk", "", blocked, soon),
		jobTo("other", "bulk", "", "+447700900123", soon),
	})
	p.eventually(t, stateAndReason, map[string]int64{"rejected blocked_number": 2, "accepted": 1})
	p.stop()
	if ids := p.submitted(); len(ids) != 1 || !ids["other"] {
		t.Errorf("submitted %v", ids)
	}
	p.eventually(t, `select state, count(*) from audit.messages group by 1`,
		map[string]int64{"rejected": 2, "accepted": 1})
	if records, found := p.audited(t, a); records != 1 || len(found) > 0 {
		t.Errorf("%d records: %+v", records, found)
	}
	events := p.counts(t,
		`select convert_from(v, 'UTF8')::json ->> 'reason', count(*)
		from dispatcher.outbox, unnest("values") v
		where convert_from(v, 'UTF8')::json ->> 'state' = 'rejected' group by 1`)
	if events["blocked_number"] != 2 {
		t.Errorf("status events of rejected messages: %v", events)
	}
}

// TestADayWithPricesThatChangeAndSendersThatDoNotPassIsVerified sends while a new price list takes
// effect, by the database's clock and not by any process's.
func TestADayWithPricesThatChangeAndSendersThatDoNotPassIsVerified(t *testing.T) {
	t.Parallel()
	a := &archive{versions: map[int64]*decide.Routing{}}
	p := setup(t, func(r *decide.Routing) {
		r.Country = func(string) string { return "gb" }
		r.Channels[0].Senders.Rules = []decide.SenderRule{{
			Countries: []string{"gb"},
			Allow:     []sms.SenderKind{sms.LongCode},
		}}
		r.Channels[1].Senders.Rules = []decide.SenderRule{{
			Allow: []sms.SenderKind{sms.LongCode},
			From:  "60777",
		}}
		r.Routes[0].PriceCap = map[string]int64{"GBP": 5000}
	})
	takesOver := time.Now().Add(8 * time.Second) // the messages before are claimed until then
	before, second := decide.PriceList{Default: 1000}, *p.routing
	second.Channels = slices.Clone(second.Channels)
	for i, then := range []decide.PriceList{
		{Countries: map[string]int64{"gb": 2000}},
		{Countries: map[string]int64{"gb": 2000}},
		{Default: 9000},
	} {
		then.From = takesOver
		second.Channels[i].Price = decide.NewPrice("GBP", before, then)
	}
	second.Version = p.applyRouting(t, nil)
	if err := p.Apply(&second, nil); err != nil {
		t.Fatal(err)
	}
	first := *p.routing
	a.keep(&first)
	a.keep(&second)
	named := func(prefix string, at time.Time) []decide.Job {
		jobs := jobsNamed(prefix, 60)
		for i := range jobs {
			jobs[i].Message.From, jobs[i].Message.SendAt = "ACME", at
			jobs[i].Raw = jobs[i].Message.Append(nil)
		}
		return jobs
	}
	p.handle(t, named("now", time.Time{}))
	p.handle(t, named("then", takesOver.Add(300*time.Millisecond)))
	p.eventually(t, stateAndReason, map[string]int64{"accepted": 120})
	p.eventually(t, `select count(*)::text, count(*) from audit.attempts where price_micros = `+
		`case when message_id like 'then%' then 2000 else 1000 end group by ()`,
		map[string]int64{"120": 120})
	p.stop()
	p.eventually(t, `select a.channel, count(*) from audit.attempts a where message_id like `+
		`'then%' group by 1`, map[string]int64{"b": 60})
	for _, s := range p.channels["b"].submits() {
		if s.From != "60777" {
			t.Fatalf("b submitted under %q", s.From)
		}
	}
	if n := len(p.channels["a"].submits()); n > 0 {
		t.Errorf("a carried %d messages under a sender that it may not carry", n)
	}
	if records, found := p.audited(t, a); records != 120 || len(found) > 0 {
		t.Errorf("%d records: %+v", records, found)
	}
}
