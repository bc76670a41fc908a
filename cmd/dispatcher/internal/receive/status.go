package receive

import (
	"time"

	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/ledger"
)

// status is the event of a message whose state changes by a receipt, or because none came in time.
// Its metadata comes from the stored envelope; if that cannot be decoded, the event has none.
func status(c *ledger.Closing) (notice *ledger.Notice, traceparent string) {
	message, problem := envelope.Decode(c.Envelope, true)
	if problem != nil {
		message.Metadata = nil
	}
	event := envelope.Status{
		ID: c.ID, State: string(c.State), At: c.At, Lane: c.Lane, Tenant: c.Tenant, Route: c.Route,
		Channel: c.Channel, Attempt: c.Attempt, Cause: string(c.Cause), Code: c.Code,
		Reference: c.Reference,
		Segments:  c.Segments, PossibleDuplicate: c.PossibleDuplicate, Metadata: message.Metadata,
	}
	return &ledger.Notice{Kind: ledger.Status, Key: c.ID, Value: envelope.AppendStatus(make([]byte,
		0, 256), event)}, message.Traceparent
}

// stateCounts counts the messages of one transaction by channel and new state.
type stateCounts struct {
	messages map[closedAs]int
	traced   bool      // whether traces are recorded
	traces   []brought // the messages that are traced
}

type closedAs struct {
	channel string
	state   ledger.State
}

// brought is a traced message with its new state.
type brought struct {
	traceparent, channel, state, cause, code string
	attempt                                  int
}

// tell is the ledger.Tell of the transaction.
func (t *stateCounts) tell(c *ledger.Closing) *ledger.Notice {
	if t.messages == nil {
		t.messages = map[closedAs]int{}
	}
	t.messages[closedAs{c.Channel, c.State}]++
	notice, traceparent := status(c)
	if t.traced && traceparent != "" {
		t.traces = append(t.traces, brought{
			traceparent, c.Channel, string(c.State), string(c.Cause), c.Code, c.Attempt,
		})
	}
	return notice
}

// trace records a transaction that has been committed.
func (b *Batcher) trace(t *stateCounts, began time.Time) {
	for i := range t.traces {
		c := &t.traces[i]
		b.cfg.Tracer.Receipt(c.traceparent, c.channel, c.state, c.cause, c.code, c.attempt, began)
	}
}
