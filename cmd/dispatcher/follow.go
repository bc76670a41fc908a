package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"dispatcher/cmd/dispatcher/internal/app"
	"dispatcher/config"
)

// statusEvent holds the fields of an event that "tail" and "send --wait" use; see
// docs/schema/status.schema.json.
type statusEvent struct {
	ID                string `json:"id"`
	Seq               int64  `json:"seq"`
	State             string `json:"state"`
	At                string `json:"at"`
	Lane              string `json:"lane"`
	Tenant            string `json:"tenant,omitempty"`
	Route             string `json:"route,omitempty"`
	Channel           string `json:"channel,omitempty"`
	Attempt           int    `json:"attempt,omitempty"`
	Reason            string `json:"reason,omitempty"`
	Detail            string `json:"detail,omitempty"`
	Cause             string `json:"cause,omitempty"`
	Code              string `json:"code,omitempty"`
	Reference         string `json:"reference,omitempty"`
	Segments          int    `json:"segments,omitempty"`
	PartsAccepted     int    `json:"parts_accepted,omitempty"`
	PossibleDuplicate bool   `json:"possible_duplicate,omitempty"`
	ConflictingID     string `json:"conflicting_id,omitempty"`
	// Topic, Partition and Offset are where a dead record was read; nil or empty for other events.
	Topic     string `json:"topic,omitempty"`
	Partition *int32 `json:"partition,omitempty"`
	Offset    *int64 `json:"offset,omitempty"`
}

// key is the id of the message, or the position of a dead record without an id.
func (e *statusEvent) key() string {
	if e.ID == "" && e.Topic != "" && e.Partition != nil && e.Offset != nil {
		return fmt.Sprintf("%s/%d/%d", e.Topic, *e.Partition, *e.Offset)
	}
	return e.ID
}

// ended reports whether no further event is expected, though a late receipt may still cause one.
func (e *statusEvent) ended(receipts receiptChannels) bool {
	switch e.State {
	case "delivered", "undelivered", "no_receipt", "rejected", "failed", "dead":
		return true
	case "unknown":
		return e.Reason == "ambiguous_final"
	case "accepted":
		return !receipts[e.Channel]
	}
	return false
}

// arrived reports whether the message reached the best state that it can.
func (e *statusEvent) arrived() bool { return e.State == "delivered" || e.State == "accepted" }

// receiptChannels are the channels whose receipts are expected, so that accepted is not the end. It
// is empty when the routing is not known.
type receiptChannels map[string]bool

// receiptsOf are the receiptChannels of a routing; nil means that it is not known.
func receiptsOf(doc *config.Routing) receiptChannels {
	expecting := receiptChannels{}
	if doc != nil {
		for i := range doc.Channels {
			expecting[doc.Channels[i].Name] = app.Awaits(&doc.Channels[i]) > 0
		}
	}
	return expecting
}

// follower reads the status topic from fixed offsets, without a group. It leaves out repetitions
// and events older than one already seen of the same message.
type follower struct {
	settings *config.Settings
	client   *kgo.Client
	highest  map[string]int64 // seq by message id
}

// rememberedIDs bounds the memory for repetitions, which follow the original within seconds.
const rememberedIDs = 100_000

// follow opens the status topic at a time; the zero time means now. Everything published after
// follow has returned is read.
func follow(ctx context.Context, s *config.Settings, since time.Time) (*follower, error) {
	client, err := openKafka(ctx, s, kgo.ClientID("dispatcher-tail"))
	if err != nil {
		return nil, err
	}
	offsets, err := startOffsets(ctx, client, s.StatusTopic, since)
	if err != nil {
		client.Close()
		return nil, usage(kafkaTopicTrouble(s, s.StatusTopic, err))
	}
	client.AddConsumePartitions(map[string]map[int32]kgo.Offset{s.StatusTopic: offsets})
	return &follower{settings: s, client: client, highest: map[string]int64{}}, nil
}

func (f *follower) close() { f.client.Close() }

// startOffsets are the offsets from which each partition is read.
func startOffsets(
	ctx context.Context, client *kgo.Client, topic string, since time.Time,
) (map[int32]kgo.Offset, error) {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	if err := topicExists(ctx, client, topic); err != nil {
		return nil, err
	}
	admin := kadm.NewClient(client)
	listed, err := admin.ListEndOffsets(ctx, topic)
	if !since.IsZero() && err == nil {
		listed, err = admin.ListOffsetsAfterMilli(ctx, since.UnixMilli(), topic)
	}
	if err == nil {
		err = listed.Error()
	}
	offsets := map[int32]kgo.Offset{}
	listed.Each(func(o kadm.ListedOffset) { offsets[o.Partition] = kgo.NewOffset().At(o.Offset) })
	return offsets, err
}

// each calls use with every event and its JSON, until use wants no more or fails, or ctx ends. It
// waits for brokers that are away.
func (f *follower) each(
	ctx context.Context, use func(event *statusEvent, raw []byte) (more bool, err error),
) error {
	for {
		fetches := f.client.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			return err
		}
		for iterator := fetches.RecordIter(); !iterator.Done(); {
			raw := iterator.Next().Value
			var event statusEvent
			if json.Unmarshal(raw, &event) != nil || event.key() == "" {
				continue // something else was published to the topic
			}
			if f.repeated(&event) {
				continue
			}
			if more, err := use(&event, raw); err != nil || !more {
				return err
			}
		}
		if err := fetches.Err0(); err != nil && !errors.Is(err, context.Canceled) {
			return failed(fmt.Errorf("read %s: %w", f.settings.StatusTopic,
				kafkaTopicTrouble(f.settings, f.settings.StatusTopic, err)))
		}
	}
}

// repeated reports whether this event of the message, or a later one, was seen before.
func (f *follower) repeated(event *statusEvent) bool {
	key := event.key()
	if f.highest[key] >= event.Seq {
		return true
	}
	if len(f.highest) >= rememberedIDs {
		clear(f.highest)
	}
	f.highest[key] = event.Seq
	return false
}
