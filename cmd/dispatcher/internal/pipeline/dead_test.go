package pipeline

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/envelope"
)

// deadEvent is the event of a dead record.
type deadEvent struct {
	ID            string            `json:"id"`
	State         string            `json:"state"`
	Reason        string            `json:"reason"`
	Detail        string            `json:"detail"`
	ConflictingID string            `json:"conflicting_id"`
	Topic         string            `json:"topic"`
	Offset        int64             `json:"offset"`
	Metadata      map[string]string `json:"metadata"`
	key           string
}

// deadEvents returns the events of dead records by offset.
func (p *pipeline) deadEvents(t *testing.T) map[int64]deadEvent {
	t.Helper()
	rows, err := p.sql.Query(t.Context(), `
		select n.key, convert_from(n.value, 'UTF8')
		from dispatcher.outbox o, unnest(o.keys, o."values") as n(key, value)
		where o.kind = 'status' and convert_from(n.value, 'UTF8') like '%"state":"dead"%'`)
	if err != nil {
		t.Fatal(err)
	}
	all := map[int64]deadEvent{}
	var key, value string
	if _, err := pgx.ForEachRow(rows, []any{&key, &value}, func() error {
		e := deadEvent{key: key}
		err := json.Unmarshal([]byte(value), &e)
		all[e.Offset] = e
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestTheReasonOfADeadRecordIsPublished: under its id, or under its position if it has none.
// The row has the description.
func TestTheReasonOfADeadRecordIsPublished(t *testing.T) {
	t.Parallel()
	p := setup(t, nil)
	p.handle(t, jobsNamed("m", 1))
	read := func(offset int64, raw string) decide.Job {
		m, problem := envelope.Decode([]byte(raw), false)
		return decide.Job{
			Lane: "bulk", Produced: time.Now(), Message: m, Problem: problem,
			Raw: []byte(raw), Origin: decide.Origin{
				Topic: "sms.bulk", Partition: 3,
				Offset: offset,
			},
		}
	}
	p.handle(t, []decide.Job{
		read(10, `{"id":"bad-number","to":"07700","text":"Hello"}`),
		read(11, `{"id":"`+"\u202e"+`","to":"+447700900123","text":"Hello"}`),
		read(12, `{"id":"m-0","to":"+447700900123","text":"something `+
			`else","metadata":{"order":"7"}}`),
		read(13, `{"id":"twice","to":"+447700900123","text":"Hello","text":"Hello"}`),
	})
	const number = "to is not an E.164 number: a plus and 8 to 15 digits, the first not 0"
	want := map[int64]deadEvent{
		10: {
			ID: "bad-number", key: "bad-number", State: "dead", Reason: "bad_number",
			Topic: "sms.bulk", Offset: 10, Detail: number,
		},
		11: {
			key: "sms.bulk/3/11", State: "dead", Reason: "bad_id", Topic: "sms.bulk", Offset: 11,
			Detail: "id is not a string of 1 to 64 printable characters",
		},
		12: {
			ConflictingID: "m-0", key: "sms.bulk/3/12", State: "dead", Reason: "conflict",
			Topic: "sms.bulk", Offset: 12,
			Detail:   "the id was used before for a message with other content",
			Metadata: map[string]string{"order": "7"},
		},
		13: {
			ID: "twice", key: "twice", State: "dead", Reason: "duplicate_field", Topic: "sms.bulk",
			Offset: 13, Detail: "the field text stands there twice",
		},
	}
	if diff := cmp.Diff(want, p.deadEvents(t), cmp.AllowUnexported(deadEvent{})); diff != "" {
		t.Error(diff)
	}
	record, err := p.ledger.Messages.Record(t.Context(), "bad-number")
	if err != nil || record.Message.Detail != number {
		t.Errorf("got row %q, %v", record.Message.Detail, err)
	}
	p.eventually(t, byState, map[string]int64{"accepted": 1, "dead": 3})
}
