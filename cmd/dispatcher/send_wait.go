package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"dispatcher/config"
)

// waitTimeout is the default of "send --wait": longer than a provider takes to answer, and mostly
// longer than a handset takes to confirm.
const waitTimeout = 2 * time.Minute

// waiter follows the message that "send --wait" publishes.
type waiter struct {
	from     *follower
	receipts receiptChannels
	known    bool // the routing is known, and so are the channels whose receipts are expected
	timeout  time.Duration
}

// newWaiter opens the status topic before the message is published, so that no event is missed.
func newWaiter(ctx context.Context, f *sendFlags, s *config.Settings) (*waiter, error) {
	doc, err := knownRouting(ctx, s)
	if err != nil {
		return nil, err
	}
	from, err := follow(ctx, s, time.Time{})
	if err != nil {
		return nil, err
	}
	return &waiter{
		from: from, receipts: receiptsOf(doc), known: doc != nil,
		timeout: f.timeout,
	}, nil
}

// await returns the last event of the message: the one that ended it or, on a timeout, the latest,
// which is nil when there was none. It calls show for each event.
func (w *waiter) await(
	ctx context.Context, id string, show func(*statusEvent, []byte) error,
) (latest *statusEvent, timely bool, err error) {
	waiting, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	err = w.from.each(waiting, func(event *statusEvent, raw []byte) (bool, error) {
		if event.ID != id && event.ConflictingID != id {
			return true, nil
		}
		latest, timely = event, event.ended(w.receipts)
		return !timely, show(event, raw)
	})
	switch {
	case ctx.Err() != nil:
		return latest, false, &codedError{code: exitInterrupted, err: fmt.Errorf("interrupted; %s "+
			"is published and goes its way: \"dispatcher tail --id %s --until-final\" follows it",
			quoted(id), quoted(id))}
	case waiting.Err() != nil && !timely:
		err = nil
	}
	return latest, timely, err
}

// sentEvent is the JSON of "send --wait": that of "send" and the last event.
type sentEvent struct {
	*sendResult

	Final    *statusEvent `json:"final"` // the last event; null if none came
	TimedOut bool         `json:"timed_out"`
}

// wait follows the message to its end and says how it ended.
func (c *cli) wait(ctx context.Context, f *sendFlags, w *waiter, sent *sendResult) error {
	show := func(*statusEvent, []byte) error { return nil }
	if f.as == formatTable {
		show = newEventPrinter(c.out, f.as).show
	}
	last, timely, err := w.await(ctx, sent.LastID, show)
	if err != nil {
		return err
	}
	switch f.as {
	case formatJSON:
		err = printJSON(c.out, sentEvent{sendResult: sent, Final: last, TimedOut: !timely})
	case formatCSV:
		if last != nil {
			raw, _ := json.Marshal(last) // it was read from JSON
			err = newEventPrinter(c.out, f.as).show(last, raw)
		}
	case formatTable:
		if timely && last.arrived() {
			_, err = io.WriteString(c.out, "\n"+w.conclusion(sent.LastID, last,
				timely)+"\n"+nextSteps(c.self(), sent))
		}
	}
	switch {
	case err != nil:
		return fmt.Errorf("write the result: %w", err)
	case !timely || !last.arrived():
		return failed(errors.New(w.conclusion(sent.LastID, last, timely)))
	}
	return nil
}

// conclusion is the end of the message in one sentence.
func (w *waiter) conclusion(id string, last *statusEvent, timely bool) string {
	switch {
	case last == nil:
		return fmt.Sprintf("no event came within %s: see that \"dispatcher run\" runs; a message "+
			"whose id was sent before has no new events, \"explain\" shows what became of it",
			w.timeout)
	case !timely:
		return fmt.Sprintf("%s is still %s after %s; it goes its way, and \"dispatcher tail --id "+
			"%s --until-final\" follows it", id, last.State, w.timeout, quoted(id))
	}
	text := id + " was " + last.State
	switch last.State {
	case "accepted":
		if !w.known {
			return text + " by channel " + last.Channel + "; whether a receipt follows is not " +
				"known here, because neither DISPATCHER_POSTGRES_URL nor DISPATCHER_ROUTING_FILE " +
				"is set"
		}
		return text + " by channel " + last.Channel + ", whose receipts are not expected"
	case "delivered":
		return text + " by channel " + last.Channel
	case "no_receipt":
		text = id + " was accepted by channel " + last.Channel + ", and no receipt came"
	case "failed":
		text = id + " failed"
	case "dead", "unknown":
		text = id + " is " + last.State
	}
	for _, why := range []string{last.Reason, last.Cause, last.Detail} {
		if why != "" {
			text += ": " + why
		}
	}
	return text
}
