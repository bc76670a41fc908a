package decide

import (
	"fmt"
	"strconv"
	"time"

	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/ledger"
	"dispatcher/provider/sms"
	"dispatcher/selector"
)

// Task is one message in a claim: its row, and what was worked out about it before the shared state
// was read.
type Task struct {
	Row   ledger.Message
	msg   envelope.Message
	to    Destination
	At    time.Time // time for prices: that of the claim, by the database's clock
	text  string    // what most channels send: msg.Text, or with look-alikes replaced
	Route *Route    // nil for a message that will not be sent
	First int       // index of the first choice among the route's members; -1 without one
	Lane  Lane
	since time.Time // see Attempt.Since
	// common is the number of billed parts on channels that count the usual way.
	common  int
	counted counted
	letter  *ledger.Notice // dead letter that goes with the row
	was     ledger.State   // state of a due row before this claim
	problem envelope.Code  // why a due row can no longer be sent
	// optedOut says that the recipient has opted out of the tenant's messages, and that the lane
	// respects opt-outs.
	optedOut bool
	// cancelledBefore says that a new message was cancelled before it was stored.
	cancelledBefore bool
	// withoutPayload says that number and text have been erased. The task is planned from its row
	// alone, and nothing that depends on them is derived.
	withoutPayload bool
	// anySender says that every channel can write every sender, see Replay.ExclusionForAnySender.
	anySender bool
	// waitedWhy is what a due row waited for until now.
	waitedWhy string
	Scores    *Scores // what the route's scoring function answered; nil when it was not asked
}

// Traceparent is the trace that the message belongs to; empty for none.
func (t *Task) Traceparent() string { return t.msg.Traceparent }

// counted is how the last channel splits the text. It is a cache of one entry.
type counted struct {
	channel  *Channel
	text     string
	segments int
}

// segments is how many billed parts the message has on a channel.
func (t *Task) segments(c *Channel) int {
	if c.Segments == nil || t.withoutPayload {
		return t.common
	}
	return t.cut(c).segments
}

// textOn is the text that a channel sends.
func (t *Task) textOn(c *Channel) string {
	if c.Segments == nil {
		return t.text
	}
	return t.cut(c).text
}

// recut reports whether only some parts are left to be sent, and the channel would split the text
// differently from the channel that took the others. The settings or the provider may have changed,
// or the route may replace look-alikes now. The same part numbers would then stand for other words:
// some would be sent twice and some never.
func (t *Task) recut(c *Channel) bool {
	if len(t.Row.PartsLeft) == 0 {
		return false
	}
	cut := ""
	if c.Cut != nil {
		cut = c.Cut(t.textOn(c))
	}
	return cut != t.Row.PartsCut
}

// lapse is the reason why a message past its deadline failed: cut_otherwise when the rest of it
// could not be sent because the channel now splits the text differently, else expired.
func (t *Task) lapse() string {
	if t.waitedWhy == CutOtherwise {
		return CutOtherwise
	}
	return reasonExpired
}

// cut splits the text as a channel does, and counts the parts.
func (t *Task) cut(c *Channel) *counted {
	if t.counted.channel != c {
		text := t.text
		if t.Route.Substitute && c.Substitute != nil {
			text = c.Substitute(t.msg.Text)
		}
		t.counted = counted{channel: c, text: text, segments: c.Segments(text)}
	}
	return &t.counted
}

// Wanted reports whether the message looks for a channel in this claim.
func (t *Task) Wanted() bool { return t.Route != nil && t.Row.State == ledger.Sending }

// planner works out, for one batch, everything about a message that needs no shared state. It is
// pure apart from the drawers' scratch space, so each batch has its own.
type planner struct {
	routing *Routing
	keys    *drawers
	now     time.Time
	// begun says that an earlier attempt was made, so that no block stops the message any more. An
	// auditor cannot always read that from the row.
	begun bool
}

// plan turns a Kafka record into a task. Its row is inserted as Sending when a channel is to be
// found in this claim, as Scheduled when its time lies ahead, as Rejected when a rule forbids
// sending it, and as Dead when it can never be sent.
func (p *planner) plan(job *Job) Task {
	t := Task{
		msg: job.Message, since: later(job.Produced, job.Message.SendAt), First: -1,
	}
	t.Lane = p.routing.Lane(job.Lane)
	t.Row = ledger.Message{
		ID:       job.Message.ID,
		Lane:     job.Lane,
		Tenant:   job.Message.Tenant,
		Origin:   job.Origin,
		Envelope: job.stored(),
		State:    ledger.Sending,
	}
	if t.Row.ID == "" {
		t.Row.ID = positionID(job.Origin)
	}
	t.Row.Salt, t.Row.EnvelopeHMAC = p.keys.ofEnvelope(0, t.Row.ID, t.Row.Envelope)
	if job.Problem != nil {
		p.makeDead(&t, job, job.Problem)
		return t
	}
	if problem := envelope.CheckSender(&job.Message); problem != nil {
		p.makeDead(&t, job, problem)
		return t
	}
	t.Row.Digest = job.Message.Digest()
	t.Row.Recipient = ledger.Recipient(job.Message.Tenant, job.Message.To)
	t.Row.CallingCode = CallingCode(job.Message.To)
	t.Row.Sender = SenderOf(job.Message.From)
	t.Row.NumberHMAC = p.keys.ofNumber(0, job.Message.To)
	t.Row.ExpiresAt = deadline(&job.Message, job.Produced, t.Lane)
	switch problem := p.choose(&t); {
	case problem == nil:
	case problem.Code.Rejects():
		t.Row.State, t.Row.Reason = ledger.Rejected, string(problem.Code)
		return t
	default:
		p.makeDead(&t, job, problem)
		return t
	}
	if job.Message.SendAt.After(p.now) {
		t.Row.State, t.Row.NextAt = ledger.Scheduled, job.Message.SendAt
	}
	return t
}

// stored is the record as it is stored: with its number in E.164 and its trace.
func (j *Job) stored() []byte {
	if j.Rewritten != nil {
		return j.Rewritten
	}
	return j.Raw
}

// planDue makes a task of a row that came due. If the message has no attempt yet, its first choice
// is made again under the current routing: the same id draws the same number under the same key, as
// long as the key file has that key. A message whose route is gone waits for one.
func (p *planner) planDue(row ledger.Message) Task {
	t := Task{
		Row: row, was: row.State, waitedWhy: row.Reason, Lane: p.routing.Lane(row.Lane), First: -1,
	}
	t.Row.State = ledger.Sending
	msg, problem := envelope.Decode(row.Envelope, true)
	if problem != nil { // it was decoded before it was stored: only damage explains this
		t.Row.Reason = string(problem.Code)
		return t
	}
	t.msg = msg
	t.since = t.due(p.now)
	kept := row.Plan
	if problem := p.choose(&t); problem != nil &&
		(problem.Code == envelope.TooManySegments || problem.Code.Rejects()) {
		t.problem = problem.Code // the routing has become stricter since it came
	}
	if row.Attempts > 0 {
		t.Row.Plan = kept
		t.First = p.routing.MemberIndex(t.Route, kept.FirstChoice)
	}
	p.unpinIfGone(&t)
	return t
}

// due is when a due row could first be sent, later by the time for which it was held after that:
// because it was paused, or its route had quiet hours.
func (t *Task) due(now time.Time) time.Time {
	held := func(reason string) bool {
		return reason == reasonPaused || reason == ledger.ReasonQuiet
	}
	at := t.sendable(now)
	for _, wait := range t.Row.Waits {
		if held(wait.Reason) {
			at = at.Add(wait.For)
		}
	}
	if held(t.waitedWhy) && !t.Row.WaitingSince.IsZero() {
		at = at.Add(now.Sub(t.Row.WaitingSince))
	}
	return Earlier(at, now) // the clock may have been set back
}

// unpinIfGone unpins a message that was held for a throttled channel which will not take it any
// more: the route lost the channel, or operators switched it off. A message with accepted parts
// stays pinned, because no other channel may send the rest.
func (p *planner) unpinIfGone(t *Task) {
	if t.Row.Pinned == "" || !t.whole() || t.Route == nil {
		return
	}
	at := p.routing.MemberIndex(t.Route, t.Row.Pinned)
	if at < 0 || p.routing.Channels[t.Route.Members[at]].State != Enabled {
		t.Row.Pinned = ""
	}
}

// choose fills in route and segments, and the draw and first choice when the route draws.
func (p *planner) choose(t *Task) *envelope.Problem {
	if !t.Row.ExpiresAt.After(p.now) {
		return &envelope.Problem{
			Code: envelope.Expired, Detail: "its deadline had passed when it was read",
		}
	}
	t.At = p.now
	t.to = p.routing.destination(&t.msg)
	starts := t.whole() && !p.begun
	if starts {
		if problem := p.routing.excludes(t); problem != nil {
			return problem
		}
	}
	route := p.routing.route(&t.msg, t.Row.Lane, t.sendable(p.now))
	if route == nil {
		return &envelope.Problem{
			Code: envelope.NoRoute, Detail: "no route of the routing document matches it",
		}
	}
	if starts && !route.AllowsCountry(t.to.Country) {
		return countryNotAllowed()
	}
	t.text = t.msg.Text
	if route.Substitute {
		t.text = sms.Substitute(t.text)
	}
	size := sms.Count(t.text, sms.Reference8)
	t.common, t.counted = size.Segments, counted{}
	t.Route, t.First = route, -1
	if n := p.fewest(t); n > route.MaxSegments && len(t.Row.PartsLeft) == 0 {
		t.Route = nil
		return &envelope.Problem{
			Code: envelope.TooManySegments,
			Detail: fmt.Sprintf(
				"its text has %d segments, route %s allows %d", n, route.Name, route.MaxSegments,
			),
		}
	}
	drewUnder := t.Row.Plan.KeyID
	t.Row.Plan = ledger.Plan{
		Route: route.Name, Version: p.routing.Version, Segments: size.Segments,
		Alphabet: size.Alphabet.String(),
	}
	if route.Draws() {
		p.draw(t, drewUnder)
	}
	return nil
}

// whole reports whether no part of the message may have been taken before. A message that is not
// whole is past the rules that apply only to new messages: it is finished.
func (t *Task) whole() bool { return len(t.Row.PartsLeft) == 0 && t.Row.SameKey == "" }

// fewest is the number of parts that the message has on the first member of its route where it is
// within the route's bound; if there is no such member, the least number on any.
func (p *planner) fewest(t *Task) int {
	n := t.common
	for i, c := range t.Route.Members {
		on := t.segments(&p.routing.Channels[c])
		if on <= t.Route.MaxSegments {
			return on
		}
		if i == 0 || on < n {
			n = on
		}
	}
	return n
}

// draw picks the first choice under the key of that id. A sticky draw needs no key here: the keyed
// hash of the number was made when the message came.
func (p *planner) draw(t *Task, keyID string) {
	drawer, table := p.keys.of(keyID), t.Route.Table
	n := table.Size()
	draw := t.draw(drawer)
	t.First = table.Pick(draw)
	t.Row.Plan.Draw, t.Row.Plan.Size, t.Row.Plan.KeyID = int64(draw), int64(n), drawer.KeyID()
	t.Row.Plan.FirstChoice = table.Entry(t.First).Name
}

// draw is the number that the message draws on its route.
func (t *Task) draw(drawer *selector.Drawer) uint64 {
	if t.Route.Sticky {
		return selector.StickyDraw(t.Row.NumberHMAC, t.Route.Table.Size())
	}
	return drawer.Draw(t.Row.ID, 1, t.Route.Table.Size())
}

// deadline is when a message is no longer worth sending: its own expires_at, else the lane's time
// to live, counted from when it was produced or is to be sent.
func deadline(m *envelope.Message, produced time.Time, lane Lane) time.Time {
	if !m.ExpiresAt.IsZero() {
		return m.ExpiresAt
	}
	return later(produced, m.SendAt).Add(lane.TTL)
}

// makeDead turns the task into a dead row with a dead letter.
func (p *planner) makeDead(t *Task, job *Job, problem *envelope.Problem) {
	t.Route = nil
	t.Row.State, t.Row.Reason, t.Row.Detail = ledger.Dead, string(problem.Code), problem.Detail
	t.letter = letter(job, problem)
}

// positionID names a record that has no usable id. It is longer than the 64 characters that a
// producer's id may have, so the two cannot collide.
func positionID(o Origin) string {
	return "record without a usable message id, known by its position in Kafka: " + o.String()
}

// letter is the dead letter of a record: its original bytes, with the reason and the Kafka position
// in headers.
func letter(job *Job, problem *envelope.Problem) *ledger.Notice {
	return &ledger.Notice{
		Kind:  ledger.Letter,
		Key:   job.Message.ID,
		Value: job.Raw,
		Headers: []ledger.Header{
			{Key: "reason", Value: string(problem.Code)},
			{Key: "detail", Value: problem.Detail},
			{Key: "topic", Value: job.Origin.Topic},
			{Key: "partition", Value: strconv.Itoa(int(job.Origin.Partition))},
			{Key: "offset", Value: strconv.FormatInt(job.Origin.Offset, 10)},
			{Key: "lane", Value: job.Lane},
		},
	}
}
