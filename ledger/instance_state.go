package ledger

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// InstanceState is the state of channels and lanes that only one process knows, for people to look
// at. It holds no number and no text.
type InstanceState struct {
	// Version is the routing version that the process uses.
	Version  int64                      `json:"version"`
	Channels map[string]InstanceChannel `json:"channels,omitempty"`
	Lanes    map[string]InstanceLane    `json:"lanes,omitempty"`
}

// InstanceChannel is one channel in one process.
type InstanceChannel struct {
	// Why is the exclusion reason of the channel, a word of decide; empty when it can send now.
	Why string `json:"why,omitempty"`
	// Breaker is closed, half_open or open; BreakerSince is since when, by the database's clock.
	Breaker      string     `json:"breaker,omitempty"`
	BreakerSince *time.Time `json:"breaker_since,omitempty"`
	// Silent reports that submissions got no answer in time.
	Silent bool `json:"silent,omitempty"`
	// Unanswered counts the attempts that the process has claimed and that have no answer.
	Unanswered int64 `json:"unanswered,omitempty"`
	// Answers counts the answers of the last minutes by how long they took. The key is the upper
	// bound, in microseconds.
	Answers map[int64]int64 `json:"answers,omitempty"`
}

// InstanceLane is the intake of one lane in one process.
type InstanceLane struct {
	Joined bool `json:"joined,omitempty"` // the process is a member of the consumer group
	// Paused says that the topics are not read because too many messages of the lane wait.
	Paused bool   `json:"paused,omitempty"`
	Away   string `json:"away,omitempty"` // why Kafka cannot be read, as a sentence
	// Lag counts the records of its partitions that are not committed; nil when it is not known.
	Lag *int64 `json:"lag,omitempty"`
}

// text is the JSON of a state; nil for none.
func (s *InstanceState) text() (*string, error) {
	if s == nil {
		return nil, nil
	}
	raw, err := json.Marshal(s)
	return new(string(raw)), err
}

// Instance is one running process, as it last reported.
type Instance struct {
	ID                    int64
	Region, Host, Version string
	StartedAt, LastSeen   time.Time
	State                 InstanceState // zero before its first report
}

// List reads the instances that have not left and have sent a heartbeat within deadAfter, in the
// order of their ids, and the database's clock.
func (s *Instances) List(
	ctx context.Context, deadAfter time.Duration,
) (all []Instance, now time.Time, err error) {
	all, err = rows(ctx, s.db, func(r pgx.CollectableRow) (i Instance, err error) {
		var state pgtype.Text
		err = r.Scan(&i.ID, &i.Region, &i.Host, &i.Version, &i.StartedAt, &i.LastSeen, &state, &now)
		if err == nil && state.Valid {
			err = json.Unmarshal([]byte(state.String), &i.State)
		}
		i.StartedAt, i.LastSeen = i.StartedAt.UTC(), i.LastSeen.UTC()
		return i, err
	}, `
		select id, region, host, version, started_at, last_seen, state::text, clock_timestamp()
		from dispatcher.instances
		where left_at is null and last_seen >= clock_timestamp() - $1::interval
		order by id`, deadAfter)
	return all, now.UTC(), wrap("list instances", err)
}
