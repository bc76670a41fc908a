package control

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"dispatcher/cmd/dispatcher/internal/app"
	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/cmd/dispatcher/internal/numbers"
	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// TestConfig is what SendTest needs.
type TestConfig struct {
	Ledger       *ledger.Ledger
	Region       numbers.Region // of numbers without a country code
	AllowUnknown bool
	Publish      Publish
}

// TestMessage is a message that an operator sends over one channel to test it.
type TestMessage struct {
	ID       string // of the message; a new one if empty
	Channel  string
	To, Text string
	From     string // the channel's own if empty
}

// TestSent is a test message that was published.
type TestSent struct {
	ID    string `json:"id"`
	Lane  string `json:"lane"`
	Route string `json:"route"`
	Topic string `json:"topic"`
}

// testLife is how long a test message may wait for its channel. It is short, because its sender
// watches the result.
const testLife = 5 * time.Minute

// SendTest records who sends a test message, then publishes it. Only the given channel may send it.
// Otherwise it is a message like any other: limits count it and the provider bills it. A dry run
// checks it and publishes nothing.
func SendTest(ctx context.Context, cfg *TestConfig, m *TestMessage, by By) (TestSent, error) {
	if err := CheckReason(by.Reason); err != nil {
		return TestSent{}, err
	}
	_, doc, err := InForce(ctx, cfg.Ledger)
	if err != nil {
		return TestSent{}, err
	}
	if err := mayBeTested(doc, m.Channel); err != nil {
		return TestSent{}, err
	}
	lane := &doc.Lanes[max(0, slices.IndexFunc(doc.Lanes, func(l config.Lane) bool {
		return l.Name == "transactional"
	}))]
	sent := TestSent{
		ID: cmp.Or(m.ID, NewTestID(rand.Text())), Lane: lane.Name, Topic: lane.Topics[0],
	}
	value, err := sent.compose(doc, cfg, m)
	if err != nil || by.DryRun {
		return sent, err
	}
	if err := cfg.Ledger.Audits.Note(ctx, &ledger.Action{
		Name: "test", Subject: sent.ID, Author: by.Author, Via: by.Via,
		Reason: by.Reason,
	}); err != nil {
		return sent, err
	}
	if err := cfg.Publish(ctx, sent.Topic, sent.ID, value); err != nil {
		return sent, &Unpublished{
			"test message " + sent.ID,
			"look for it in a minute, and send another one if it is not there", err,
		}
	}
	return sent, nil
}

// NewTestID is the id of a test message, made of random text.
func NewTestID(random string) string { return "test-" + strings.ToLower(random) }

// mayBeTested refuses a channel that would never get the message.
func mayBeTested(doc *config.Routing, name string) error {
	channel, err := ChannelOf(doc, name)
	if err != nil {
		return err
	}
	_, own := channel.Labels[config.NameKey]
	switch {
	case own:
		return impossiblef("channel %s has a label %q of its own, so no message can ask for it by its "+
			"name: give the label another name", name, config.NameKey)
	case channel.State == config.Draining, channel.State == config.Disabled:
		return impossiblef("channel %s is %s and gets no message: enable it first, and give it the "+
			"weight 0 where it shall have no traffic", name, channel.State)
	}
	return nil
}

// compose makes the envelope, and plans it as the dispatcher will. It refuses one that the
// dispatcher could not use, or would not give to the channel.
func (s *TestSent) compose(doc *config.Routing, cfg *TestConfig, of *TestMessage) ([]byte, error) {
	now := time.Now().UTC()
	value, err := json.Marshal(map[string]any{
		"id": s.ID, "to": strings.TrimSpace(of.To), "from": strings.TrimSpace(of.From),
		"text": of.Text, "expires_at": now.Add(testLife).Format(time.RFC3339),
		"selectors": []map[string]any{
			{"key": config.NameKey, "operator": selector.Equal, "value": of.Channel},
		},
	})
	if err != nil {
		return nil, err
	}
	m, rewritten, problem := envelope.DecodeRewritten(value, cfg.AllowUnknown, cfg.Region.Rewrite)
	if rewritten != nil {
		value = rewritten
	}
	if problem != nil {
		return nil, refusef("%s: %s. What to do: %s", problem.Code, problem.Detail,
			problem.Code.Remedy())
	}
	routing, err := app.Compile(doc, 0)
	if err != nil {
		return nil, err
	}
	plan := decide.NewPlan(routing, []selector.Key{replayKey}, now, []decide.Job{{
		Lane: s.Lane, Produced: now, Raw: value, Message: m,
	}})
	task := &plan.Tasks[0]
	if task.Row.State == ledger.Dead {
		code := envelope.Code(task.Row.Reason)
		return nil, refusef("%s: %s. What to do: %s", code, task.Row.Detail, code.Remedy())
	}
	s.Route = task.Route.Name
	switch {
	case !slices.Contains(task.Route.Channels, of.Channel):
		return nil, impossiblef("route %s takes this message, and does not have channel %s: add it "+
			"there, with the weight 0 where it shall have no traffic", s.Route, of.Channel)
	case task.Route.Draws() && task.Route.Fallback == decide.Redraw && task.Route.Table.Entry(
		slices.Index(task.Route.Channels, of.Channel)).Weight.IsZero():
		return nil, impossiblef("route %s takes this message, and its fallback redraw never draws a "+
			"channel of weight 0: give channel %s a small weight", s.Route, of.Channel)
	case task.Route.BypassSelectors:
		return nil, impossiblef("route %s takes this message, and bypasses selectors: it would go to "+
			"another channel", s.Route)
	}
	return value, nil
}

// testPoll is how often AwaitAnswer reads the message.
const testPoll = 200 * time.Millisecond

// TestAnswer is the state of a test message.
type TestAnswer struct {
	State   string `json:"state" doc:"of the message; empty while it is not in the ledger"`
	Outcome string `json:"outcome" doc:"of its last attempt; empty while there is none"`
	Code    string `json:"code" doc:"that the provider gave with it"`
}

// AwaitAnswer waits until a provider has answered a message, or the message has ended otherwise.
// When ctx ends first, it returns what is known so far and no error.
func AwaitAnswer(ctx context.Context, l *ledger.Ledger, id string) (a TestAnswer, err error) {
	ticker := time.NewTicker(testPoll)
	defer ticker.Stop()
	for {
		record, err := l.Messages.Record(ctx, id)
		switch {
		case ctx.Err() != nil:
			return a, nil // it was not answered in time
		case errors.Is(err, ledger.ErrNoMessage):
		case err != nil:
			return a, err
		default:
			a.State = string(record.Message.State)
			if n := len(record.Attempts); n > 0 {
				a.Outcome, a.Code = record.Attempts[n-1].Outcome, record.Attempts[n-1].Code
			}
			if answered(record.Message.State) {
				return a, nil
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return a, nil
		}
	}
}

// answered reports whether a message in this state has an answer of a provider, or has ended.
func answered(s ledger.State) bool {
	switch s {
	case ledger.Scheduled, ledger.Waiting, ledger.Sending:
		return false
	default:
		return true
	}
}
