package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/cmd/dispatcher/internal/numbers"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/provider/sms"
)

// replayer publishes dead records again.
type replayer struct {
	*cli
	*control.Replayer
	ledger *database
	flags  *replayFlags
	how    control.Replaying
	client *kgo.Client // nil in a dry run
}

// prepare reads what is needed for all records.
func (r *replayer) prepare(ctx context.Context) (err error) {
	if r.flags.file != "" {
		if _, r.how.Whole, err = r.readInput(r.flags.file); err != nil {
			return usage(fmt.Errorf("--file: %w", err))
		}
	}
	doc, err := currentRouting(ctx, r.ledger)
	if err != nil {
		return err
	}
	region, err := numbers.ParseRegion(r.ledger.settings.DefaultRegion)
	if err != nil {
		return usage(fmt.Errorf("%s_DEFAULT_REGION %w", config.Prefix, err))
	}
	if r.Replayer, err = control.NewReplayer(ctx, control.ReplayConfig{
		Ledger: r.ledger.Ledger, Routing: doc, Region: region,
		AllowUnknown: r.ledger.settings.AllowUnknownFields, Publish: r.publishOne,
	}); err != nil {
		return err
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

func (r *replayer) publishOne(ctx context.Context, topic, id string, value []byte) error {
	record := &kgo.Record{Topic: topic, Key: []byte(id), Value: value}
	return publishTrouble(topic, r.client.ProduceSync(ctx, record).FirstErr())
}

// records are those named by the arguments, or found by the filter.
func (r *replayer) records(ctx context.Context, names []string) ([]ledger.DeadRecord, error) {
	if len(names) == 0 {
		filter, err := r.flags.filter.parse(time.Now())
		if err != nil {
			return nil, misused(err)
		}
		return r.Matching(ctx, &filter, r.flags.filter.limit)
	}
	found := make([]ledger.DeadRecord, len(names))
	for i, name := range names {
		var err error
		if found[i], err = findDead(ctx, r.ledger, name); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// replay publishes one record again.
func (r *replayer) replay(ctx context.Context, d *ledger.DeadRecord) (replayedLine, error) {
	done, err := r.Replay(ctx, d, &r.how)
	line := replayedLine{Replayed: done}
	if done.NoPayload {
		line.Why += ": give the corrected envelope with --file"
	}
	if done.Message != nil {
		line.Envelope = shownFields(done.Message)
	}
	refused, wrong := errors.AsType[*control.Refused](err)
	_, open := errors.AsType[*control.Unpublished](err)
	switch {
	case wrong && r.how.Whole != nil:
		return line, usage(fmt.Errorf("--file: %w", refused.Err))
	case wrong:
		return line, usage(fmt.Errorf("--set: %w", refused.Err))
	case open:
		return line, failed(fmt.Errorf("%w; correct that and replay it with --again", err))
	}
	return line, err
}

// shownField is a field of an envelope in a form that can be shown: without number, text and other
// content from the producer.
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
		add("max_price", report.Amount(*m.MaxPrice, ""))
	}
	add("metadata", keyList(m.Metadata))
	return fields
}

// keyList are the keys of a map.
func keyList[V any](m map[string]V) string {
	return strings.Join(slices.Sorted(maps.Keys(m)), ", ")
}

func envelopeSheet(fields []shownField) sheet {
	return list(formatTable, fields, keys[shownField]("", "field", "value")...)
}
