package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"

	"dispatcher/cmd/dispatcher/internal/app"
	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/cmd/dispatcher/internal/numbers"
	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/provider/sms"
	"dispatcher/selector"
)

// replayer publishes dead records again.
type replayer struct {
	*cli
	ledger  *database
	flags   *replayFlags
	changes []envelope.Change

	file    []byte // of --file; nil without it
	doc     *config.Routing
	routing *decide.Routing
	region  numbers.Region
	client  *kgo.Client // nil in a dry run
}

// prepare reads what all records need.
func (r *replayer) prepare(ctx context.Context) (err error) {
	if r.flags.file != "" {
		if _, r.file, err = r.readInput(r.flags.file); err != nil {
			return usage(fmt.Errorf("--file: %w", err))
		}
	}
	if r.doc, err = currentRouting(ctx, r.ledger); err != nil {
		return err
	}
	if r.routing, err = app.Compile(r.doc, 0); err != nil {
		return err
	}
	if r.region, err = numbers.ParseRegion(r.ledger.settings.DefaultRegion); err != nil {
		return usage(fmt.Errorf("%s_DEFAULT_REGION %w", config.Prefix, err))
	}
	if !r.flags.dryRun {
		r.client, err = openProducer(ctx, r.ledger.settings)
	}
	return err
}

func (r *replayer) close() {
	if r.client != nil {
		r.client.Close()
	}
}

// replay publishes one record again. What keeps the record from it completes the sentence "record
// ..." in the line.
func (r *replayer) replay(ctx context.Context, name string) (line replayedLine, err error) {
	d, err := findDead(ctx, r.ledger, name)
	if err != nil {
		return line, err
	}
	line.Record = d.Origin.String()
	value, m, why, err := r.compose(ctx, &d)
	if why != "" || err != nil {
		line.Why = why
		return line, err
	}
	line.ID, line.NewID, line.Topic = m.ID, m.ID != d.ID, r.topic(&d)
	switch {
	case line.Topic == "":
		line.Why = "came by lane " + d.Lane + ", which the routing in force does not have"
		return line, nil
	case r.flags.dryRun:
		line.Envelope = shownFields(m)
		return line, nil
	}
	if err := topicExists(ctx, r.client, line.Topic); err != nil {
		return line, usage(kafkaTopicTrouble(r.ledger.settings, line.Topic, err))
	}
	err = r.ledger.DeadRecords.Replay(ctx, &ledger.Replaying{
		Record: &d, As: m.ID, Author: r.flags.author, Reason: r.flags.reason,
	})
	switch {
	case errors.Is(err, ledger.ErrReplayed):
		line.Why = "has been replayed by somebody else just now"
		return line, nil
	case errors.Is(err, ledger.ErrIDTaken):
		line.Why = "has an id that another message has taken just now: try it once more"
		return line, nil
	case err != nil:
		return line, err
	}
	record := &kgo.Record{Topic: line.Topic, Key: []byte(m.ID), Value: value}
	err = publishTrouble(line.Topic, r.client.ProduceSync(ctx, record).FirstErr())
	if err != nil {
		return line, failed(fmt.Errorf("%s may not have been published: %w; correct that and replay "+
			"it with --again", line.Record, err))
	}
	line.Published = true
	return line, nil
}

// compose makes the envelope that is published.
func (r *replayer) compose(
	ctx context.Context, d *ledger.DeadRecord,
) (value []byte, m *envelope.Message, why string, err error) {
	if value = r.file; value == nil {
		value, err = r.ledger.DeadRecords.Payload(ctx, d.Seq)
		switch {
		case errors.Is(err, ledger.ErrPayloadGone), errors.Is(err, ledger.ErrPayloadHidden):
			return nil, nil, "cannot be replayed: " + payloadTrouble(err).Error() +
				"; --file gives it anew", nil
		case err != nil:
			return nil, nil, "", err
		}
	}
	value, err = envelope.Edit(value, r.changes...)
	switch {
	case errors.Is(err, envelope.ErrNoObject) && r.file != nil:
		return nil, nil, "", usage(fmt.Errorf("--file: %w", err))
	case errors.Is(err, envelope.ErrNoObject):
		return nil, nil, "is no JSON object, so no field of it can be changed: give the corrected " +
			"envelope with --file", nil
	case err != nil:
		return nil, nil, "", usage(fmt.Errorf("--set: %w", err))
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

// id is that which the record is published under: its own, or a new one where it has none or
// another message has it. A record that is replayed again keeps what it got.
func (r *replayer) id(
	ctx context.Context, d *ledger.DeadRecord, value []byte,
) (id, why string, err error) {
	m, _ := envelope.Decode(value, true) // the id is read whatever else is wrong
	if d.Replay != nil {
		return r.replayedID(ctx, d, m.ID)
	}
	made := "dead-" + strconv.FormatInt(d.Seq, 10)
	if m.ID == "" {
		return made, "", nil
	}
	holder, err := r.ledger.DeadRecords.Holder(ctx, m.ID)
	switch {
	case err != nil:
		return "", "", err
	case holder == 0 || holder == d.Seq:
		return m.ID, "", nil
	case m.ID != d.ID && r.given():
		return "", "cannot be replayed as " + quoted(m.ID) + ": another message has this id", nil
	}
	return made, "", nil
}

// given reports whether the operator says what the id is.
func (r *replayer) given() bool {
	return r.file != nil ||
		slices.ContainsFunc(r.changes, func(c envelope.Change) bool { return c.Field == "id" })
}

// replayedID is the id of a record that was replayed before, if that has not arrived.
func (r *replayer) replayedID(
	ctx context.Context, d *ledger.DeadRecord, given string,
) (id, why string, err error) {
	was := fmt.Sprintf("was replayed by %s at %s as %s", d.Replay.Author,
		d.Replay.At.Format(instant), quoted(d.Replay.As))
	record, err := r.ledger.Messages.Record(ctx, d.Replay.As)
	switch {
	case errors.Is(err, ledger.ErrNoMessage) && !r.flags.again:
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

// decode reads what would be published as the dispatcher will: why says that it would be a dead
// record again.
func (r *replayer) decode(d *ledger.DeadRecord, value []byte) (*envelope.Message, []byte, string) {
	unknown := r.ledger.settings.AllowUnknownFields
	m, problem := envelope.Decode(value, unknown)
	if problem != nil && problem.Code == envelope.BadNumber {
		value = r.region.Rewrite(value)
		m, problem = envelope.Decode(value, unknown)
	}
	if problem == nil {
		now := time.Now().UTC()
		plan := decide.NewPlan(r.routing, []selector.Key{demoKey}, now, []decide.Job{{
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

// topic is where the record came from if its lane still reads that, else the lane's first topic;
// empty if the lane is gone.
func (r *replayer) topic(d *ledger.DeadRecord) string {
	for i := range r.doc.Lanes {
		lane := &r.doc.Lanes[i]
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

// shownField is a field of an envelope as it is shown: neither number nor text, nor what a producer
// may have written into a value.
type shownField struct {
	Field string `json:"field"`
	Value string `json:"value"`
}

// shownFields describe an envelope.
func shownFields(m *envelope.Message) []shownField {
	var fields []shownField
	add := func(field, value string) {
		if value != "" {
			fields = append(fields, shownField{field, value})
		}
	}
	instantOf := func(at time.Time) string {
		if at.IsZero() {
			return ""
		}
		return at.Format(time.RFC3339Nano)
	}
	size := sms.Count(m.Text, sms.Reference8)
	add("id", m.ID)
	add("to", counted(int64(utf8.RuneCountInString(m.To)), "character", "characters"))
	if m.From != "" {
		add("from", counted(int64(utf8.RuneCountInString(m.From)), "character", "characters"))
	}
	add("text", counted(int64(utf8.RuneCountInString(m.Text)), "character", "characters")+", "+
		counted(int64(size.Segments), "segment", "segments"))
	add("tenant", m.Tenant)
	add("labels", keyList(m.Labels))
	selectors := make([]string, len(m.Selectors))
	for i := range m.Selectors {
		selectors[i] = m.Selectors[i].Key
	}
	add("selectors", strings.Join(selectors, ", "))
	add("send_at", instantOf(m.SendAt))
	add("expires_at", instantOf(m.ExpiresAt))
	if m.MaxPrice != nil {
		add("max_price", amount(*m.MaxPrice, ""))
	}
	add("metadata", keyList(m.Metadata))
	return fields
}

// keyList are the keys of a map.
func keyList[V any](m map[string]V) string {
	all := make([]string, 0, len(m))
	for key := range m {
		all = append(all, key)
	}
	slices.SortFunc(all, cmp.Compare)
	return strings.Join(all, ", ")
}

func envelopeSheet(fields []shownField) sheet {
	return list(formatTable, fields, keys[shownField]("", "field", "value")...)
}
