package app

import (
	"cmp"
	"context"
	"errors"
	"time"

	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/cmd/dispatcher/internal/kafka"
	"dispatcher/cmd/dispatcher/internal/numbers"
	"dispatcher/cmd/dispatcher/internal/pipeline"
	"dispatcher/ledger"
)

// controlTimeout is how long after a record's timestamp its message may still be in Kafka.
const controlTimeout = 30 * time.Second

// startControl starts to read the control topic, if the settings name one.
func (a *App) startControl() error {
	s := &a.opts.Settings
	if s.ControlTopic == "" {
		return nil
	}
	client, err := a.kafkaOptions()
	if err != nil {
		return err
	}
	r, err := kafka.NewControlReader(kafka.ControlConfig{
		Client: client, Group: s.KafkaGroup, ClientID: "dispatcher", Topic: s.ControlTopic,
		Handle: a.control, Trouble: a.trouble, Log: a.log,
	})
	if err != nil {
		return err
	}
	a.own("control topic", r.Run)
	return nil
}

// control does what a record of the control topic asks for. A message that is not in the ledger may
// still be in Kafka, so the record is tried again for controlTimeout.
func (a *App) control(ctx context.Context, c *envelope.Control, produced time.Time) error {
	author := "topic " + a.opts.Settings.ControlTopic
	if c.Author != "" {
		author += ": " + withoutNumber(c.Author)
	}
	_, why, err := pipeline.Cancel(ctx, a.ledger, c.Cancel, ledger.Cancellation{
		Author: author, Via: ledger.ViaTopic,
		Reason: cmp.Or(withoutNumber(c.Reason), "asked for by the control topic"),
	})
	said := a.log.Info().Str("id", c.Cancel)
	switch {
	case errors.Is(err, ledger.ErrNoMessage):
		if time.Since(produced) < controlTimeout {
			return kafka.ErrNotYet
		}
		said.Msg("a message that was to be cancelled is not in the ledger")
	case err != nil:
		return err
	case why != "":
		said.Msg("a message was not cancelled: it " + why)
	default:
		said.Msg("a message is cancelled by the control topic")
	}
	return nil
}

// withoutNumber replaces an author or a reason that has a phone number, because everybody who may
// read the history sees it. The message is cancelled all the same: refused, it would be sent.
func withoutNumber(text string) string {
	if numbers.In(text) {
		return "(left out: it had a phone number)"
	}
	return text
}
