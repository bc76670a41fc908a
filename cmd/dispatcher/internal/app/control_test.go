package app

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"dispatcher/ledger"
)

// TestARecordOfTheControlTopicCancelsWhatHasNotLeft: a cancellation that comes before its message
// ends the message when it comes, even one to be sent at once. A cancellation whose message never
// comes does not delay others. An unusable record is skipped, and a message that was submitted is
// not changed. The history gets no phone number.
func TestARecordOfTheControlTopicCancelsWhatHasNotLeft(t *testing.T) {
	t.Parallel()
	s := newStageWith(t, oneChannel, func(o *Options) {
		o.Settings.ControlTopic = "sms.control"
	}, []kfake.Opt{kfake.SeedTopics(1, "sms.control")})
	put := func(topic, value string) {
		t.Helper()
		if err := s.producer.ProduceSync(t.Context(), &kgo.Record{
			Topic: topic, Value: []byte(value),
		}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	s.publish(1)
	s.settled()
	put("sms.control", `{"cancel":"never"}`)
	put("sms.control", `{"cancel":"early","author":"shop","reason":"withdrawn"}`)
	put("sms.control", `{"cancel":"at-once"}`)
	put("sms.control", `what is this`)
	put("sms.control", `{"cancel":"m-00001"}`)
	conn, err := pgx.Connect(t.Context(), s.app.opts.Settings.PostgresURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context()) //nolint:errcheck // The database is dropped anyway.
	s.until("three cancellations wait for their messages", func() (yes bool) {
		err := conn.QueryRow(t.Context(),
			`select count(*) = 3 from dispatcher.pending_cancellations`).Scan(&yes)
		return yes && err == nil
	})
	put("sms.transactional", `{"id":"at-once","to":"+447700900123","text":"Hello"}`)
	tomorrow := time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339)
	for _, id := range []string{"early", "kept", "later"} {
		put("sms.transactional", fmt.Sprintf(
			`{"id":"%s","to":"+447700900123","text":"Hello","send_at":"%s"}`, id, tomorrow))
	}
	put("sms.control", `{"cancel":"later","reason":"asked by +44 7700 900123"}`)
	// As if a claim had stored it while its cancellation was being stored.
	put("sms.transactional", fmt.Sprintf(
		`{"id":"raced","to":"+447700900123","text":"Hello","send_at":"%s"}`, tomorrow))
	s.until("raced is stored", func() bool {
		_, err := s.app.Ledger().Messages.Record(t.Context(), "raced")
		return err == nil
	})
	if err := s.app.Ledger().Cancellations.Later(t.Context(), "raced", ledger.Canceller{
		Author: "shop", Reason: "withdrawn", Via: ledger.ViaTopic,
	}); err != nil {
		t.Fatal(err)
	}
	state := func(id string) (ledger.State, string) {
		r, err := s.app.Ledger().Messages.Record(t.Context(), id)
		if err != nil {
			return "", ""
		}
		return r.Message.State, r.Message.Reason
	}
	for _, id := range []string{"early", "at-once", "later", "raced"} {
		s.until(id+" is cancelled", func() bool {
			is, reason := state(id)
			return is == ledger.Failed && reason == ledger.ReasonCancelled
		})
	}
	if is, _ := state("kept"); is != ledger.Scheduled {
		t.Errorf("the other message: got state %s", is)
	}
	if is, _ := state("m-00001"); is == ledger.Failed {
		t.Error("a message that was sent was cancelled")
	}
	var acts string
	if err := conn.QueryRow(t.Context(), `
		select string_agg(concat_ws(' ', subject, author, 'by', via || ':', reason), ', '
		  order by subject)
		from dispatcher.operator_actions where action = 'cancel'`).Scan(&acts); err != nil {
		t.Fatal(err)
	}
	if want := "at-once topic sms.control by control topic: asked for by the control topic, " +
		"early topic sms.control: shop by control topic: withdrawn, " +
		"later topic sms.control by control topic: (left out: it had a phone number), " +
		"raced shop by control topic: withdrawn"; acts != want {
		t.Errorf("stored: got %s, want %s", acts, want)
	}
	consumer, err := kgo.NewClient(kgo.SeedBrokers(s.broker.ListenAddrs()...),
		kgo.ConsumeTopics("sms.status"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer consumer.Close()
	cancelled := map[string]bool{}
	s.until("the status events", func() bool {
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		consumer.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			if strings.Contains(string(r.Value), `"reason":"cancelled"`) {
				cancelled[string(r.Key)] = true
			}
		})
		return len(cancelled) == 4
	})
	if !cancelled["early"] || !cancelled["at-once"] || !cancelled["later"] {
		t.Errorf("got cancellations of %v", cancelled)
	}
}

// TestAPendingCancellationIsCarriedOutWithoutAControlTopic also when a claim stored its message
// meanwhile: commands, the API and the console store cancellations.
func TestAPendingCancellationIsCarriedOutWithoutAControlTopic(t *testing.T) {
	t.Parallel()
	s := newStage(t, oneChannel)
	tomorrow := time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339)
	if err := s.producer.ProduceSync(t.Context(), &kgo.Record{
		Topic: "sms.transactional", Value: []byte(
			`{"id":"raced","to":"+447700900123","text":"Hello","send_at":"` + tomorrow + `"}`),
	}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	state := func() (ledger.State, bool) {
		r, err := s.app.Ledger().Messages.Record(t.Context(), "raced")
		return r.Message.State, err == nil
	}
	s.until("raced is stored", func() bool { _, there := state(); return there })
	if err := s.app.Ledger().Cancellations.Later(t.Context(), "raced", ledger.Canceller{
		Author: "ann", Reason: "wrong text", Via: ledger.ViaCommand,
	}); err != nil {
		t.Fatal(err)
	}
	s.until("it is cancelled", func() bool { is, _ := state(); return is == ledger.Failed })
}
