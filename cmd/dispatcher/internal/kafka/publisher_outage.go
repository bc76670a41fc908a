package kafka

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"

	"dispatcher/cmd/dispatcher/internal/outage"
)

// report reports why a round failed: Kafka refused it, or the outbox could not be read.
func (p *Publisher) report(f *flow, refused, err error) {
	if refused == nil {
		p.cfg.Trouble("publish", err)
		return
	}
	topic := "topic " + f.topics
	r := outage.Report{What: topic, Reporter: f.what, Err: err}
	kept := f.what + " wait in the outbox"
	switch {
	case errors.Is(refused, kerr.UnknownTopicID):
		r.Sentence = fmt.Sprintf("%s: %s was deleted and created anew; they go to the new one",
			kept, topic)
		p.cfg.Outages.Fault(r)
		return
	case errors.Is(refused, kerr.UnknownTopicOrPartition):
		r.Sentence = fmt.Sprintf("%s: %s does not exist; create it, for example with 12 partitions",
			kept, topic)
	case errors.Is(refused, kerr.TopicAuthorizationFailed):
		r.Sentence = fmt.Sprintf(
			"%s: the brokers do not let this user write to %s; grant it WRITE and DESCRIBE",
			kept, f.topics)
	default:
		r.What = OutageName
		r.Sentence = kept + ": no Kafka broker takes them; check that they run, " +
			"DISPATCHER_KAFKA_BROKERS and the TLS and SASL settings"
	}
	if f.away != "" && f.away != r.What {
		p.cfg.Outages.Up(f.away, f.what)
	}
	f.away = r.What
	p.cfg.Outages.Down(r)
}

// works reports that Kafka took a round.
func (p *Publisher) works(f *flow) {
	p.cfg.Outages.Up(OutageName, f.what) // produce may have reported that it is slow
	if f.away != "" {
		p.cfg.Outages.Up(f.away, f.what)
		f.away = ""
	}
}

// reconnect replaces the flow's client when its topic was deleted and created again, because a
// client never accepts the new topic. Purging the topic from the client is not enough: its next
// batches would start at sequence zero under a producer id that the topic may know, and the broker
// could drop them as repetitions. A new client has a new producer id.
func (p *Publisher) reconnect(f *flow, err error) {
	if !errors.Is(err, kerr.UnknownTopicID) {
		return
	}
	if err := p.connect(f); err != nil {
		p.cfg.Trouble("publish", fmt.Errorf("the old client is kept: %w", err))
	}
}
