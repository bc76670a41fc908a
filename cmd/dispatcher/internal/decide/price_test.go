package decide

import (
	"slices"
	"strings"
	"testing"
	"time"

	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/provider/sms"
	"dispatcher/selector"
)

func TestTheClosestPriceCounts(t *testing.T) {
	t.Parallel()
	price := NewPrice("EUR", PriceList{
		Default: 100, Prefixes: map[string]int64{"+33": 33, "+336": 36},
		Countries: map[string]int64{"fr": 30, "gb": 44},
		Networks:  map[string]int64{"208": 20, "20801": 21},
	})
	for name, c := range map[string]struct {
		to   Destination
		want int64
	}{
		"default":               {Destination{Number: "+15550100"}, 100},
		"country":               {Destination{Number: "+447700900123", Country: "gb"}, 44},
		"prefix before country": {Destination{Number: "+33123456789", Country: "fr"}, 33},
		"the longest prefix":    {Destination{Number: "+33612345678", Country: "fr"}, 36},
		"network before prefix": {Destination{
			Number: "+33612345678", Country: "fr",
			Network: "20810",
		}, 20},
		"the longest network": {Destination{
			Number: "+33612345678", Country: "fr",
			Network: "20801",
		}, 21},
		"another network": {Destination{
			Number: "+33612345678", Country: "fr",
			Network: "23415",
		}, 36},
		"a network that is cut off":       {Destination{Number: "+33612345678", Network: "20"}, 36},
		"a country nobody has a price of": {Destination{Number: "+999", Country: "zz"}, 100},
	} {
		if got := price.Segment(&c.to, noon); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	var none Price
	if got := none.Segment(&Destination{Number: "+1"}, noon); got != 0 {
		t.Errorf("no price is %d", got)
	}
}

func TestAPriceListHoldsFromItsMomentOn(t *testing.T) {
	t.Parallel()
	price := NewPrice("EUR", PriceList{Default: 1}, PriceList{From: noon, Default: 2},
		PriceList{From: noon.Add(time.Hour), Default: 3})
	for at, want := range map[time.Time]int64{
		{}: 1, noon.Add(-time.Nanosecond): 1, noon: 2, noon.Add(time.Hour - 1): 2,
		noon.Add(time.Hour): 3, noon.AddDate(9, 0, 0): 3,
	} {
		if got := price.Segment(&Destination{}, at); got != want {
			t.Errorf("at %s: %d, want %d", at, got, want)
		}
	}
}

func TestThePriceOfTheClaimIsFixedOnTheAttempt(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	for i := range w.routing.Channels {
		w.routing.Channels[i].Price = NewPrice("GBP", PriceList{Default: 30_000},
			PriceList{From: noon.Add(time.Second), Default: 40_000})
	}
	if d := w.decide(w.task("a")); d.Attempt.PriceMicros != 30_000 {
		t.Errorf("before the change: got %d", d.Attempt.PriceMicros)
	}
	w.seen.Now = noon.Add(time.Second) // only the database's clock counts
	task := w.task("a")
	task.At = noon
	if d := w.decide(task); d.Attempt.PriceMicros != 40_000 {
		t.Errorf("after the change: got %d", d.Attempt.PriceMicros)
	}
}

func TestCapsPassOverChannelsThatCostMore(t *testing.T) {
	t.Parallel()
	// The draw picks a. The price of the message is 0.05 GBP on a, 0.05 EUR on b and 0.03 GBP on c.
	for name, c := range map[string]struct {
		caps     map[string]int64
		maxPrice *int64
		ranking  []string
	}{
		"the route's, each in its currency": {
			map[string]int64{"GBP": 40_000, "EUR": 60_000},
			nil,
			[]string{"a:price_cap", "b:", "c:"},
		},
		"the message's, in any": {
			nil, new(int64(40_000)),
			[]string{"a:price_cap", "b:price_cap", "c:"},
		},
		"both hold": {
			map[string]int64{"GBP": 20_000, "EUR": 99_000},
			new(int64(55_000)),
			[]string{"a:price_cap", "b:", "c:"},
		},
		// a first choice leaves no record
		"exactly what it costs": {
			map[string]int64{"GBP": 50_000, "EUR": 50_000},
			new(int64(50_000)), nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t)
			w.routing.Channels[0].Price = NewPrice("GBP", PriceList{Default: 50_000})
			w.routing.Channels[1].Price = NewPrice("EUR", PriceList{Default: 50_000})
			w.routing.Routes[0].PriceCap = c.caps
			task := w.task("a")
			task.msg.MaxPrice = c.maxPrice
			d := w.decide(task)
			if c.ranking == nil {
				if d.Attempt.Channel != "a" || d.Attempt.Ranking != nil {
					t.Errorf("%+v, want a", d.Attempt)
				}
				return
			}
			if got := rankingOf(t, d.Attempt.Ranking); d.State != ledger.Sending ||
				!slices.Equal(got, c.ranking) {
				t.Errorf("%s: ranking %v, want %v", d.State, got, c.ranking)
			}
		})
	}
}

func TestTheNetworkIsWhatTheLabelSays(t *testing.T) {
	t.Parallel()
	r := &Routing{}
	for label, want := range map[string]selector.Value{
		"20801": selector.TextValue("20801"), "23415": selector.NumberValue(23415),
		"": selector.TextValue("Orange"),
	} {
		m := envelope.Message{To: "+33612345678", Labels: map[string]selector.Value{"mccmnc": want}}
		if got := r.destination(&m); got.Network != label || got.Number != m.To {
			t.Errorf("label %v: network %q, want %q", want, got.Network, label)
		}
	}
}

func TestNoCountryIsLookedUpThatNoRuleUses(t *testing.T) {
	t.Parallel()
	asked := 0
	country := func(string) string { asked++; return "gb" }
	m := envelope.Message{To: "+447700900123"}
	r := &Routing{
		Country:  country,
		Channels: []Channel{{Price: NewPrice("GBP", PriceList{Default: 1})}},
	}
	for _, prepared := range []bool{false, true} {
		if prepared {
			r.Prepare()
		}
		if to := r.destination(&m); to.Country != "" || asked != 0 {
			t.Errorf("the country was looked up without need, %d times", asked)
		}
	}
	for name, change := range map[string]func(*Routing){
		"price": func(r *Routing) {
			r.Channels[0].Price = NewPrice("GBP", PriceList{Countries: map[string]int64{"gb": 1}})
		},
		"sender": func(r *Routing) {
			r.Channels[0].Senders.Rules = []SenderRule{{Countries: []string{"us"}}}
		},
		"block": func(r *Routing) { r.Blocked.Countries = []string{"kp"} },
	} {
		r := &Routing{Country: country, Channels: []Channel{{}}}
		change(r)
		for range 2 {
			if to := r.destination(&m); to.Country != "gb" {
				t.Errorf("%s: country %q", name, to.Country)
			}
			r.Prepare()
		}
	}
}

func TestSendersPassOrAreReplaced(t *testing.T) {
	t.Parallel()
	number := Senders{Default: "ACME", Rules: []SenderRule{
		{
			Countries: []string{"us", "ca"}, Allow: []sms.SenderKind{sms.LongCode, sms.ShortCode},
			From: "+14155550100",
		},
		{Countries: []string{"fr"}, IDs: []string{"ACME", "36180"}},
		{Allow: []sms.SenderKind{sms.Alphanumeric}},
	}}
	for name, c := range map[string]struct {
		senders       Senders
		from, country string
		want          string
		ok            bool
	}{
		"no rules":                       {Senders{}, "Anybody", "us", "Anybody", true},
		"no rules, no sender":            {Senders{}, "", "us", "", true},
		"no rules, the default":          {Senders{Default: "ACME"}, "", "us", "ACME", true},
		"a number where numbers pass":    {number, "+447700900123", "us", "+447700900123", true},
		"a short code":                   {number, "60777", "ca", "60777", true},
		"a name where numbers pass":      {number, "Shop", "us", "+14155550100", true},
		"the default where numbers pass": {number, "", "us", "+14155550100", true},
		"a registered name":              {number, "ACME", "fr", "ACME", true},
		"another name":                   {number, "Shop", "fr", "", false},
		"case counts":                    {number, "acme", "fr", "", false},
		"the default is registered":      {number, "", "fr", "ACME", true},
		"everywhere else":                {number, "Shop", "de", "Shop", true},
		"a number everywhere else":       {number, "+447700900123", "de", "", false},
		"a country that nobody knows":    {number, "Shop", "", "Shop", true},
		"a rule without sender for none": {
			Senders{Rules: []SenderRule{{Allow: []sms.SenderKind{sms.LongCode}}}},
			"", "us",
			"", true,
		},
		"a rule that replaces everything": {
			Senders{Rules: []SenderRule{{From: "60777"}}},
			"ACME",
			"us", "60777", true,
		},
	} {
		if got, ok := c.senders.For(c.from, c.country); got != c.want || ok != c.ok {
			t.Errorf("%s: %q, %v; want %q, %v", name, got, ok, c.want, c.ok)
		}
	}
}

func TestAChannelThatMayNotCarryTheSenderIsPassedOver(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.routing.Channels[0].Senders.Rules = []SenderRule{{Allow: []sms.SenderKind{sms.LongCode}}}
	task := w.task("a")
	task.msg.From = "ACME"
	d := w.decide(task)
	if d.Attempt.Channel == "a" || d.Attempt.Reason != ledger.ByFallback {
		t.Fatalf("got %+v, want Channel other than %v and Reason %v", d.Attempt, "a", ledger.ByFallback)
	}
	if got := rankingOf(t, d.Attempt.Ranking); got[0] != "a:sender" {
		t.Errorf("ranking %v", got)
	}
}

// TestAChannelThatCannotWriteTheSenderIsPassedOver as one that may not carry it.
func TestAChannelThatCannotWriteTheSenderIsPassedOver(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.routing.Channels[0].Writes = func(from, to string) bool {
		return from != "Müller" || to != "+447700900123"
	}
	task := w.task("a")
	task.msg.From, task.to.Number = "Müller", "+447700900123"
	d := w.decide(task)
	if got := rankingOf(t, d.Attempt.Ranking); d.Attempt.Channel == "a" || got[0] != "a:sender" {
		t.Errorf("channel %s, ranking %v", d.Attempt.Channel, got)
	}
}

func TestTheSubmissionHasTheChannelsSenderAndText(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	ch := &w.routing.Channels[0]
	ch.Senders.Rules = []SenderRule{{From: "60777"}}
	ch.Segments = func(text string) int { return len(text) }
	ch.Substitute = func(text string) string { return "<" + text + ">" }
	w.routing.Routes[0].Substitute = true
	task := w.task("a")
	task.msg.From = "ACME"
	a := w.assigner()
	d := a.decide(task)
	if d.Attempt.Channel != "a" || d.Attempt.Segments != 3 {
		t.Fatalf("got %+v, want Channel %v and Segments %v", d.Attempt, "a", 3)
	}
	attempt := newAttempt(task, &d)
	if attempt.Submission.From != "60777" || attempt.Submission.Text != "<x>" {
		t.Errorf("submitted as %q: %q", attempt.Submission.From, attempt.Submission.Text)
	}
}

func TestATextThatIsTooLongOnAChannelGoesToAnother(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.routing.Channels[0].Segments = func(string) int { return 11 }
	d := w.decide(w.task("a"))
	if d.Attempt.Channel == "a" {
		t.Fatal("it was sent in more segments than the route allows")
	}
	if got := rankingOf(t, d.Attempt.Ranking); got[0] != "a:too_long" {
		t.Errorf("ranking %v", got)
	}
}

func TestATextIsRefusedOnlyWhenNoChannelKeepsToTheMost(t *testing.T) {
	t.Parallel()
	p := testPlanner(t)
	p.routing.Routes[0].MaxSegments = 1
	long := testJob(envelope.Message{Text: strings.Repeat("ş", 71)})
	if got := p.plan(&long); got.Row.Reason != string(envelope.TooManySegments) {
		t.Errorf("71 letters of UCS-2 in one segment: %q", got.Row.Reason)
	}
	rules := sms.Rules{Tables: sms.Tables{Locking: sms.LanguagesOf(sms.Turkish)}}
	p.routing.Channels[1].Segments = func(text string) int { return rules.Count(text).Segments }
	got := p.plan(&long)
	if got.Row.State != ledger.Sending || !got.Wanted() {
		t.Fatalf("%s: got %s", got.Row.State, got.Row.Reason)
	}
	for i, want := range []int{2, 1, 2} {
		if n := got.segments(&p.routing.Channels[i]); n != want {
			t.Errorf("%d segments on %s, want %d", n, p.routing.Channels[i].Name, want)
		}
	}
	for i := range p.routing.Channels {
		p.routing.Channels[i].Segments = func(string) int { return 2 }
	}
	short := testJob(envelope.Message{})
	if got := p.plan(&short); got.Row.Reason != string(envelope.TooManySegments) {
		t.Errorf("every channel takes two segments for it, the route allows one: %q",
			got.Row.Reason)
	}
}

func TestBlockedNumbersAreRejectedAtOnce(t *testing.T) {
	t.Parallel()
	for name, blocked := range map[string]Blocked{
		"prefix":  {Blocked: config.Blocked{Prefixes: []string{"+99", "+4477"}}},
		"country": {Blocked: config.Blocked{Countries: []string{"gb"}}},
		"premium": {Blocked: config.Blocked{Premium: true}, IsPremium: func(number string) bool {
			return number == "+447700900123"
		}},
	} {
		p := testPlanner(t)
		p.routing.Blocked = blocked
		p.routing.Country = func(string) string { return "gb" }
		job := testJob(envelope.Message{})
		got := p.plan(&job)
		if got.Row.State != ledger.Rejected || got.Row.Reason != "blocked_number" ||
			got.letter != nil || got.Wanted() {
			t.Errorf("%s: %s %s", name, got.Row.State, got.Row.Reason)
		}
		other := testJob(envelope.Message{To: "+33612345678"})
		p.routing.Country = func(string) string { return "fr" }
		if got := p.plan(&other); got.Row.State != ledger.Sending {
			t.Errorf("%s: another number is %s", name, got.Row.State)
		}
	}
}

// TestANumberWithoutACountryIsBlockedWithTheMainOneOfItsCode: of that calling code only numbers of
// another known country pass.
func TestANumberWithoutACountryIsBlockedWithTheMainOneOfItsCode(t *testing.T) {
	t.Parallel()
	b := Blocked{Blocked: config.Blocked{Countries: []string{"us"}}, CallingCodes: []string{"+1"}}
	island := Blocked{Blocked: config.Blocked{Countries: []string{"jm"}}}
	for name, c := range map[string]struct {
		to   Destination
		want bool
	}{
		"the country":                 {Destination{Number: "+14155552671", Country: "us"}, true},
		"another of its calling code": {Destination{Number: "+16045551234", Country: "ca"}, false},
		"nobody knows":                {Destination{Number: "+13575550123"}, true},
		"nobody knows, another code":  {Destination{Number: "+447700900123"}, false},
	} {
		if got := b.stops(&c.to); got != c.want {
			t.Errorf("%s: stopped %v, want %v", name, got, c.want)
		}
	}
	if island.stops(&Destination{Number: "+16795550123"}) {
		t.Error("an unknown number counts as one of an island")
	}
	if none := (Blocked{}); none.stops(&Destination{Number: "+13575550123"}) {
		t.Error("a number was blocked without a rule")
	}
}

func TestAWaitingMessageIsRejectedOnceItsNumberIsBlocked(t *testing.T) {
	t.Parallel()
	p, job := testPlanner(t), testJob(envelope.Message{})
	row := p.plan(&job).Row
	row.Seq, row.State = 5, ledger.Waiting
	row.Envelope = []byte(`{"id":"order-1","to":"+447700900123","text":"Your code is 123456"}`)
	p.routing.Blocked.Prefixes = []string{"+44"}
	task := p.planDue(row)
	w := newFixture(t)
	w.routing.Blocked = p.routing.Blocked
	if d := w.decide(&task); d.State != ledger.Rejected || d.Reason != "blocked_number" ||
		d.Plan.Version != row.Plan.Version {
		t.Errorf("got %+v, want State %v, Reason %v and Plan.Version %v",
			d, ledger.Rejected, "blocked_number", row.Plan.Version)
	}
	row.PartsLeft, row.Attempts = []int{1}, 1
	if task := p.planDue(row); task.problem != "" {
		t.Errorf("message with a sent part: got %s", task.problem)
	}
}

func TestASenderThatNoNetworkCanShowIsADeadLetter(t *testing.T) {
	t.Parallel()
	for sender, bad := range map[string]bool{
		"ACME International": true, "АСМЕ": true, "12": true,
		"ACME": false, "": false, "+447700900123": false,
	} {
		job := testJob(envelope.Message{From: sender})
		got := testPlanner(t).plan(&job)
		if (got.Row.Reason == string(envelope.BadSender)) != bad || (got.letter != nil) != bad {
			t.Errorf("%q: %s %s", sender, got.Row.State, got.Row.Reason)
		}
	}
}

func TestTheRecordIsStoredAsItWasUnderstood(t *testing.T) {
	t.Parallel()
	job := testJob(envelope.Message{})
	job.Rewritten = []byte("in E.164")
	if got := testPlanner(t).plan(&job); string(got.Row.Envelope) != "in E.164" {
		t.Errorf("stored %q", got.Row.Envelope)
	}
	job.Message.ExpiresAt = noon
	got := testPlanner(t).plan(&job)
	if string(got.letter.Value) != "raw" || string(got.Row.Envelope) != "in E.164" {
		t.Errorf("letter %q, row %q: a dead letter holds what the producer wrote", got.letter.Value,
			got.Row.Envelope)
	}
}
