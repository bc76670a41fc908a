package consume

import (
	"slices"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// LaneState is what is known of the intake of one lane.
type LaneState struct {
	Lane string
	// Away is the sentence that says why the lane cannot be read; empty when nothing is in the way.
	// It is as old as a look at the brokers, which is some seconds.
	Away string
	// Joined says that this process is a member of the group.
	Joined bool
}

// states are those of all lanes. They are safe for concurrent use.
type states struct {
	mu      sync.Mutex
	away    map[string]string      // guarded by mu: by lane
	clients map[string]*kgo.Client // guarded by mu: by lane, once it has one
}

func newStates() *states {
	return &states{away: map[string]string{}, clients: map[string]*kgo.Client{}}
}

// connected notes the client of a lane.
func (s *states) connected(lane string, client *kgo.Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients[lane] = client
}

// found notes what a look has found.
func (s *states) found(lane, away string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away[lane] = away
}

// State is how the intake of each lane stands, in order of their names. It answers at once.
func (c *Consumer) State() []LaneState {
	c.states.mu.Lock()
	defer c.states.mu.Unlock()
	all := make([]LaneState, 0, len(c.cfg.Lanes))
	for _, lane := range c.cfg.Lanes {
		state := LaneState{Lane: lane.Name, Away: c.states.away[lane.Name]}
		if client := c.states.clients[lane.Name]; client != nil {
			_, generation := client.GroupMetadata()
			state.Joined = generation >= 0
		}
		all = append(all, state)
	}
	slices.SortFunc(all, func(a, b LaneState) int { return strings.Compare(a.Lane, b.Lane) })
	return all
}
