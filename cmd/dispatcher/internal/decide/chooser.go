package decide

import (
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// Chooser makes the first choices of recorded messages again, as if they had come under another
// routing. It sees no shared state, so it shows what draws would pick, but no fallbacks and no
// modes that do not draw. It has scratch space: use it from one goroutine at a time.
type Chooser struct {
	planner planner
	held    map[string]bool // ids of the known keys
}

// NewChooser returns a Chooser. Without keys, only sticky routes can draw.
func NewChooser(routing *Routing, keys []selector.Key) *Chooser {
	c := &Chooser{held: make(map[string]bool, len(keys)+1)}
	for _, key := range keys {
		c.held[key.ID()] = true
	}
	c.held[""] = len(keys) > 0 // a message that was not drawn before is drawn under the first key
	if len(keys) == 0 {
		keys = []selector.Key{{}}
	}
	c.planner = planner{routing: routing, keys: newDrawers(keys)}
	return c
}

// Choice is the first choice that a message would have had.
type Choice struct {
	// Route would take the message; nil when none would, or the message is too long for it.
	Route *Route
	// First is the place of the first choice among the route's members; -1 when the route does not
	// draw, or when its draw needs a key that is not known.
	First int

	routing *Routing
	task    Task
}

// Choose plans a message as of the time at which it was received, drawn under its own key.
func (c *Chooser) Choose(m *ledger.Message) Choice {
	choice := Choice{First: -1, routing: c.planner.routing}
	msg, problem := envelope.Decode(m.Envelope, true)
	if problem != nil {
		return choice // it was decoded before it was stored: only damage explains this
	}
	t := &choice.task
	t.Row, t.msg = *m, msg
	c.planner.now = m.ReceivedAt
	if c.planner.choose(t) != nil {
		return choice
	}
	choice.Route = t.Route
	if t.Route.Draws() && (t.Route.Sticky || c.held[m.Plan.KeyID]) {
		choice.First = t.First
	}
	return choice
}

// Channel names the member at a place of the route.
func (c *Choice) Channel(place int) string {
	return c.routing.Channels[c.Route.Members[place]].Name
}

// Enabled reports whether the member at a place takes messages.
func (c *Choice) Enabled(place int) bool {
	return c.routing.Channels[c.Route.Members[place]].State.Takes()
}

// Bill is what the message would cost on the member at a place: its segments, and their price in
// micros of a currency.
func (c *Choice) Bill(place int) (segments int, micros int64, currency string) {
	ch := &c.routing.Channels[c.Route.Members[place]]
	segments = c.task.segments(ch)
	return segments, c.task.Price(ch, segments), ch.Price.Currency
}
