package consume

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"dispatcher/cmd/dispatcher/internal/outage"
)

// How often the brokers and topics are looked at: while all is well, and while something is away.
const (
	watchEvery   = 5 * time.Second
	watchAgain   = time.Second
	watchTimeout = 4 * time.Second
)

// Kafka is the name of the brokers in reports of outages; the publisher uses the same.
const Kafka = "Kafka"

// watch looks after the brokers and the topics of one lane and says in a sentence what
// is missing. The client alone would wait in silence: it tries for ever to reach a
// broker, and a group whose topics do not exist just gets no partitions.
type watch struct {
	client *kgo.Client
	lane   string
	topics []string
	states *states
}

// look returns what is wrong now, nil when nothing is.
func (w *watch) look(ctx context.Context) *outage.Report {
	report, away := w.examine(ctx), ""
	if report != nil {
		away = report.Sentence
	}
	w.states.found(w.lane, away)
	return report
}

func (w *watch) examine(ctx context.Context) *outage.Report {
	if err := w.client.Ping(ctx); err != nil {
		return &outage.Report{What: Kafka, Err: err, Sentence: "no Kafka broker answers; check that they run, DISPATCHER_KAFKA_BROKERS and the TLS and SASL settings"}
	}
	request := kmsg.NewPtrMetadataRequest()
	for _, topic := range w.topics {
		wanted := kmsg.NewMetadataRequestTopic()
		wanted.Topic = new(topic)
		request.Topics = append(request.Topics, wanted)
	}
	answer, err := request.RequestWith(ctx, w.client)
	if err != nil {
		return &outage.Report{What: Kafka, Err: err, Sentence: "the Kafka brokers do not say which topics they have; check that they run and that this user may DESCRIBE topics"}
	}
	for _, topic := range answer.Topics {
		if err := kerr.ErrorForCode(topic.ErrorCode); err != nil && topic.Topic != nil {
			return &outage.Report{What: "topic " + *topic.Topic, Err: err, Sentence: missing(*topic.Topic, err)}
		}
	}
	return nil
}

func missing(topic string, err error) string {
	switch {
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return fmt.Sprintf("topic %s does not exist; create it, for example with 12 partitions, or name another in the lane's topics", topic)
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		return fmt.Sprintf("the brokers do not let this user read topic %s; grant it READ and DESCRIBE", topic)
	}
	return fmt.Sprintf("topic %s cannot be read", topic)
}
