package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/app"
	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/cmd/dispatcher/internal/numbers"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/cmd/dispatcher/internal/scoring"
	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// demoKey draws when no key is set: every byte is 01. It is public, so that everybody gets the same
// answer, and must not be used for anything else.
var demoKey = selector.Key(bytes.Repeat([]byte{0x01}, selector.KeySize))

// channelState is one channel of a state file.
type channelState struct {
	// Active is how many attempts are in flight on it.
	Active int64 `json:"active"`
	// LastAssigned is when it last got an attempt; absent means never.
	LastAssigned time.Time `json:"last_assigned"`
	// Ready is whether it has a connection; absent means yes.
	Ready *bool `json:"ready"`
}

// forecast works out what would happen to a message.
func (c *cli) forecast(f *explainFlags) error {
	if f.routing == "" || f.message == "" {
		return usage(errors.New("--routing and --message belong together: name both files"))
	}
	doc, err := readRouting("--routing", f.routing)
	if err != nil {
		return err
	}
	q, err := c.newQuestion(f, doc)
	if err != nil {
		return usage(err)
	}
	settings, err := c.load()
	if err != nil {
		return usage(err)
	}
	keys, note, err := forecastKeys(&settings)
	if err != nil {
		return err
	}
	q.Keys = keys
	troubles := app.ReadTokens(doc, q.Routing, settings.Secrets())
	scorer, err := scoring.New(scoring.Config{Registry: prometheus.NewRegistry()})
	if err != nil {
		return err
	}
	defer scorer.Close()
	if function, about := q.Function(); function != nil {
		scores := scorer.Scores(context.Background(), function, about)
		q.Scores = &scores
	}
	answer := decide.Explain(q)
	e, err := report.Forecast(q.Job.Message.ID, &answer, doc, q.Keys...)
	if err != nil {
		return err
	}
	if trouble := troubles[e.Route]; trouble != nil {
		e.Text += fmt.Sprintf(" The scoring function was asked without its token: %v.", trouble)
	}
	if e.Draw != nil || answer.By == decide.Redraw {
		e.Text = strings.TrimSpace(e.Text + " " + note)
	}
	if err := c.printExplanation(&e, f.as); err != nil {
		return err
	}
	if answer.Problem != nil {
		return failed(nil) // the text says it
	}
	return nil
}

// forecastKeys are the keys to draw with, and a note if they are not the operator's own.
func forecastKeys(s *config.Settings) ([]selector.Key, string, error) {
	fromEmbedded(s)
	embeddedKey(s)
	if s.DrawKeyFile == "" {
		return []selector.Key{demoKey}, "The draw was made with the public demo key (32 bytes of " +
			"01), since DISPATCHER_DRAW_KEY_FILE is not set.", nil
	}
	keys, err := config.DrawKeys(s.DrawKeyFile)
	if err != nil {
		return nil, "", usage(err)
	}
	return keys, "", nil
}

// newQuestion reads the files.
func (c *cli) newQuestion(f *explainFlags, doc *config.Routing) (*decide.ExplainInput, error) {
	lane, err := laneOf(f.lane, doc)
	if err != nil {
		return nil, err
	}
	message, raw, err := c.readMessage(f.message)
	if err != nil {
		return nil, err
	}
	routing, err := app.Compile(doc, 0)
	if err != nil {
		return nil, err
	}
	now := time.Now().UTC()
	q := &decide.ExplainInput{
		Routing: routing, Now: now, Unready: map[string]string{},
		Job: decide.Job{Lane: lane, Produced: now, Raw: raw, Message: message},
	}
	return q, readState(q, f.state, doc)
}

// readMessage reads the one envelope of a file, or of standard input for "-".
func (c *cli) readMessage(path string) (message envelope.Message, raw []byte, err error) {
	name, raw, err := c.readInput(path)
	if err != nil {
		return message, nil, fmt.Errorf("--message: %w", err)
	}
	raw = c.defaultRegion().Rewrite(raw)
	message, problem := envelope.Decode(raw, false)
	if problem != nil {
		return message, nil, fmt.Errorf("--message: %s: %s", positioned(name, raw), problem.Detail)
	}
	return message, raw, nil
}

// defaultRegion reads the default region from the environment, if it can. Errors of settings are
// not reported here, because an explanation hardly needs them.
func (c *cli) defaultRegion() numbers.Region {
	s, err := c.load()
	if err != nil {
		return ""
	}
	region, err := numbers.ParseRegion(s.DefaultRegion)
	if err != nil {
		return ""
	}
	return region
}

// positioned adds to a file's name the position at which its JSON is invalid, if it is. The content
// is not shown.
func positioned(name string, raw []byte) string {
	var value any
	syntax, broken := errors.AsType[*json.SyntaxError](json.Unmarshal(raw, &value))
	if !broken {
		return name
	}
	before := raw[:max(0, min(int(syntax.Offset)-1, len(raw)))]
	line := 1 + bytes.Count(before, []byte{'\n'})
	return fmt.Sprintf("%s:%d:%d", name, line, len(before)-bytes.LastIndexByte(before, '\n'))
}

// laneOf is the named lane, else transactional if the document has it, else its first.
func laneOf(name string, doc *config.Routing) (string, error) {
	lanes := doc.LaneNames()
	switch {
	case name != "" && !slices.Contains(lanes, name):
		return "", fmt.Errorf("--lane: there is no lane %q; choose one of %s", name,
			strings.Join(lanes, ", "))
	case name != "":
		return name, nil
	case slices.Contains(lanes, "transactional"):
		return "transactional", nil
	}
	return lanes[0], nil
}

// readState fills in the channels' state: the bounds from the document, the load from the file.
func readState(q *decide.ExplainInput, path string, doc *config.Routing) error {
	given := struct {
		Channels map[string]channelState `json:"channels"`
		// Cursors are the channels that had the last turn, by route.
		Cursors map[string]string `json:"cursors"`
	}{}
	if path != "" {
		raw, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("--state: %w; correct the path", err)
		}
		d := json.NewDecoder(bytes.NewReader(raw))
		d.DisallowUnknownFields()
		err = d.Decode(&given)
		if err == nil && d.More() {
			err = errors.New("more follows behind it")
		}
		if err != nil {
			return fmt.Errorf(`--state: %s is not {"channels": {NAME: {"active": 0, `+
				`"last_assigned": "2026-11-21T10:00:00Z", "ready": true}}}: %w`, path, err)
		}
	}
	for name, state := range given.Channels {
		if doc.Channel(name) == nil {
			return fmt.Errorf("--state: %s names channel %q, which the routing document does not "+
				"have", path, name)
		}
		if state.Active < 0 {
			return fmt.Errorf("--state: %s: active of channel %s is negative", path, name)
		}
	}
	for name, channel := range given.Cursors {
		cursor, err := cursorOf(doc, name, channel)
		if err != nil {
			return fmt.Errorf("--state: %s: cursors: %w", path, err)
		}
		q.Cursors = append(q.Cursors, cursor)
	}
	for i := range doc.Channels {
		q.Channels = append(q.Channels, stateOf(&doc.Channels[i],
			given.Channels[doc.Channels[i].Name], q))
	}
	return nil
}

// cursorOf is the round robin position of a route.
func cursorOf(doc *config.Routing, name, channel string) (ledger.Cursor, error) {
	route, err := control.RouteOf(doc, name)
	if err != nil {
		return ledger.Cursor{}, err
	}
	at := slices.Index(route.Channels, channel)
	if at < 0 {
		return ledger.Cursor{}, fmt.Errorf("route %s has no channel %q", name, channel)
	}
	return ledger.Cursor{Route: name, Channel: channel, Position: at}, nil
}

// stateOf is one channel at the beginning of its windows.
func stateOf(c *config.Channel, given channelState, q *decide.ExplainInput) ledger.ChannelState {
	state := ledger.ChannelState{Name: c.Name, LastAssigned: given.LastAssigned.UTC()}
	state.Gate.Active = admission.Active{Max: c.Active.Max, Count: given.Active}
	for _, limit := range c.Limits {
		if limit.Scope != (admission.Scope{}) {
			continue // nothing has been taken of limits of tenants and prefixes
		}
		state.Gate.Counters = append(state.Gate.Counters, limit.Unused())
	}
	if given.Ready != nil && !*given.Ready {
		q.Unready[c.Name] = "not_ready"
	}
	return state
}
