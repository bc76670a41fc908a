// Package kafka is the way in from Kafka and the way out to it.
//
// Consumer reads the topics of the lanes, decodes the envelopes and commits an offset once every
// record before it is durable:
//
//	PollRecords -> decode -> Handle (blocks until durable) -> mark -> AllowRebalance
//
// Publisher produces the notices of the ledger's outboxes to the topics of status events, dead
// letters and inbound messages.
//
// The package decides nothing about a message. Handle, which is in package pipeline, decides what
// to do with a record, even with one that cannot be used. The content of a notice is decided where
// the state changes. Package app connects them.
package kafka

import (
	"crypto/tls"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// OutageName is the name of the brokers in reports of outages.
const OutageName = "Kafka"

// Connection says how the brokers are reached. The consumer, the publisher and the
// commands share it.
type Connection struct {
	// Brokers are seeds as host:port.
	Brokers []string
	// TLS is nil for plain connections.
	TLS *tls.Config
	// Mechanism is PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or empty for none; User and
	// Password belong to it.
	Mechanism string
	User      string
	Password  string
}

// Options returns the options of a client for the connection.
func (c Connection) Options() ([]kgo.Opt, error) {
	options := []kgo.Opt{
		kgo.SeedBrokers(c.Brokers...),
		// By default a client that asks for a topic just after it was created waits five
		// seconds before it asks again.
		kgo.MetadataMinAge(100 * time.Millisecond),
		kgo.MetadataMaxAge(time.Minute),
		kgo.DialTimeout(5 * time.Second),
	}
	if c.TLS != nil {
		options = append(options, kgo.DialTLSConfig(c.TLS))
	}
	if c.Mechanism != "" {
		mechanism, err := c.mechanism()
		if err != nil {
			return nil, err
		}
		options = append(options, kgo.SASL(mechanism))
	}
	return options, nil
}

func (c Connection) mechanism() (sasl.Mechanism, error) {
	if c.User == "" || c.Password == "" {
		return nil, fmt.Errorf("SASL %s needs a user and a password", c.Mechanism)
	}
	switch c.Mechanism {
	case "PLAIN":
		return plain.Auth{User: c.User, Pass: c.Password}.AsMechanism(), nil
	case "SCRAM-SHA-256":
		return scram.Auth{User: c.User, Pass: c.Password}.AsSha256Mechanism(), nil
	case "SCRAM-SHA-512":
		return scram.Auth{User: c.User, Pass: c.Password}.AsSha512Mechanism(), nil
	}
	return nil, fmt.Errorf(
		"SASL mechanism %q is not one of PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512", c.Mechanism)
}
