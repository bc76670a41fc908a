package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"dispatcher/cmd/dispatcher/internal/app"
	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/cmd/dispatcher/internal/numbers"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// Publish writes a record to a topic. It returns nil once all in-sync replicas have it.
type Publish func(ctx context.Context, topic, id string, value []byte) error

// ReplayConfig is what a Replayer needs.
type ReplayConfig struct {
	Ledger *ledger.Ledger
	// Routing is the one in force; nil reads it. A record that it would make dead again is not
	// published.
	Routing      *config.Routing
	Region       numbers.Region // of numbers without a country code
	AllowUnknown bool           // envelopes may have unknown fields
	Publish      Publish
}

// Replaying says how dead records are published again.
type Replaying struct {
	Whole   []byte            // replaces the record's bytes; nil to keep them
	Changes []envelope.Change // edits of single fields
	Again   bool              // also replay a record whose last replay is not in the ledger
	By      By
}

// Correct is the change of one field of a record; an empty value leaves the field out.
func Correct(field, value string) envelope.Change {
	return envelope.Change{Field: field, Value: value, Remove: value == ""}
}

// Replayed is the result for one record. Scripts rely on its JSON names.
type Replayed struct {
	Record    string `json:"record"` // its position
	Published bool   `json:"published"`
	ID        string `json:"id" doc:"that it is published under"`
	NewID     bool   `json:"new_id" doc:"it is not the record's own"`
	Topic     string `json:"topic"`
	// Why is the rest of a sentence that begins with "record ...". In a dry run it is empty when
	// nothing is wrong.
	Why string `json:"why" doc:"why it was not published; empty in a dry run"`
	// NoPayload means that the stored bytes cannot be used. Replaying.Whole can replace them.
	NoPayload bool `json:"-"`
	// Message is what would be published, in a dry run. It has the number and the text.
	Message *envelope.Message `json:"-"`
}

// Replayer publishes dead records again.
type Replayer struct {
	cfg     ReplayConfig
	routing *decide.Routing
}

// NewReplayer compiles the routing.
func NewReplayer(ctx context.Context, cfg ReplayConfig) (*Replayer, error) {
	if cfg.Routing == nil {
		var err error
		if _, cfg.Routing, err = InForce(ctx, cfg.Ledger); err != nil {
			return nil, err
		}
	}
	routing, err := app.Compile(cfg.Routing, 0)
	return &Replayer{cfg, routing}, err
}

// replayKey is for the draw that the check of a record makes; its result is not used.
var replayKey = selector.Key{1}

// MostReplayed bounds how many records are replayed at once.
const MostReplayed = 1000

// Matching returns records that match a filter and were not replayed: the newest limit of them,
// ordered from the oldest.
func (r *Replayer) Matching(
	ctx context.Context, f *ledger.DeadFilter, limit int,
) ([]ledger.DeadRecord, error) {
	open := *f
	open.Open = true
	found, err := r.cfg.Ledger.DeadRecords.List(ctx, &open, limit)
	slices.Reverse(found)
	return found, err
}

// FindDead reads the dead record with an id, or at a Kafka position. The error is an Unknown when
// there is none.
func FindDead(ctx context.Context, l *ledger.Ledger, name string) (ledger.DeadRecord, error) {
	d, err := l.DeadRecords.Find(ctx, name)
	if origin, ok := ledger.ParseOrigin(name); ok && errors.Is(err, ledger.ErrNoDeadRecord) {
		d, err = l.DeadRecords.At(ctx, origin)
	}
	if errors.Is(err, ledger.ErrNoDeadRecord) {
		return d, unknownf(`no dead record has the id or the position %s: "dispatcher dead list" `+
			`has them`, report.Quoted(name))
	}
	return d, err
}

// Replay publishes one record again. An Unpublished error means that the replay is recorded, but
// may not be in Kafka.
func (r *Replayer) Replay(
	ctx context.Context, d *ledger.DeadRecord, how *Replaying,
) (done Replayed, err error) {
	done.Record = d.Origin.String()
	if err := CheckReason(how.By.Reason); err != nil {
		return done, err
	}
	one := &replay{Replayer: r, how: how, done: &done}
	value, m, why, err := one.compose(ctx, d)
	if why != "" || err != nil {
		done.Why = why
		return done, err
	}
	done.ID, done.NewID, done.Topic = m.ID, m.ID != d.ID, r.topic(d)
	switch {
	case done.Topic == "":
		done.Why = "came by lane " + d.Lane + ", which the routing in force does not have"
		return done, nil
	case how.By.DryRun:
		done.Message = m
		return done, nil
	}
	err = r.cfg.Ledger.DeadRecords.Replay(ctx, &ledger.Replaying{
		Record: d, As: m.ID, Author: how.By.Author, Via: how.By.Via, Reason: how.By.Reason,
	})
	switch {
	case errors.Is(err, ledger.ErrReplayed):
		done.Why = "has been replayed by somebody else just now"
		return done, nil
	case errors.Is(err, ledger.ErrIDTaken):
		done.Why = "has an id that another message has taken just now: try it once more"
		return done, nil
	case err != nil:
		return done, err
	}
	if err := r.cfg.Publish(ctx, done.Topic, m.ID, value); err != nil {
		return done, &Unpublished{done.Record, "replay it with again", err}
	}
	done.Published = true
	return done, nil
}

// Unpublished means that a replay or a test message is recorded, but Kafka has not confirmed it.
type Unpublished struct {
	Record string
	Fix    string // what to do
	Err    error
}

func (u *Unpublished) Error() string {
	return u.Record + " may not have been published: " + u.Err.Error()
}

func (u *Unpublished) Unwrap() error { return u.Err }

// replay is the replay of one record.
type replay struct {
	*Replayer
	how  *Replaying
	done *Replayed
}

// compose makes the envelope to publish. A non-empty why says that it cannot be published.
func (r *replay) compose(
	ctx context.Context, d *ledger.DeadRecord,
) (value []byte, m *envelope.Message, why string, err error) {
	if value = r.how.Whole; value == nil {
		value, err = r.cfg.Ledger.DeadRecords.Payload(ctx, d.Seq)
		switch {
		case errors.Is(err, ledger.ErrPayloadGone), errors.Is(err, ledger.ErrPayloadHidden):
			r.done.NoPayload = true
			return nil, nil, "cannot be replayed: " + PayloadTrouble(err), nil
		case err != nil:
			return nil, nil, "", err
		}
	}
	value, err = envelope.Edit(value, r.how.Changes...)
	switch {
	case errors.Is(err, envelope.ErrNoObject) && r.how.Whole == nil:
		r.done.NoPayload = true
		return nil, nil, "is not a JSON object, so no field of it can be changed", nil
	case err != nil:
		return nil, nil, "", refuse(err)
	}
	id, why, err := r.id(ctx, d, value)
	if why != "" || err != nil {
		return nil, nil, why, err
	}
	if value, err = envelope.Edit(value, envelope.Change{Field: "id", Value: id}); err != nil {
		return nil, nil, "", err
	}
	m, value, why = r.decode(d, value)
	return value, m, why, nil
}

// id is the id to publish under: the record's own, or a new one if it has none or another message
// has it. A record that is replayed again keeps the id of its first replay.
func (r *replay) id(
	ctx context.Context, d *ledger.DeadRecord, value []byte,
) (id, why string, err error) {
	m, _ := envelope.Decode(value, true) // it reads the id even if other fields are wrong
	if d.Replay != nil {
		return r.replayedID(ctx, d, m.ID)
	}
	made := "dead-" + strconv.FormatInt(d.Seq, 10)
	if m.ID == "" {
		return made, "", nil
	}
	holder, err := r.cfg.Ledger.DeadRecords.Holder(ctx, m.ID)
	switch {
	case err != nil:
		return "", "", err
	case holder == 0 || holder == d.Seq:
		return m.ID, "", nil
	case m.ID != d.ID && r.given():
		return "", "cannot be replayed as " + report.Quoted(m.ID) + ": another message has this id", nil
	}
	return made, "", nil
}

// given reports whether the operator has given the id.
func (r *replay) given() bool {
	return r.how.Whole != nil ||
		slices.ContainsFunc(r.how.Changes, func(c envelope.Change) bool { return c.Field == "id" })
}

// replayedID is the id of a record that was replayed before, if that replay is not in the ledger.
func (r *replay) replayedID(
	ctx context.Context, d *ledger.DeadRecord, given string,
) (id, why string, err error) {
	was := fmt.Sprintf("was replayed by %s at %s as %s", d.Replay.Author,
		d.Replay.At.Format(instant), report.Quoted(d.Replay.As))
	record, err := r.cfg.Ledger.Messages.Record(ctx, d.Replay.As)
	switch {
	case errors.Is(err, ledger.ErrNoMessage) && !r.how.Again:
		return "", was + ", which is not in the ledger yet: wait until it has been read from Kafka, " +
			"or publish it once more with --again", nil
	case errors.Is(err, ledger.ErrNoMessage) && r.given() && given != d.Replay.As:
		return "", was + ", and keeps this id", nil
	case errors.Is(err, ledger.ErrNoMessage):
		return d.Replay.As, "", nil
	case err != nil:
		return "", "", err
	case record.Message.State == ledger.Dead:
		return "", was + ", and could not be used either: replay " +
			record.Message.Origin.String(), nil
	}
	return "", was + ", which is " + string(record.Message.State), nil
}

// decode decodes and plans the envelope as the dispatcher will. The returned text says why it would
// be a dead record again; it is empty when it would not.
func (r *replay) decode(d *ledger.DeadRecord, value []byte) (*envelope.Message, []byte, string) {
	m, rewritten, problem := envelope.DecodeRewritten(value, r.cfg.AllowUnknown, r.cfg.Region.Rewrite)
	if rewritten != nil {
		value = rewritten
	}
	if problem == nil {
		now := time.Now().UTC()
		plan := decide.NewPlan(r.routing, []selector.Key{replayKey}, now, []decide.Job{{
			Lane: d.Lane, Produced: now, Raw: value, Message: m,
		}})
		if row := &plan.Tasks[0].Row; row.State == ledger.Dead {
			problem = &envelope.Problem{Code: envelope.Code(row.Reason), Detail: row.Detail}
		}
	}
	if problem != nil {
		return nil, nil, fmt.Sprintf("would be a dead record again (%s): %s. What to do: %s",
			problem.Code, problem.Detail, problem.Code.Remedy())
	}
	return &m, value, ""
}

// topic is the record's own topic if its lane still reads it, else the first topic of the lane. It
// is empty if the lane is gone.
func (r *Replayer) topic(d *ledger.DeadRecord) string {
	for i := range r.cfg.Routing.Lanes {
		lane := &r.cfg.Routing.Lanes[i]
		switch {
		case lane.Name != d.Lane:
		case slices.Contains(lane.Topics, d.Origin.Topic):
			return d.Origin.Topic
		default:
			return lane.Topics[0]
		}
	}
	return ""
}

// PayloadTrouble says why the bytes of a record cannot be read.
func PayloadTrouble(err error) string {
	if errors.Is(err, ledger.ErrPayloadHidden) {
		return "the login of DISPATCHER_POSTGRES_URL may not read numbers and texts: use one that is " +
			"a member of dispatcher_app"
	}
	return "the record itself is not kept any more (DISPATCHER_PAYLOAD_RETENTION, or it was " +
		"erased): it may still be on the topic of dead letters, or with its producer"
}
