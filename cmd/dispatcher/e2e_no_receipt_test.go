package main

import (
	"slices"
	"testing"
	"time"

	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/config/tier"
	"dispatcher/provider/smpp/smpptest"
)

// TestWithoutAReceiptAMessageGoesOnOnce: carrier a never sends a receipt, b does. Each message that
// was drawn for a goes on to b once and is delivered there. Both attempts are billed.
func TestWithoutAReceiptAMessageGoesOnOnce(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	const n = 60
	s := newStage(t, stageConfig{
		channels: []channel{
			{
				name: "a", weight: "1", document: "receipts: {within: 1h}",
				behaviour: smpptest.Behaviour{Decide: func(smpptest.Submit) smpptest.Answer {
					return smpptest.Answer{Receipt: &smpptest.Receipt{Never: true}}
				}},
			},
			{
				name: "b", weight: "1", document: "receipts: {within: 1h}",
				behaviour: smpptest.Behaviour{Decide: func(smpptest.Submit) smpptest.Answer {
					return smpptest.Answer{Receipt: &smpptest.Receipt{Delay: 50 * time.Millisecond}}
				}},
			},
		},
		route: "no_receipt: {after: 30s}",
	})
	processes := s.runAll(2)
	s.joined(len(processes))
	ids := s.publish("bulk", short("silent", n))
	tier.Within(t, stepTimeout, "every message is delivered", func() bool {
		return s.count(`select count(*) from audit.messages where state = 'delivered'`) == n
	})
	drawn := s.count(`select count(*) from audit.messages where first_choice = 'a'`)
	if drawn == 0 || drawn == n {
		t.Fatalf("got %d of %d messages drawn for a", drawn, n)
	}
	if got := s.count(`select count(*) from audit.attempts where reason = 'no_receipt'
		and attempt = 2 and channel = 'b' and outcome = 'accepted' and price_micros > 0`); got != drawn {
		t.Errorf("got %d messages that went on, want the %d that a accepted", got, drawn)
	}
	if got := s.count(`select count(*) from audit.attempts`); got != n+drawn {
		t.Errorf("got %d attempts, want %d", got, n+drawn)
	}
	if got := s.count(`select count(*) from audit.messages where possible_duplicate`); got != drawn {
		t.Errorf("got %d messages flagged as possible duplicates, want %d", got, drawn)
	}
	for name, want := range map[string]int64{"a": drawn, "b": n} {
		var got []string
		for _, submit := range s.carriers[name].Submits() {
			got = append(got, idOf(submit.Text))
		}
		slices.Sort(got)
		if int64(len(got)) != want || int64(len(slices.Compact(got))) != want {
			t.Errorf("carrier %s got %d submits, want %d different ones", name, len(got), want)
		}
	}
	if got := s.count(`select count(*) from dispatcher.due`); got != 0 {
		t.Errorf("got %d rows in due, want 0", got)
	}
	s.checkAllArrived(ids)
	s.checkVerified(n)
	s.checkFurther(drawn)
}

// checkFurther checks the report's figures for messages that went from a to b.
func (s *stage) checkFurther(messages int64) {
	s.t.Helper()
	day := s.report()
	for i := range day.Rows {
		row := &day.Rows[i]
		want := map[string]int64{"b": messages}[row.Channel]
		if row.Further != want || row.Fallback+row.Retries+row.Resends != 0 {
			s.t.Errorf("row of %s: got %d further attempts, want %d: %+v", row.Channel, row.Further,
				want, row)
		}
		if row.Channel == "a" && !slices.ContainsFunc(row.Moved, func(m report.Move) bool {
			return m.Cause == "no_receipt" && m.Channel == "b" && m.Messages == messages
		}) {
			s.t.Errorf("the report counts no moved messages: %+v", row.Moved)
		}
	}
	for _, w := range day.Routes[0].Waterfall {
		got, segments := w.Agreed, w.AgreedSegments
		for _, step := range w.Steps {
			got, segments = got+step.Messages, segments+step.Segments
		}
		if got != w.Carried || segments != w.CarriedSegments {
			s.t.Errorf("the waterfall of %s does not add up: %+v", w.Channel, w)
		}
	}
}

// TestAKillBetweenTwoChannelsSendsNothingAThirdTime: carrier a never sends receipts. One process is
// killed before the messages go on, another while they are in flight to b, which does not answer.
// No message is lost or sent a third time, and all stay accepted, flagged as possible duplicates.
func TestAKillBetweenTwoChannelsSendsNothingAThirdTime(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	const n = 20
	hold := make(chan struct{})
	defer close(hold)
	silent := smpptest.Behaviour{Decide: func(smpptest.Submit) smpptest.Answer {
		return smpptest.Answer{Receipt: &smpptest.Receipt{Never: true}}
	}}
	s := newStage(t, stageConfig{
		channels: []channel{
			{name: "a", weight: "1", document: "receipts: {within: 1h}", behaviour: silent},
			{
				name: "b", weight: "0", document: "receipts: {within: 1h}", settings: patient,
				behaviour: smpptest.Behaviour{Decide: func(smpptest.Submit) smpptest.Answer {
					return smpptest.Answer{Hold: hold}
				}},
			},
			{name: "c", weight: "0", document: "receipts: {within: 1h}", behaviour: silent},
		},
		route: "fallback: order, no_receipt: {after: 30s}",
		// Long enough that attempts are still under way when the second process is killed.
		settings: map[string]string{"SEND_TIMEOUT": "40s"},
	})
	first := s.runAll(1)[0]
	ids := s.publish("bulk", short("killed", n))
	const due = `select count(*) from audit.messages m join facts.messages f using (id)
		where m.state = 'accepted' and f.next_at is not null`
	tier.Within(t, stepTimeout, "a took all messages", func() bool { return s.count(due) == n })
	first.kill(t)
	if got := s.count(`select count(*) from audit.attempts`); got != n {
		t.Fatalf("got %d attempts before the kill, want %d", got, n)
	}

	second := s.runAll(1)[0]
	tier.Within(t, stepTimeout, "all messages are on their way to b", func() bool {
		return s.carriers["b"].Stats().Submits == n
	})
	second.kill(t)
	s.runAll(1)
	tier.Within(t, stepTimeout, "the attempts are closed", func() bool {
		return s.count(`select count(*) from audit.attempts where reason = 'no_receipt'
			and outcome = 'unknown'`) == n
	})
	await(t.Context(), 32*time.Second) // longer than the wait before a message goes on
	for name, want := range map[string]uint64{"a": n, "b": n, "c": 0} {
		if got := s.carriers[name].Stats().Submits; got != want {
			t.Errorf("carrier %s got %d submits, want %d", name, got, want)
		}
	}
	if got := s.count(`select count(*) from audit.messages where state = 'accepted'
		and possible_duplicate`); got != n {
		t.Errorf("got %d accepted and flagged messages, want %d", got, n)
	}
	s.checkAllArrived(ids)
	s.checkVerified(n)
}
