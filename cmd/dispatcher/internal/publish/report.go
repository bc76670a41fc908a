package publish

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"

	"dispatcher/cmd/dispatcher/internal/outage"
)

// kafka is the name of the brokers in reports of outages; the consumer uses it too.
const kafka = "Kafka"

// report tells why a round did not leave: Kafka refused it, or the outbox could not be read.
func (p *Publisher) report(f *flow, refused, err error) {
	if refused == nil {
		p.cfg.Trouble("publish", err)
		return
	}
	r := outage.Report{What: kafka, Reporter: f.what, Err: err}
	kept := f.what + " wait in the outbox"
	switch {
	case errors.Is(refused, kerr.UnknownTopicID):
		r.What = "topic " + f.topics
		r.Sentence = fmt.Sprintf("%s: topic %s was deleted and created anew; they go to the new one", kept, f.topics)
		p.cfg.Outages.Fault(r)
		return
	case errors.Is(refused, kerr.UnknownTopicOrPartition):
		r.What = "topic " + f.topics
		r.Sentence = fmt.Sprintf("%s: topic %s does not exist; create it, for example with 12 partitions", kept, f.topics)
	case errors.Is(refused, kerr.TopicAuthorizationFailed):
		r.What = "topic " + f.topics
		r.Sentence = fmt.Sprintf("%s: the brokers do not let this user write to %s; grant it WRITE and DESCRIBE", kept, f.topics)
	default:
		r.Sentence = kept + ": no Kafka broker takes them; check that they run, DISPATCHER_KAFKA_BROKERS and the TLS and SASL settings"
	}
	if f.away != "" && f.away != r.What {
		p.cfg.Outages.Up(f.away, f.what)
	}
	f.away = r.What
	p.cfg.Outages.Down(r)
}

// works tells that Kafka took a round.
func (p *Publisher) works(f *flow) {
	p.cfg.Outages.Up(kafka, f.what) // it may have been told that it is slow
	if f.away != "" {
		p.cfg.Outages.Up(f.away, f.what)
		f.away = ""
	}
}
