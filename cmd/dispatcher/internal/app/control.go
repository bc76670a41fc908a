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

// pendingPause is the time between two looks for pending cancellations whose message has come.
const pendingPause = time.Second

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

// control does what a record of the control topic asks for. The cancellation of a message that is
// not in the ledger is stored, because the message may still be in Kafka.
func (a *App) control(ctx context.Context, c *envelope.Control) error {
	author := "topic " + a.opts.Settings.ControlTopic
	if c.Author != "" {
		author += ": " + withoutNumber(c.Author)
	}
	by := ledger.Canceller{
		Author: author, Via: ledger.ViaTopic,
		Reason: cmp.Or(withoutNumber(c.Reason), "asked for by the control topic"),
	}
	err := a.cancelMessage(ctx, c.Cancel, by)
	if !errors.Is(err, ledger.ErrNoMessage) {
		return err
	}
	a.log.Info().Str("id", c.Cancel).
		Msg("a message that was cancelled is not in the ledger: it is ended when it comes")
	return a.ledger.Cancellations.Later(ctx, c.Cancel, by)
}

// cancelMessage ends a message, and logs what became of it.
func (a *App) cancelMessage(ctx context.Context, id string, by ledger.Canceller) error {
	done, err := pipeline.CancelID(ctx, a.ledger, id, by)
	said := a.log.Info().Str("id", id).Str("via", string(by.Via))
	switch {
	case err != nil:
		return err
	case done.Why != "":
		said.Msg("a message was not cancelled: it " + done.Why)
	default:
		said.Msg("a message is cancelled")
	}
	return nil
}

// carryOutPending ends the messages that a claim stored while their cancellation was being stored.
// Claims end all others. Every instance does this, because commands, the API and the console store
// cancellations, too.
func (a *App) carryOutPending(ctx context.Context) error {
	for {
		if err := a.carryOutSome(ctx); err != nil && ctx.Err() == nil {
			a.trouble("pending cancellations", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pendingPause):
		}
	}
}

func (a *App) carryOutSome(ctx context.Context) error {
	cancellations := a.ledger.Cancellations
	arrived, err := cancellations.Arrived(ctx)
	if err != nil {
		return err
	}
	var failed []error // a failure does not delay the others
	for i := range arrived {
		p := &arrived[i]
		err := a.cancelMessage(ctx, p.ID, p.Canceller)
		if err == nil {
			err = cancellations.Forget(ctx, p.ID)
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// withoutNumber replaces an author or a reason that has a phone number, because everybody who may
// read the history sees it. It does not refuse the cancellation, because the message would be sent
// then.
func withoutNumber(text string) string {
	if numbers.In(text) {
		return "(left out: it had a phone number)"
	}
	return text
}
