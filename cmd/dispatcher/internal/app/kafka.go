package app

import (
	"crypto/tls"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/plugin/kprom"

	"dispatcher/cmd/dispatcher/internal/consume"
	"dispatcher/config"
)

// Connection is how the settings say that the brokers are reached.
func Connection(s *config.Settings) consume.Connection {
	c := consume.Connection{
		Brokers: s.KafkaBrokers, Mechanism: s.KafkaSASLMechanism, User: s.KafkaSASLUser, Password: s.KafkaSASLPassword,
	}
	if s.KafkaTLS {
		c.TLS = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: s.KafkaCA}
	}
	return c
}

// kafkaOptions are what the clients of this process have in common.
func (a *App) kafkaOptions() ([]kgo.Opt, error) {
	options, err := Connection(&a.opts.Settings).Options()
	return append(options, kgo.WithLogger(kafkaLog{a.log})), err
}

// kafkaMetrics gives each lane's client the metrics of the franz-go plugin under a label of its own.
type kafkaMetrics struct{ registry prometheus.Registerer }

func newKafkaMetrics(registry prometheus.Registerer) *kafkaMetrics { return &kafkaMetrics{registry} }

func (m *kafkaMetrics) hooks(lane string) []kgo.Hook {
	labelled := prometheus.WrapRegistererWith(prometheus.Labels{"lane": lane}, m.registry)
	return []kgo.Hook{kprom.NewMetrics("dispatcher_kafka", kprom.Registerer(labelled))}
}
