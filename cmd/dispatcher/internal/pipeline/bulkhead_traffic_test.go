package pipeline

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/config"
	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/provider"
	"dispatcher/selector"
)

// unbounded lets every channel have as many submissions in flight as the process.
func unbounded(r *decide.Routing) {
	r.Lanes["bulk"] = decide.Lane{Lane: config.Lane{
		Name: "bulk", TTL: time.Hour,
		MaxWaiting: 10_000,
	}}
	for i := range r.Channels {
		r.Channels[i].Concurrency = 500
	}
}

// holdAnswers stops a channel from answering until the returned function is called. If only is not
// empty, it names the one message that is not answered.
func (p *pipeline) holdAnswers(t *testing.T, channel, only string) (answer func()) {
	gate := make(chan struct{})
	answer = sync.OnceFunc(func() { close(gate) })
	t.Cleanup(answer) // before the pipeline stops
	p.channels[channel].answer = func(s provider.Submission) provider.Result {
		if only == "" || s.ID == only {
			<-gate
		}
		return accepts(s)
	}
	return answer
}

// firstOf returns the first message of a series that is drawn for a channel.
func (p *pipeline) firstOf(t *testing.T, channel string, prefix string) string {
	t.Helper()
	table := p.routing.Routes[0].Table
	drawer := selector.NewDrawer(testKeys[0])
	for i := range 1000 {
		id := fmt.Sprintf("%s-%d", prefix, i)
		if table.Entry(table.Pick(drawer.Draw(id, 1, table.Size()))).Name == channel {
			return id
		}
	}
	t.Fatal("no message for the channel")
	return ""
}

// shareOf returns how much a channel may hold whatever the others do.
func (p *pipeline) shareOf(channel string) int {
	f := inFlight{portion: p.routing.Portions()[p.routing.Channel(channel)], senders: 500}
	return f.share(p.cfg.MaxUnsettled)
}

// setWeights sets the weights of a, b and c.
func setWeights(t *testing.T, r *decide.Routing, a, b, c string) {
	t.Helper()
	table, err := selector.NewTable([]selector.Entry{
		{Name: "a", Weight: selector.MustWeight(a)},
		{Name: "b", Weight: selector.MustWeight(b)},
		{Name: "c", Weight: selector.MustWeight(c)},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.Routes[0].Table = table
}

// answersAfter makes all channels answer after a while.
func (p *pipeline) answersAfter(latency time.Duration) {
	for _, c := range p.channels {
		c.answer = func(s provider.Submission) provider.Result {
			time.Sleep(latency)
			return accepts(s)
		}
	}
}

// carriedAsDrawn waits until all messages are accepted, except the lost ones. It fails if a
// channel's part differs from what was drawn for it by more than a few points.
func (p *pipeline) carriedAsDrawn(t *testing.T, messages int64, lost *atomic.Int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), tier.LongestWait)
	defer cancel()
	for p.counts(t, byState)["accepted"] < messages-lost.Load() {
		if !ledger.Pause(ctx, 20*time.Millisecond) {
			t.Fatalf("got %d lost messages of %v", lost.Load(), p.counts(t, byState))
		}
	}
	drawn := p.counts(t, `select first_choice, count(*) from audit.messages group by 1`)
	carried := p.counts(t, `select channel, count(*) from audit.attempts group by 1`)
	for _, channel := range []string{"a", "b", "c"} {
		if off := carried[channel] - drawn[channel]; off*33 > messages || off*33 < -messages {
			t.Errorf("%[3]s: want %[1]d of %[2]d messages carried, as drawn, got %[4]d", drawn[channel], messages,
				channel, carried[channel])
		}
	}
}

// TestAFullPollIsOneClaim: the slots reserved for the first lane are beside those of the others.
// Otherwise a few messages of each poll would need a claim of their own.
func TestAFullPollIsOneClaim(t *testing.T) {
	t.Parallel()
	p := setup(t, func(r *decide.Routing) {
		unbounded(r)
		lane := r.Lanes["bulk"]
		lane.Order = 1
		r.Lanes["bulk"] = lane
	})
	messages := int64(p.slots.size())
	p.handle(t, jobsNamed("m", p.slots.size()))
	p.eventually(t, byState, map[string]int64{"accepted": messages})
	p.eventually(t, `select 'claims', count(distinct claimed_at) from audit.attempts`,
		map[string]int64{"claims": 1})
}

// TestOneLostAnswerDelaysNoOtherMessage: a single submission is not answered, and everything else
// continues, on its own channel, too. A claim that waited for all slots would wait for that one.
func TestOneLostAnswerDelaysNoOtherMessage(t *testing.T) {
	t.Parallel()
	p := setup(t, unbounded)
	answer := p.holdAnswers(t, "c", p.firstOf(t, "c", "m"))
	messages := tier.Size[int64](1500, 3000)
	p.handle(t, jobsNamed("m", int(messages)))
	p.eventually(t, byState, map[string]int64{"accepted": messages - 1, "sending": 1})
	p.eventually(t, `select reason, count(*) from audit.attempts group by 1`,
		map[string]int64{"first_choice": messages})
	answer()
	p.eventually(t, byState, map[string]int64{"accepted": messages})
}

// TestAChannelThatAnswersNothingTakesNoRoomFromTheOthers: it holds no more than its bound, and the
// others carry the rest. When it answers again, it gets messages again.
func TestAChannelThatAnswersNothingTakesNoRoomFromTheOthers(t *testing.T) {
	t.Parallel()
	p := setup(t, unbounded)
	answer := p.holdAnswers(t, "c", "")
	messages := tier.Size[int64](1500, 3000)
	p.handle(t, jobsNamed("m", int(messages)))
	// before any answer is known
	most := int64(p.cfg.MaxUnsettled - p.shareOf("a") - p.shareOf("b"))
	p.eventually(t, `select 'all', count(*) from audit.attempts
		where outcome = 'accepted' and channel <> 'c' or outcome is null and channel = 'c'`,
		map[string]int64{"all": messages})
	if held := int64(len(p.channels["c"].submits())); held > most {
		t.Errorf("the channel without answers got %d messages, its bound is %d", held, most)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(p.cfg.Metrics.full)
	if _, counted := gathered(t, registry)["full_channels_total c bulkhead"]; !counted {
		t.Error("no metric shows that the bound of c limits")
	}
	answer()
	p.eventually(t, byState, map[string]int64{"accepted": messages})
	p.handle(t, jobsNamed("after", 100))
	p.eventually(t, byState, map[string]int64{"accepted": messages + 100})
	p.eventually(t, `select 'by c', least(count(*), 1) from audit.attempts where channel = 'c' `+
		`and message_id like 'after-%'`, map[string]int64{"by c": 1})
}

// TestAChannelWithFewSendersHoldsWhatItCanSubmitSoon: two senders at 100 ms submit 40 messages in
// two seconds. Messages beyond that go to the others at once, and do not fill the process.
func TestAChannelWithFewSendersHoldsWhatItCanSubmitSoon(t *testing.T) {
	t.Parallel()
	p := setup(t, func(r *decide.Routing) {
		unbounded(r)
		r.Channels[2].Concurrency = 2
	})
	p.loads["c"].usual.Store(int64(100 * time.Millisecond))
	answer := p.holdAnswers(t, "c", "")
	const messages = 450
	p.handle(t, jobsNamed("m", messages))
	narrow := inFlight{senders: 2, usual: 100 * time.Millisecond}
	counts := p.counts(t,
		`select channel || ' ' || reason, count(*) from audit.attempts group by 1`)
	if held, most := counts["c first_choice"], int64(narrow.sendable()); held == 0 || held > most {
		t.Errorf("c got %d of the messages that were drawn for it, and submits %d in time",
			held, most)
	}
	if counts["a fallback"]+counts["b fallback"] == 0 {
		t.Errorf("nothing went to the others: %v", counts)
	}
	answer()
	p.eventually(t, byState, map[string]int64{"accepted": messages})
}

// TestWhatWaitsForRoomIsWokenByAnswers: the only channel that can be used does not answer for a
// while.
func TestWhatWaitsForRoomIsWokenByAnswers(t *testing.T) {
	t.Parallel()
	p := setup(t, func(r *decide.Routing) {
		unbounded(r)
		r.Channels[0].State, r.Channels[1].State = decide.Draining, decide.Draining
	})
	answer := p.holdAnswers(t, "c", "")
	messages := tier.Size[int64](700, 1200)
	p.handle(t, jobsNamed("m", int(messages)))
	if waiting := p.counts(t, byState)["waiting"]; waiting < messages-500 {
		t.Errorf("%d messages wait", waiting)
	}
	answer()
	p.eventually(t, byState, map[string]int64{"accepted": messages})
}

// TestPromptChannelsAtFullLoadKeepTheirShares: one channel has nine of ten messages, more than its
// bound allows in flight. Claims wait for it, and no message goes elsewhere.
func TestPromptChannelsAtFullLoadKeepTheirShares(t *testing.T) {
	t.Parallel()
	p := setup(t, func(r *decide.Routing) {
		unbounded(r)
		setWeights(t, r, "90", "5", "5")
	})
	p.answersAfter(30 * time.Millisecond)
	for _, l := range p.loads {
		// so that a busy machine does not look like a fault
		l.usual.Store(int64(slowAnswers) - 1)
	}
	messages := tier.Size[int64](1500, 4000)
	p.handle(t, jobsNamed("m", int(messages)))
	p.eventually(t, byState, map[string]int64{"accepted": messages})
	p.eventually(t, `select reason, count(*) from audit.attempts group by 1`,
		map[string]int64{"first_choice": messages})
}

// TestAChannelThatStopsAnsweringHasItsShareAtMost: it has answered before. As soon as a submission
// takes longer than usual, the channel gets no more than its share.
func TestAChannelThatStopsAnsweringHasItsShareAtMost(t *testing.T) {
	t.Parallel()
	p := setup(t, unbounded)
	const before, messages = 200, 3000
	p.handle(t, jobsNamed("before", before))
	p.eventually(t, byState, map[string]int64{"accepted": before})
	answer, carried := p.holdAnswers(t, "c", ""), len(p.channels["c"].submits())
	first := jobsNamed("m", 1)
	first[0].Message.ID = p.firstOf(t, "c", "first")
	p.handle(t, first)
	for f := (inFlight{unknown: true}); f.unknown || f.answered > 0; {
		time.Sleep(10 * time.Millisecond)
		f = p.workers["c"].inFlight(time.Now())
	}
	p.handle(t, jobsNamed("m", messages))
	most := int64(p.shareOf("c"))
	p.eventually(t, `select 'others', least(count(*), `+fmt.Sprint(before+messages-most)+
		`) from audit.messages where state = 'accepted'`,
		map[string]int64{"others": before + messages - most})
	if held := len(p.channels["c"].submits()) - carried; int64(held) > most {
		t.Errorf("the channel without answers got %d messages, its share is %d", held, most)
	}
	answer()
	p.eventually(t, byState, map[string]int64{"accepted": before + messages + 1})
}

// TestSlowChannelsKeepTheirShares: all answers take more than a second without any fault, and there
// are more messages than fit in flight.
func TestSlowChannelsKeepTheirShares(t *testing.T) {
	t.Parallel()
	p := setup(t, func(r *decide.Routing) {
		unbounded(r)
		setWeights(t, r, "60", "30", "10")
	})
	p.answersAfter(1200 * time.Millisecond)
	const messages = 1500
	p.handle(t, jobsNamed("m", messages))
	p.carriedAsDrawn(t, messages, new(atomic.Int64))
}

// TestLostAnswersDoNotMoveTraffic: one answer in fifty is lost on a channel that gives all others
// at once. It carries what was drawn for it, and a channel without weight carries nothing.
func TestLostAnswersDoNotMoveTraffic(t *testing.T) {
	t.Parallel()
	p := setup(t, func(r *decide.Routing) {
		unbounded(r)
		setWeights(t, r, "40", "0", "60")
	})
	p.answersAfter(3 * time.Millisecond)
	messages := tier.Size[int64](4000, 6000)
	gate, lossy := make(chan struct{}), p.channels["c"].answer
	answer := sync.OnceFunc(func() { close(gate) })
	t.Cleanup(answer)
	var submits, lost atomic.Int64
	p.channels["c"].answer = func(s provider.Submission) provider.Result {
		if submits.Add(1)%50 == 0 {
			lost.Add(1)
			<-gate
		}
		return lossy(s)
	}
	p.handle(t, jobsNamed("m", int(messages)))
	p.carriedAsDrawn(t, messages, &lost)
	answer()
	p.eventually(t, byState, map[string]int64{"accepted": messages})
}
