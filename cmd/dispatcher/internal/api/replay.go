package api

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/ledger"
)

type replayInput struct {
	NoMatch
	Body struct {
		Change
		Records    []string          `json:"records,omitempty" maxItems:"500" doc:"ids, or positions as topic/partition/offset; instead of a filter"`
		Lane       string            `json:"lane,omitempty" maxLength:"64"`
		Topic      string            `json:"topic,omitempty" maxLength:"249"`
		DeadReason string            `json:"dead_reason,omitempty" maxLength:"64" doc:"such as no_route"`
		Since      time.Time         `json:"since,omitzero" doc:"that were received since then"`
		All        bool              `json:"all,omitempty" doc:"all that were not replayed"`
		Limit      int               `json:"limit,omitempty" minimum:"1" maximum:"500" default:"100" doc:"of a filter: the newest so many"`
		Set        map[string]string `json:"set,omitempty" maxProperties:"32" writeOnly:"true" doc:"corrections of one record: values by field of the envelope; those of labels, selectors and metadata are JSON"`
		Unset      []string          `json:"unset,omitempty" maxItems:"32" doc:"fields to leave out, of one record"`
		Again      bool              `json:"again,omitempty" doc:"also records that were replayed and have not arrived, under the same id"`
	}
}

// filter is the filter in the body; false when it has none.
func (in *replayInput) filter() (f ledger.DeadFilter, ok bool) {
	b := &in.Body
	f = ledger.DeadFilter{Lane: b.Lane, Topic: b.Topic, Reason: b.DeadReason, Since: b.Since}
	return f, b.All || f != ledger.DeadFilter{}
}

// changes are the corrections in the body, by field.
func (in *replayInput) changes() (out []envelope.Change) {
	for _, field := range slices.Sorted(maps.Keys(in.Body.Set)) {
		out = append(out, envelope.Change{Field: field, Value: in.Body.Set[field]})
	}
	for _, field := range in.Body.Unset {
		out = append(out, envelope.Change{Field: field, Remove: true})
	}
	return out
}

// replayedRecord is a control.Replayed; the schema in docs/openapi.json has this name.
type replayedRecord control.Replayed

type replayed struct {
	DryRun   bool             `json:"dry_run"`
	Replayed []replayedRecord `json:"replayed" nullable:"false"`
	Trouble  string           `json:"trouble,omitempty" doc:"why the records behind the last one were not tried; what stands in the list is done"`
}

var (
	errWhichRecords = errors.New("name records, or a lane, a topic, dead_reason, since or all: " +
		"one of both")
	errOneRecord = errors.New("set and unset correct one record: name exactly one in records")
)

// replay publishes dead records again, one by one. A failure is reported in the answer and is not
// an error, because the records before it stay published.
func (a *API) replay(ctx context.Context, in *replayInput) (*reply[replayed], error) {
	who, err := by(ctx, &in.Body.Change, nil)
	if err != nil {
		return nil, err
	}
	filter, filtered := in.filter()
	if filtered == (len(in.Body.Records) > 0) {
		return nil, &control.Refused{Err: errWhichRecords}
	}
	changes := in.changes()
	if len(changes) > 0 && len(in.Body.Records) != 1 {
		return nil, &control.Refused{Err: errOneRecord}
	}
	r, err := control.NewReplayer(ctx, control.ReplayConfig{
		Ledger: a.cfg.Ledger, Region: a.cfg.Region,
		AllowUnknown: a.cfg.AllowUnknown, Publish: a.cfg.Publish,
	})
	if err != nil {
		return nil, nothingDone(err)
	}
	records, err := a.deadRecords(ctx, r, in.Body.Records, &filter, in.Body.Limit)
	if err != nil {
		return nil, nothingDone(err)
	}
	how := &control.Replaying{Changes: changes, By: who, Again: in.Body.Again}
	out := replayed{DryRun: who.DryRun, Replayed: []replayedRecord{}}
	for i := range records {
		done, err := r.Replay(ctx, &records[i], how)
		if err != nil && len(out.Replayed) == 0 {
			return nil, err
		}
		if err != nil {
			a.cfg.Log.Error().Err(err).Msg("a replay by the API was not finished")
			out.Trouble = done.Record + " failed: see whether it was replayed, and replay the rest"
			break
		}
		out.Replayed = append(out.Replayed, replayedRecord(done))
	}
	return &reply[replayed]{out}, nil
}

func (a *API) deadRecords(
	ctx context.Context, r *control.Replayer, names []string, f *ledger.DeadFilter, limit int,
) ([]ledger.DeadRecord, error) {
	if len(names) == 0 {
		return r.Matching(ctx, f, limit)
	}
	found := make([]ledger.DeadRecord, len(names))
	for i, name := range names {
		var err error
		if found[i], err = control.FindDead(ctx, a.cfg.Ledger, name); err != nil {
			return nil, err
		}
	}
	return found, nil
}

type testInput struct {
	NoMatch
	Channel string `path:"channel" maxLength:"64"`
	Body    struct {
		Change
		To   string `json:"to" minLength:"3" maxLength:"32" writeOnly:"true" doc:"recipient, with plus and country code"`
		Text string `json:"text" minLength:"1" maxLength:"1600" writeOnly:"true"`
		From string `json:"from,omitempty" maxLength:"32" doc:"sender id"`
	}
}

type testSent struct {
	DryRun bool `json:"dry_run"`
	control.TestSent
}

// test sends one message over one channel. The client gets its outcome by getMessage.
func (a *API) test(ctx context.Context, in *testInput) (*reply[testSent], error) {
	who, err := by(ctx, &in.Body.Change, nil)
	if err != nil {
		return nil, err
	}
	sent, err := control.SendTest(ctx, &control.TestConfig{
		Ledger: a.cfg.Ledger, Region: a.cfg.Region, AllowUnknown: a.cfg.AllowUnknown,
		Publish: a.cfg.Publish,
	}, &control.TestMessage{
		Channel: in.Channel, To: in.Body.To, Text: in.Body.Text, From: in.Body.From,
	}, who)
	return &reply[testSent]{testSent{who.DryRun, sent}}, oneWrite(err)
}
