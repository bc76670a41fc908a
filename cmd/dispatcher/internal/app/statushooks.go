package app

import (
	"dispatcher/cmd/dispatcher/internal/statushook"
)

// startStatusWebhooks starts to send status events to the services that the settings name.
func (a *App) startStatusWebhooks() error {
	s := &a.opts.Settings
	hooks, err := s.StatusWebhooks()
	if err != nil || len(hooks) == 0 {
		return err
	}
	client, err := a.kafkaOptions()
	if err != nil {
		return err
	}
	sender, err := statushook.New(statushook.Config{
		Webhooks: hooks, Client: client, Group: s.KafkaGroup, Topic: s.StatusTopic,
		Registry: a.registry, Log: a.log,
	})
	if err != nil {
		return err
	}
	a.own("status webhooks", sender.Run)
	return nil
}
