package decide

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/ledger"
	"dispatcher/provider"
)

// events writes the status events of one batch, whose bytes are allocated together. The zero value
// allocates each event on its own.
type events struct {
	room    []byte // memory of the events; those in it are never changed
	scratch []byte
	ahead   int // events of usual size for which room is made at once
}

// usualEvent is the size of most events, and roomOfEvents of the largest piece of room.
const usualEvent, roomOfEvents = 256, 32 << 10

// value is the event as JSON.
func (e *events) value(status *envelope.Status) []byte {
	e.scratch = envelope.AppendStatus(e.scratch[:0], *status)
	if n := len(e.scratch); cap(e.room)-len(e.room) < n {
		e.room = make([]byte, 0, max(n, min(e.ahead*usualEvent, roomOfEvents)))
	}
	begin := len(e.room)
	e.room = append(e.room, e.scratch...)
	return slices.Clip(e.room[begin:])
}

// ofTask is the status event of a claim for one message. taken is how many of its parts were
// accepted before.
func (e *events) ofTask(
	t *Task, d *ledger.Decision, taken int, at time.Time,
) ledger.Notice {
	status := envelope.Status{
		ID: t.Row.ID, State: string(t.Row.State), At: at, Lane: t.Row.Lane, Tenant: t.Row.Tenant,
		Route: t.Row.Plan.Route, Reason: t.Row.Reason, Segments: t.Row.Plan.Segments,
		PossibleDuplicate: t.Row.PossibleDuplicate, Metadata: t.msg.Metadata,
	}
	if d.State != "" {
		status.State, status.Reason = string(d.State), d.Reason
	}
	if d.State == ledger.Sending {
		status.Channel = d.Attempt.Channel
		status.Attempt = d.Attempt.Number
		status.Reason = string(d.Attempt.Reason)
	}
	if status.State == string(ledger.Dead) {
		status.Detail, status.Position = t.Row.Detail, positionOf(t.Row.Origin)
		if t.msg.ID == "" {
			status.ID = "" // the row's id was made up from its Kafka position
		}
	}
	if d.State == ledger.Failed || d.State == ledger.Rejected {
		status.PartsAccepted = taken
	}
	return e.notice(&status)
}

// ofConflict is the event about a record whose id belongs to another message. The event has no id,
// so that nobody takes it for an event about that message.
func (e *events) ofConflict(
	job *Job, problem *envelope.Problem, at time.Time,
) ledger.Notice {
	return e.notice(&envelope.Status{
		State: string(
			ledger.Dead,
		), At: at, Lane: job.Lane, Tenant: job.Message.Tenant, Reason: string(problem.Code),
		Detail:        problem.Detail,
		ConflictingID: job.Message.ID, Position: positionOf(job.Origin), Metadata: job.Message.Metadata,
	})
}

func positionOf(o Origin) *envelope.Position {
	return &envelope.Position{Topic: o.Topic, Partition: o.Partition, Offset: o.Offset}
}

// ofSettlement is the event that an outcome causes.
func (e *events) ofSettlement(
	a *Attempt, s *ledger.Settlement, at time.Time,
) ledger.Notice {
	taken := 0
	switch s.Outcome {
	case provider.Rejected, provider.Refused, provider.Throttled:
		taken = a.taken + s.Segments
	case provider.Accepted, provider.Unknown: // all of it, or not known
	}
	return e.notice(&envelope.Status{
		ID: s.ID, State: string(s.State), At: at, Lane: a.Lane, Tenant: a.tenant, Route: a.route,
		Channel: a.Channel, Attempt: s.Attempt, Reason: s.Reason, Code: s.Code,
		Reference: cmp.Or(s.Reference, strings.TrimSpace(s.Denied)),
		Segments:  a.Segments, PartsAccepted: taken, PossibleDuplicate: s.PossibleDuplicate,
		Metadata: a.metadata,
	})
}

func (e *events) notice(status *envelope.Status) ledger.Notice {
	key := status.ID
	if p := status.Position; key == "" && p != nil {
		key = Origin{Topic: p.Topic, Partition: p.Partition, Offset: p.Offset}.String()
	}
	return ledger.Notice{Kind: ledger.Status, Key: key, Value: e.value(status)}
}
