package status

import (
	"maps"
	"slices"
	"time"

	"dispatcher/ledger"
)

// Instances are the running instances, and what each last said of itself. Scripts rely on its JSON
// names.
type Instances struct {
	Version   int64      `json:"version" doc:"of the routing in force"`
	Instances []Instance `json:"instances" nullable:"false"`
}

// Instance is one running instance with its view of channels and lanes.
type Instance struct {
	Process
	LastSeen   time.Time         `json:"last_seen" doc:"by the database's clock"`
	Behind     bool              `json:"behind" doc:"it uses an older routing version"`
	Unanswered int64             `json:"unanswered" doc:"its attempts without an answer"`
	Channels   []InstanceChannel `json:"channels" nullable:"false"`
	Lanes      []InstanceLane    `json:"lanes" nullable:"false"`
}

// InstanceChannel is a channel as one instance sees it.
type InstanceChannel struct {
	Channel      string     `json:"channel"`
	NotReady     string     `json:"not_ready" doc:"why it cannot send now; empty when it can"`
	Breaker      string     `json:"breaker" doc:"closed, half_open or open; empty for none"`
	BreakerSince *time.Time `json:"breaker_since"`
	Silent       bool       `json:"silent" doc:"submissions got no answer in time"`
	Unanswered   int64      `json:"unanswered"`
}

// InstanceLane is the intake of one lane in one instance.
type InstanceLane struct {
	Lane   string `json:"lane"`
	Joined bool   `json:"joined" doc:"it is a member of the consumer group"`
	Paused bool   `json:"paused" doc:"it does not read, because too many messages wait or somebody has paused the lane"`
	Away   string `json:"away" doc:"why Kafka cannot be read; empty when it can"`
	Lag    *int64 `json:"lag" doc:"records of its partitions that are not in the ledger; null when it does not know"`
}

func newInstance(i *ledger.Instance, version int64) Instance {
	out := Instance{
		Process: newProcess(i), LastSeen: i.LastSeen.UTC(),
		Behind:   i.State.Version != 0 && i.State.Version < version,
		Channels: []InstanceChannel{}, Lanes: []InstanceLane{},
	}
	for _, name := range slices.Sorted(maps.Keys(i.State.Channels)) {
		c := i.State.Channels[name]
		out.Unanswered += c.Unanswered
		out.Channels = append(out.Channels, InstanceChannel{
			name, c.Why, c.Breaker, c.BreakerSince, c.Silent, c.Unanswered,
		})
	}
	for _, name := range slices.Sorted(maps.Keys(i.State.Lanes)) {
		lane := i.State.Lanes[name]
		out.Lanes = append(out.Lanes, InstanceLane{
			name, lane.Joined, lane.Paused, lane.Away, lane.Lag,
		})
	}
	return out
}

func newProcess(i *ledger.Instance) Process {
	return Process{i.ID, i.Region, i.Host, i.Version, i.StartedAt, i.State.Version}
}
