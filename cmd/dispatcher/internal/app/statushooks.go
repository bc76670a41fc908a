package app

import (
	"dispatcher/cmd/dispatcher/internal/statushook"
)

// startStatusWebhooks starts to send status events to the services that the settings name.
func (a *App) startStatusWebhooks() error {
	s := &a.opts.Settings
	if s.StatusWebhooksFile == "" {
		return nil
	}
	hooks, err := s.StatusWebhooks()
	if err != nil {
		return err
	}
	client, err := a.kafkaOptions()
	if err != nil {
		return err
	}
	a.own("status webhooks", statushook.New(statushook.Config{
		Webhooks: hooks, Read: s.StatusWebhooks, ReadEvery: a.opts.ReadWebhooksEvery,
		Client: client, Group: s.KafkaGroup, Topic: s.StatusTopic, Registry: a.registry,
		Log: a.log,
	}).Run)
	return nil
}
