package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
	"dispatcher/provider"
)

// dayReport is everything that is reported of a day.
type dayReport struct {
	ledger.DayFigures
	// Splits are the same figures in every split: by one thing, which is read from sums, and by
	// several.
	Splits map[ledger.Split]map[ledger.Part]ledger.PartFigures
}

func reportToday(t *testing.T, l *ledger.Ledger) (r dayReport) {
	t.Helper()
	now := time.Now()
	r.DayFigures = figuresOf(t, l, now)
	day := ledger.RangeDay{BusinessDay: ledger.NewBusinessDay(now, time.UTC), Period: "today"}
	r.Splits = map[ledger.Split]map[ledger.Part]ledger.PartFigures{}
	for _, split := range []ledger.Split{
		{},
		{Reason: true},
		{Hour: true},
		{Tenant: true, Reason: true},
		{CallingCode: true},
		{Sender: true},
		{Hour: true, Tenant: true, CallingCode: true, Sender: true, Reason: true},
	} {
		parts, err := l.Reports.Range(t.Context(), []ledger.RangeDay{day}, split, func(int64) {})
		if err != nil {
			t.Fatal(err)
		}
		r.Splits[split] = map[ledger.Part]ledger.PartFigures{}
		for _, p := range parts.Parts {
			r.Splits[split][p.Part] = p
		}
	}
	return r
}

// figuresOf are the figures of the day, in UTC, that contains an instant.
func figuresOf(t *testing.T, l *ledger.Ledger, at time.Time) ledger.DayFigures {
	t.Helper()
	figures, _, err := l.Reports.Day(t.Context(), ledger.NewBusinessDay(at, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	return figures
}

// closeToday closes the day although it is not over.
func closeToday(t *testing.T, l *ledger.Ledger) ledger.DayClosing {
	t.Helper()
	c, ours, err := l.Reports.Close(t.Context(), ledger.NewBusinessDay(time.Now(), time.UTC), nil)
	if err != nil || !ours {
		t.Fatalf("closed here: %v, %v", ours, err)
	}
	return c
}

// reopened calls work while the day does not count as closed.
func (b *business) reopened(work func()) {
	b.t.Helper()
	const shift = `update dispatcher.closings set from_at = from_at + $1::interval`
	execute(b.t, b.db, shift, -time.Second)
	work()
	execute(b.t, b.db, shift, time.Second)
}

// TestAClosedDayReportsWhatItsRowsDid, whatever claims, settlements and receipts did before, and
// also when it is closed again after more of them.
func TestAClosedDayReportsWhatItsRowsDid(t *testing.T) {
	t.Parallel()
	tier.OneWindow(t, 24*time.Hour)
	b := newBusiness(t)
	var before dayReport
	runs := 0
	tier.Check(t, func(rt *rapid.T) {
		b.goOn(rt, func(string) {})
		if runs++; runs%tier.Size(6, 4) > 0 { // to close a day takes longer than what happens on it
			return
		}
		if len(before.Rows) > 0 && !cmp.Equal(before, reportToday(t, b.l)) {
			rt.Fatal("the figures of a closed day changed before it was closed again")
		}
		var rows dayReport
		b.reopened(func() { rows = reportToday(t, b.l) })
		closed := closeToday(t, b.l)
		if diff := cmp.Diff(rows, reportToday(t, b.l)); diff != "" {
			rt.Fatalf("the rows (-) and the figures of revision %d (+): %s", closed.Revision, diff)
		}
		before = rows
		if again := closeToday(t, b.l); again.Changes != 0 ||
			again.Revision != closed.Revision+1 {
			rt.Fatalf("closed once more without a change: %+v after %+v", again, closed)
		}
	})
	// This makes sure that one attempt is pending at the first closing and not at the second.
	m := claimAll(t, b.l, batch("pending", 1), "a").Messages
	closeToday(t, b.l)
	settleAll(t, b.l, accepted(m))
	closeToday(t, b.l)
	if n := scalar[int](t, b.db, `select count(*) from facts.wrong_sums`); n > 0 {
		t.Errorf("%d sums are not those of their figures", n)
	}
	for what, sql := range map[string]string{
		"sums of corrections": `select count(*) from dispatcher.attempt_sums where revision > 1`,
		"carried elsewhere": `select count(*) from dispatcher.carried_figures
			where channel <> first_choice`,
		"with a sender":     `select count(*) from dispatcher.choice_figures where sender = 'ACME'`,
		"corrections":       `select count(*) from dispatcher.closings where revision > 1 and changes > 0`,
		"figures that sank": `select count(*) from dispatcher.attempt_figures where pending < 0`,
		"delivered":         `select count(*) from dispatcher.attempt_figures where delivered > 0`,
	} {
		if n := scalar[int](t, b.db, sql); n == 0 {
			t.Errorf("there are %d %s", n, what)
		}
	}
}

// TestADayIsReadAtOneMoment: what attempts say and what channels carried agree, although messages
// are being accepted meanwhile.
func TestADayIsReadAtOneMoment(t *testing.T) {
	t.Parallel()
	tier.OneWindow(t, 24*time.Hour)
	l := open(t)
	ctx, end := context.WithCancel(t.Context())
	wrong := make(chan string, 1)
	go func() {
		defer close(wrong)
		for ctx.Err() == nil {
			figures, _, err := l.Reports.Day(ctx, ledger.NewBusinessDay(time.Now(), time.UTC))
			var accepted, carried int64
			for i := range figures.Rows {
				accepted += figures.Rows[i].Accepted
			}
			for i := range figures.Carried {
				carried += figures.Carried[i].Messages
			}
			if err == nil && accepted != carried {
				wrong <- fmt.Sprintf("%d accepted, %d carried", accepted, carried)
				return
			}
		}
	}()
	for i := range 30 {
		settleAll(t, l, accepted(claimAll(t, l, batch(fmt.Sprint("m", i), 3), "a").Messages))
	}
	end()
	if words, found := <-wrong; found {
		t.Error(words)
	}
}

// TestALateReceiptCorrectsAClosedDay, and both figures can be read: those of the first closing, and
// the present ones. The figures stay when the rows are dropped.
func TestALateReceiptCorrectsAClosedDay(t *testing.T) {
	t.Parallel()
	tier.OneWindow(t, 24*time.Hour)
	r := lend(t)
	apply(t, r.l, ledger.ChannelSpec{Name: "a"})
	m := claimAll(t, r.l, batch("m", 3), "a").Messages
	for i := range m {
		settleAll(t, r.l, expecting(m[i], "r"+m[i].ID))
	}
	first := closeToday(t, r.l)
	receive(t, r.l, receipt("r"+m[0].ID, provider.Delivered))
	second := closeToday(t, r.l)
	delivered := func(where string) int {
		return scalar[int](t, r.db,
			`select coalesce(sum(delivered), 0) from audit.attempt_figures where `+where)
	}
	if delivered("revision = 1") != 0 || delivered("revision = 2") != 1 || delivered("true") != 1 {
		t.Errorf("delivered: %d, then %d more", delivered("revision = 1"), delivered("revision = 2"))
	}
	_, closings, err := r.l.Reports.Day(t.Context(), ledger.NewBusinessDay(time.Now(), time.UTC))
	second.Figures = []ledger.FigureChange{{
		At: second.At, Revision: 2, Route: "default", Channel: "a", Currency: "GBP",
		Figure: "delivered", Was: 0, Now: 1,
	}}
	if diff := cmp.Diff([]ledger.DayClosing{first, second}, closings); err != nil || diff != "" {
		t.Errorf("%v: %s", err, diff)
	}
	if first.Changes != 3 || second.Changes != 1 {
		t.Errorf("%d and %d rows were written", first.Changes, second.Changes)
	}
	want := reportToday(t, r.l)
	execute(t, r.db, `truncate dispatcher.messages, dispatcher.attempts`)
	_, _, err = r.l.Reports.Close(t.Context(), ledger.NewBusinessDay(time.Now(), time.UTC), nil)
	if !errors.Is(err, ledger.ErrRowsGone) {
		t.Errorf("closed without its rows: %v", err)
	}
	if diff := cmp.Diff(want, reportToday(t, r.l)); diff != "" || len(want.Rows) != 1 {
		t.Error(diff)
	}
}

// twoAmbiguous sends two messages on channel a. Nobody knows whether the carrier has taken them.
func twoAmbiguous(t *testing.T, l *ledger.Ledger) (m []ledger.Message, lost []ledger.Settlement) {
	t.Helper()
	m = claimAll(t, l, batch("m", 2), "a").Messages
	now, err := l.Clock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range m {
		s := unknown(m[i])
		s.Ambiguity = &ledger.Ambiguity{
			Key: "k", Step: ledger.Lookup, Until: now.Add(time.Minute), NextAt: now,
		}
		lost = append(lost, s)
	}
	settleAll(t, l, lost)
	return m, lost
}

// TestASettledAmbiguityCorrectsAClosedDay: the day was closed while nobody knew whether the carrier
// had taken two messages. It had taken one of them, which is billed, and not the other, which
// another channel may carry.
func TestASettledAmbiguityCorrectsAClosedDay(t *testing.T) {
	t.Parallel()
	tier.OneWindow(t, 24*time.Hour)
	r := lend(t)
	apply(t, r.l, ledger.ChannelSpec{Name: "a"})
	m, lost := twoAmbiguous(t, r.l)
	closeToday(t, r.l)
	// reports expects the one row of the closed day.
	reports := func(want ledger.DailyRow) {
		t.Helper()
		want.Route, want.Channel, want.Attempts, want.Currency = "default", "a", 2, "GBP"
		rows := figuresOf(t, r.l, time.Now()).Rows
		if diff := cmp.Diff([]ledger.DailyRow{want}, rows); diff != "" {
			t.Error(diff)
		}
	}
	unsure := ledger.DailyRow{Submitted: 2, Unknown: 2, UnknownSegments: 2, UnknownMicros: 56_000}
	reports(unsure)
	taken, not := accepted(m[:1])[0], refusedLate(lost[1])
	resolve(t, r.l, ledger.Resolution{
		Seq: m[0].Seq, Key: "k", As: ledger.Taken, Author: "ann", Settlement: &taken,
	})
	reports(unsure) // until it is closed again
	closeToday(t, r.l)
	reports(ledger.DailyRow{
		Submitted: 2, Accepted: 1, Segments: 1, CostMicros: 28_000, Unknown: 1, UnknownSegments: 1,
		UnknownMicros: 28_000,
	})
	resolve(t, r.l, ledger.Resolution{
		Seq: m[1].Seq, Key: "k", As: ledger.NotTaken, Author: "ann", Settlement: &not,
		Move: &ledger.Move{State: ledger.Retry, Reason: "refused", Tried: true},
	})
	closeToday(t, r.l)
	reports(ledger.DailyRow{
		Submitted: 1, Accepted: 1, Segments: 1, CostMicros: 28_000, Refused: 1,
	})
	got := figuresOf(t, r.l, time.Now())
	if len(got.Carried) != 1 || got.Carried[0].Messages != 1 || got.Carried[0].CostMicros != 28_000 ||
		len(got.Choices) != 2 || got.Choices[0].Cause != "" || got.Choices[1].Cause != "open" {
		t.Errorf("carried %+v of %+v", got.Carried, got.Choices)
	}
}

// TestADayIsClosedAgainAfterAPersonSettledSomethingOfIt: at once, and not again after that. What
// the dispatcher settles by itself waits until the day has grown old.
func TestADayIsClosedAgainAfterAPersonSettledSomethingOfIt(t *testing.T) {
	t.Parallel()
	tier.OneWindow(t, 24*time.Hour)
	r := lend(t)
	apply(t, r.l, ledger.ChannelSpec{Name: "a"})
	m, _ := twoAmbiguous(t, r.l)
	// A day that ended half an hour ago, and was closed a minute ago.
	execute(t, r.db, `update dispatcher.messages set received_at = now() - interval '1 hour'`)
	execute(t, r.db, `
		insert into dispatcher.closings (day, revision, zone, from_at, to_at, at, changes)
		values ((now() at time zone 'UTC')::date, 1, 'UTC', now() - interval '2 hours',
		  now() - interval '30 minutes', now() - interval '1 minute', 1)`)
	today := time.Now().UTC().Format(time.DateOnly)
	unclosed := func(want bool, when string) {
		t.Helper()
		got, err := r.l.Reports.Unclosed(t.Context(), 400*24*time.Hour)
		if err != nil || slices.Contains(got, today) != want {
			t.Errorf("%s: %v, error %v", when, got, err)
		}
	}
	unclosed(false, "closed")
	taken := accepted(m[:1])[0]
	resolve(t, r.l, ledger.Resolution{
		Seq: m[0].Seq, Key: "k", As: ledger.Taken, Settlement: &taken,
	})
	unclosed(false, "settled by the dispatcher")
	taken = accepted(m[1:])[0]
	resolve(t, r.l, ledger.Resolution{
		Seq: m[1].Seq, Key: "k", As: ledger.Taken, Author: "ann", Settlement: &taken,
	})
	unclosed(true, "settled by ann")
	execute(t, r.db, `update dispatcher.closings set at = now()`)
	unclosed(true, "closed in the same seconds")
	execute(t, r.db, `update dispatcher.ambiguous set closed_at = closed_at - interval '11 s'`)
	unclosed(false, "closed again")
}

// TestHoursAndCurrenciesOfAClosedDayAreToldApart: hours are by the clock of the day's time zone,
// and amounts of two currencies are never added.
func TestHoursAndCurrenciesOfAClosedDayAreToldApart(t *testing.T) {
	t.Parallel()
	r := lend(t)
	zone, err := time.LoadLocation("Asia/Tokyo")
	if err != nil {
		t.Fatal(err)
	}
	day := ledger.NewBusinessDay(time.Date(2026, 11, 21, 12, 0, 0, 0, zone), zone)
	for hour, currency := range map[int]string{0: "GBP", 1: "EUR", 23: "GBP"} {
		for _, also := range []string{currency, "USD"} {
			execute(t, r.db, `insert into dispatcher.carried_figures (day, revision, hour,
				routing_version, route, first_choice, channel, cause, tenant, calling_code, messages,
				currency, segments, cost_micros)
				values ('2026-11-21', 1, $1, 1, 'default', 'a', 'a', '', '', 0, 1, $2, 2, 7)`,
				day.From.Add(time.Duration(hour)*time.Hour+time.Minute), also)
		}
	}
	execute(t, r.db, `insert into dispatcher.closings (day, revision, zone, from_at, to_at,
		changes) values ('2026-11-21', 1, 'Asia/Tokyo', $1, $2, 3)`, day.From, day.To)
	figures, err := r.l.Reports.Range(t.Context(),
		[]ledger.RangeDay{{BusinessDay: day, Period: "day"}}, ledger.Split{Hour: true}, func(int64) {})
	if err != nil || len(figures.Open) > 0 || len(figures.Parts) != 3 {
		t.Fatalf("%v, %+v", err, figures)
	}
	for _, p := range figures.Parts {
		want := map[int16]string{0: "GBP", 1: "EUR", 23: "GBP"}[p.Hour]
		if want == "" || len(p.Carried) != 2 || p.Carried[0].Currency != want ||
			p.Carried[1].Currency != "USD" || p.Carried[0].CostMicros != 7 {
			t.Errorf("%+v", p)
		}
	}
	whole, _, err := r.l.Reports.Day(t.Context(), day)
	if c := whole.Carried; err != nil || len(c) != 3 || c[2].Currency != "USD" ||
		c[2].CostMicros != 21 {
		t.Errorf("%v, %+v", err, c)
	}
}

// TestAnOpenDayHasTheHoursOfItsZone: what a closed day has is tested above.
func TestAnOpenDayHasTheHoursOfItsZone(t *testing.T) {
	t.Parallel()
	r := lend(t)
	zone, err := time.LoadLocation("Asia/Kathmandu") // 5:45 ahead of UTC
	if err != nil {
		t.Fatal(err)
	}
	apply(t, r.l, ledger.ChannelSpec{Name: "a"})
	settleAll(t, r.l, accepted(claimAll(t, r.l, batch("m", 1), "a").Messages))
	at := scalar[time.Time](t, r.db, `select received_at from audit.messages`)
	figures, err := r.l.Reports.Range(t.Context(),
		[]ledger.RangeDay{{BusinessDay: ledger.NewBusinessDay(at, zone)}}, ledger.Split{Hour: true}, nil)
	if err != nil || len(figures.Open) != 1 || len(figures.Parts) == 0 {
		t.Fatalf("%v, %+v", err, figures)
	}
	// Hours are counted from midnight of the zone.
	if hour := figures.Parts[0].Hour; int(hour) != at.In(zone).Hour() {
		t.Errorf("received at %s, counted in hour %d", at.In(zone), hour)
	}
}

// TestDaysAreLookedAtAgainAsTheyGrowOld: Unclosed lists a day until it is closed, and again
// whenever it is three times as old, as long as its rows are certainly kept.
func TestDaysAreLookedAtAgainAsTheyGrowOld(t *testing.T) {
	t.Parallel()
	url := ledgertest.Fresh(t)
	l, db := connect(t, ledger.Config{URL: url}), raw(t, url)
	execute(t, db, `select dispatcher.make_day(dispatcher.day_at(now()) - n)
		from generate_series(1, 5) n`)
	today := time.Now().UTC().Truncate(24 * time.Hour)
	date := func(ago int) string { return today.AddDate(0, 0, -ago).Format(time.DateOnly) }
	// Closed an hour after its end, which is long ago, just now, or too long ago.
	closed := func(ago int, looked string) {
		execute(t, db, `insert into dispatcher.closings (day, revision, zone, from_at, to_at, at, changes)
			values ($1::date, 1, 'UTC', $1::timestamp at time zone 'UTC',
			  ($1::date + 1)::timestamp at time zone 'UTC', `+looked+`, 0)`, date(ago))
	}
	closed(5, `now()`)
	closed(4, `($1::date + 1)::timestamp at time zone 'UTC' + interval '1 hour'`)
	closed(3, `now()`)
	closed(201, `($1::date + 1)::timestamp at time zone 'UTC' + interval '1 hour'`)
	got, err := l.Reports.Unclosed(t.Context(), 400*24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) > 0 && got[len(got)-1] == date(-1) { // already the next day in some zone
		got = got[:len(got)-1]
	}
	// West of UTC, the sixth day ago ended on the UTC day that is the oldest of the ledger.
	if diff := cmp.Diff([]string{date(6), date(4), date(2), date(1), date(0)}, got); diff != "" {
		t.Error(diff)
	}
	got, err = l.Reports.Unclosed(t.Context(), 403*24*time.Hour)
	if err != nil || got[0] != date(201) {
		t.Errorf("%v, %v", got, err)
	}
	yesterday := ledger.NewBusinessDay(today.Add(-time.Hour), time.UTC)
	if yesterday.CanClose(today.Add(59*time.Minute)) || !yesterday.CanClose(today.Add(time.Hour)) {
		t.Error("a day is closed an hour after its end")
	}
}

// TestOneInstanceClosesADayAtATime: the other leaves it, and there is one revision.
func TestOneInstanceClosesADayAtATime(t *testing.T) {
	t.Parallel()
	tier.OneWindow(t, 24*time.Hour)
	r := lend(t)
	apply(t, r.l, ledger.ChannelSpec{Name: "a"})
	claimAll(t, r.l, batch("m", 3), "a")
	watch := raw(t, r.url)
	execute(t, r.db, `begin`)
	execute(t, r.db, `lock table dispatcher.carried_figures`)
	day := ledger.NewBusinessDay(time.Now(), time.UTC)
	first := waiting(t, watch, func() error {
		_, _, err := r.l.Reports.Close(t.Context(), day, nil)
		return err
	})
	if _, ours, err := r.l.Reports.Close(t.Context(), day, nil); ours || err != nil {
		t.Errorf("both closed it, %v", err)
	}
	execute(t, r.db, `commit`)
	if err := <-first; err != nil {
		t.Error(err)
	}
	if n := scalar[int](t, r.db, `select count(*) from dispatcher.closings`); n != 1 {
		t.Errorf("%d revisions", n)
	}
}
