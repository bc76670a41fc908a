package app

import "dispatcher/cmd/dispatcher/internal/publish"

// startPublisher begins to empty the outbox. It is started before the pipeline and so
// stopped after it: the last outcomes get their chance to leave. What does not leave stays
// in the outbox for another instance.
func (a *App) startPublisher() error {
	s := &a.opts.Settings
	client, err := Connection(s).Options()
	if err != nil {
		return err
	}
	p, err := publish.New(publish.Config{
		Client: client, Outbox: a.ledger, StatusTopic: s.StatusTopic, DeadTopic: s.DeadTopic, Log: a.log,
	})
	if err != nil {
		return err
	}
	a.own("publisher", p.Run)
	return nil
}
