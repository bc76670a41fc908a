package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"dispatcher/cmd/dispatcher/internal/outage"
)

// Brokers and topics are checked every watchEvery, and every watchAgain while something is away.
const (
	watchEvery   = 5 * time.Second
	watchAgain   = time.Second
	watchTimeout = 4 * time.Second
)

// watch checks the brokers and the topics of one lane and reports in a sentence what is missing.
// The client alone would wait in silence: it tries for ever to reach a broker, and a group whose
// topics do not exist just gets no partitions.
type watch struct {
	client *kgo.Client
	lane   Lane
	states *states
}

// check returns what is wrong now, nil when nothing is.
func (w *watch) check(ctx context.Context) *outage.Report {
	report, away := w.examine(ctx), ""
	if report != nil {
		away = report.Sentence
	}
	var lag *int64
	if report == nil {
		lag = w.lag(ctx)
	}
	w.states.found(w.lane.Name, away, lag)
	return report
}

// lag counts the records of this process's partitions that are not committed; nil when the brokers
// do not answer.
func (w *watch) lag(ctx context.Context) *int64 {
	admin := kadm.NewClient(w.client)
	ends, err := admin.ListEndOffsets(ctx, w.lane.Topics...)
	if err != nil {
		return nil
	}
	var starts kadm.ListedOffsets // only read for partitions without a committed offset
	var lag int64
	for topic, partitions := range w.client.CommittedOffsets() {
		for partition, committed := range partitions {
			end, ok := ends.Lookup(topic, partition)
			if !ok || end.Err != nil {
				return nil
			}
			from := committed.Offset
			if from < 0 {
				if starts == nil {
					if starts, err = admin.ListStartOffsets(ctx, w.lane.Topics...); err != nil {
						return nil
					}
				}
				start, _ := starts.Lookup(topic, partition)
				from = start.Offset
			}
			lag += max(end.Offset-from, 0)
		}
	}
	return &lag
}

func (w *watch) examine(ctx context.Context) *outage.Report {
	if err := w.client.Ping(ctx); err != nil {
		return &outage.Report{
			What: OutageName, Err: err,
			Sentence: "no Kafka broker answers; check that they run, " +
				"DISPATCHER_KAFKA_BROKERS and the TLS and SASL settings",
		}
	}
	request := kmsg.NewPtrMetadataRequest()
	for _, topic := range w.lane.Topics {
		wanted := kmsg.NewMetadataRequestTopic()
		wanted.Topic = new(topic)
		request.Topics = append(request.Topics, wanted)
	}
	answer, err := request.RequestWith(ctx, w.client)
	if err != nil {
		return &outage.Report{
			What: OutageName, Err: err,
			Sentence: "the Kafka brokers do not say which topics they have; " +
				"check that they run and that this user may DESCRIBE topics",
		}
	}
	for _, topic := range answer.Topics {
		if err := kerr.ErrorForCode(topic.ErrorCode); err != nil && topic.Topic != nil {
			return &outage.Report{
				What: "topic " + *topic.Topic, Err: err, Sentence: missing(*topic.Topic, err),
			}
		}
	}
	return nil
}

func missing(topic string, err error) string {
	switch {
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return fmt.Sprintf("topic %s does not exist; create it, for example with 12 partitions, "+
			"or name another in the lane's topics", topic)
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		return fmt.Sprintf("the brokers do not let this user read topic %s; "+
			"grant it READ and DESCRIBE", topic)
	}
	return fmt.Sprintf("topic %s cannot be read", topic)
}

// LaneState is the state of the intake of one lane.
type LaneState struct {
	Lane string
	// Away is the sentence that says why the lane cannot be read; empty when it can. It may be a few
	// seconds old, because the brokers are checked at intervals.
	Away string
	// Joined says that this process is a member of the group.
	Joined bool
	// Lag counts the records of this process's partitions that are not committed, as old as Away;
	// nil when it is not known.
	Lag *int64
}

// states has the state of each lane. It is safe for concurrent use.
type states struct {
	mu      sync.Mutex
	away    map[string]string      // guarded by mu: by lane
	lag     map[string]*int64      // guarded by mu: by lane
	clients map[string]*kgo.Client // guarded by mu: by lane, once it has one
}

func newStates() *states {
	return &states{
		away: map[string]string{}, lag: map[string]*int64{}, clients: map[string]*kgo.Client{},
	}
}

// connected registers the client of a lane.
func (s *states) connected(lane string, client *kgo.Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients[lane] = client
}

// found records the result of a check.
func (s *states) found(lane, away string, lag *int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away[lane], s.lag[lane] = away, lag
}

// State is the state of each lane's intake, in order of their names. It does not ask the brokers.
func (c *Consumer) State() []LaneState {
	c.states.mu.Lock()
	defer c.states.mu.Unlock()
	all := make([]LaneState, 0, len(c.cfg.Lanes))
	for _, lane := range c.cfg.Lanes {
		state := LaneState{
			Lane: lane.Name, Away: c.states.away[lane.Name], Lag: c.states.lag[lane.Name],
		}
		if client := c.states.clients[lane.Name]; client != nil {
			_, generation := client.GroupMetadata()
			state.Joined = generation >= 0
		}
		all = append(all, state)
	}
	slices.SortFunc(all, func(a, b LaneState) int { return strings.Compare(a.Lane, b.Lane) })
	return all
}
