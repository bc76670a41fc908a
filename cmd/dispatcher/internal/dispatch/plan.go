package dispatch

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/ledger"
	"dispatcher/provider/sms"
	"dispatcher/selector"
)

// task is one message on its way through a claim: its row, and what was worked out
// about it before the shared state was seen.
type task struct {
	row      ledger.Message
	msg      envelope.Message
	text     string // what is sent: msg.Text, look-alikes replaced when the route says so
	route    *Route // nil for a message that will not be sent
	lane     Lane
	produced time.Time
	// common is the number of billed parts on channels that count as most do.
	common  int
	letter  *ledger.Notice // dead letter that goes with the row
	was     ledger.State   // state of a due row before this claim
	problem envelope.Code  // why a due row can no longer be sent
}

// segments is how many billed parts the message has on a channel.
func (t *task) segments(c *Channel) int {
	if c.Segments != nil {
		return c.Segments(t.text)
	}
	return t.common
}

// wanted reports whether the message looks for a channel in this claim.
func (t *task) wanted() bool { return t.route != nil && t.row.State == ledger.Sending }

// planner works out, for one batch, everything about a message that needs no shared
// state. It is pure but for the drawer's scratch space, so each batch has its own.
type planner struct {
	routing *Routing
	drawer  *selector.Drawer
	now     time.Time
}

// plan turns a Kafka record into a task. Its row is inserted as Sending when a channel is to
// be found in this claim, as Scheduled when its time lies ahead, and as Dead when it
// can never be sent.
func (p *planner) plan(job *Job) task {
	t := task{msg: job.Message, produced: job.Produced}
	t.lane = p.routing.Lanes[job.Lane]
	t.row = ledger.Message{
		ID:       job.Message.ID,
		Lane:     job.Lane,
		Tenant:   job.Message.Tenant,
		Origin:   job.Origin,
		Envelope: job.Raw,
		State:    ledger.Sending,
	}
	if job.Problem != nil {
		p.bury(&t, job, job.Problem)
		return t
	}
	t.row.Digest = job.Message.Digest()
	t.row.ExpiresAt = deadline(&job.Message, job.Produced, t.lane)
	if problem := p.choose(&t); problem != nil {
		p.bury(&t, job, problem)
		return t
	}
	if job.Message.SendAt.After(p.now) {
		t.row.State, t.row.NextAt = ledger.Scheduled, job.Message.SendAt
	}
	return t
}

// planDue makes a task of a row that came due. The choice of a message that has not
// been attempted yet is made again under the current routing: the same id draws the
// same number. A message whose route is gone has no route and waits for one.
func (p *planner) planDue(row ledger.Message) task {
	t := task{row: row, was: row.State, lane: p.routing.Lanes[row.Lane], produced: row.ReceivedAt}
	t.row.State = ledger.Sending
	msg, problem := envelope.Decode(row.Envelope, true)
	if problem != nil { // it was decoded before it was stored: only damage explains this
		t.row.Reason = string(problem.Code)
		return t
	}
	t.msg = msg
	kept := row.Plan
	if problem := p.choose(&t); problem != nil && problem.Code == envelope.TooManySegments {
		t.problem = problem.Code // the route allows fewer than when it came
	}
	if row.Attempts > 0 {
		t.row.Plan = kept
	}
	return t
}

// choose fills in route, segments, draw and first choice.
func (p *planner) choose(t *task) *envelope.Problem {
	if !t.row.ExpiresAt.After(p.now) {
		return &envelope.Problem{Code: envelope.Expired, Detail: "its deadline had passed when it was read"}
	}
	route := p.routing.route(&t.msg, t.row.Lane)
	if route == nil {
		return &envelope.Problem{Code: envelope.NoRoute, Detail: "no route of the routing document matches it"}
	}
	t.text = t.msg.Text
	if route.Substitute {
		t.text = sms.Substitute(t.text)
	}
	size := sms.Count(t.text, sms.Reference8)
	t.common = size.Segments
	if size.Segments > route.MaxSegments {
		return &envelope.Problem{
			Code:   envelope.TooManySegments,
			Detail: fmt.Sprintf("its text has %d segments, route %s allows %d", size.Segments, route.Name, route.MaxSegments),
		}
	}
	n := route.Table.Size()
	draw := p.drawer.Draw(t.row.ID, 1, n)
	t.route = route
	t.row.Plan = ledger.Plan{
		Route: route.Name, Version: p.routing.Version,
		Draw: int64(draw), Size: int64(n), KeyID: p.drawer.KeyID(),
		FirstChoice: route.Table.Entry(route.Table.Pick(draw)).Name,
		Segments:    size.Segments, Alphabet: size.Alphabet.String(),
	}
	return nil
}

// deadline is when a message loses its use: its own expires_at, else the lane's time to
// live after it was produced or is to be sent.
func deadline(m *envelope.Message, produced time.Time, lane Lane) time.Time {
	if !m.ExpiresAt.IsZero() {
		return m.ExpiresAt
	}
	from := produced
	if m.SendAt.After(from) {
		from = m.SendAt
	}
	return from.Add(lane.TTL)
}

// bury turns the task into a dead row with a dead letter.
func (p *planner) bury(t *task, job *Job, problem *envelope.Problem) {
	t.route = nil
	t.row.State, t.row.Reason = ledger.Dead, string(problem.Code)
	t.letter = letter(job, problem)
	if t.row.ID == "" {
		t.row.ID = positionID(job.Origin)
	}
}

// positionID names a record that has no usable id of its own. It is longer than the
// 64 characters a producer may use, so it can never take a producer's id.
func positionID(o Origin) string {
	return fmt.Sprintf("record without a usable message id, known by its position in Kafka: %s/%d/%d", o.Topic, o.Partition, o.Offset)
}

// letter is the dead letter of a record: the original bytes, and why and where in headers.
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

// Ranking is the compact state that a fallback or a wait was decided on, as it is
// stored: the candidates in the order in which they were considered.
type Ranking struct {
	Version    int64    `json:"version"` // routing version the candidates come from
	By         string   `json:"by"`      // the ranking, as in the routing document
	Candidates []Ranked `json:"candidates"`
}

// Ranked is one candidate of a Ranking.
type Ranked struct {
	Channel      string     `json:"channel"`
	Active       int64      `json:"active"`
	Capacity     int64      `json:"capacity"`
	LastAssigned *time.Time `json:"last_assigned,omitempty"`
	// Reason says why the candidate was passed over; empty for the one that was taken.
	Reason string `json:"reason,omitempty"`
}

func (r *Ranking) encode() []byte {
	raw, err := json.Marshal(r)
	if err != nil {
		panic("dispatch: a ranking cannot be encoded: " + err.Error()) // plain data: cannot happen
	}
	return raw
}
