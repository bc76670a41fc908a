package consume

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	watchEvery   = 5 * time.Second
	watchTimeout = 4 * time.Second
)

// watch looks after the brokers and the topics of one lane and says in a sentence what
// is missing. The client alone would wait in silence: it tries for ever to reach a
// broker, and a group whose topics do not exist just gets no partitions.
type watch struct {
	client *kgo.Client
	topics []string
	log    zerolog.Logger

	told   string    // the sentence that holds now; empty when all is well
	toldAt time.Time // when it was last told
}

func (w *watch) run(ctx context.Context) {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		sentence, err := w.look(ctx)
		if ctx.Err() != nil {
			return
		}
		w.tell(sentence, err, time.Now())
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// look returns what is wrong now, as a sentence for the operator, or "".
func (w *watch) look(ctx context.Context) (string, error) {
	ctx, stop := context.WithTimeout(ctx, watchTimeout)
	defer stop()
	if err := w.client.Ping(ctx); err != nil {
		return "no Kafka broker answers; check that they run, DISPATCHER_KAFKA_BROKERS and the TLS and SASL settings", err
	}
	request := kmsg.NewPtrMetadataRequest()
	for _, topic := range w.topics {
		wanted := kmsg.NewMetadataRequestTopic()
		wanted.Topic = new(topic)
		request.Topics = append(request.Topics, wanted)
	}
	answer, err := request.RequestWith(ctx, w.client)
	if err != nil {
		return "the Kafka brokers do not say which topics they have", err
	}
	for _, topic := range answer.Topics {
		if err := kerr.ErrorForCode(topic.ErrorCode); err != nil && topic.Topic != nil {
			return missing(*topic.Topic, err), err
		}
	}
	return "", nil
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

// tell logs a sentence when it is new and again every tellEvery while it holds.
func (w *watch) tell(sentence string, err error, now time.Time) {
	switch {
	case sentence == "" && w.told != "":
		w.log.Info().Msg("Kafka is in order again")
	case sentence != "" && (sentence != w.told || now.Sub(w.toldAt) >= tellEvery):
		w.log.Warn().Err(err).Msg(sentence)
		w.toldAt = now
	}
	w.told = sentence
}
