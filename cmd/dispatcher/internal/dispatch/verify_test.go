package dispatch

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/ledger"
	"dispatcher/selector"
	"dispatcher/selector/score"
)

var verifyKeys = []selector.Key{{1}, {2}}

// fataler is a test of either kind.
type fataler interface {
	Helper()
	Fatal(args ...any)
}

// verified derives a record again under one routing.
func verified(t fataler, routing *Routing, r *ledger.Record) []Mismatch {
	t.Helper()
	found, err := NewVerifier(verifyKeys, func(version int64) (*Routing, error) {
		if version != routing.Version {
			return nil, fmt.Errorf("version %d was never applied", version)
		}
		return routing, nil
	}).Verify(r)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// drawnRouting is any routing of one route: any mode, fallback, scoring, weights and channels.
func drawnRouting(t *rapid.T) *Routing {
	n := rapid.IntRange(1, 40).Draw(t, "channels")
	r := &Routing{
		Version: 7, Zone: time.UTC,
		Lanes: map[string]Lane{"bulk": {Name: "bulk", Order: 1, TTL: time.Hour}, "otp": {Name: "otp", TTL: time.Hour}},
	}
	entries := make([]selector.Entry, n)
	for i := range n {
		name := fmt.Sprintf("c%02d", i)
		weight := rapid.IntRange(0, 3).Draw(t, "weight")
		if i == 0 {
			weight++
		}
		entries[i] = selector.Entry{Name: name, Weight: selector.MustWeight(fmt.Sprint(weight))}
		r.Channels = append(r.Channels, Channel{
			Name: name, Capacity: rapid.Int64Range(1, 3).Draw(t, "capacity"),
			State:  rapid.SampledFrom([]ChannelState{Enabled, Enabled, Enabled, Draining, Disabled}).Draw(t, "state"),
			Labels: map[string]selector.Value{"quality": selector.NumberValue(float64(rapid.IntRange(0, 3).Draw(t, "quality")))},
			Price:  NewPrice("GBP", rapid.Int64Range(1, 3).Draw(t, "price")*1000, nil),
		})
	}
	table, err := selector.NewTable(entries)
	if err != nil {
		t.Fatal(err)
	}
	route := Route{
		Name: "default", Table: table, MaxSegments: 10,
		Mode:            rapid.SampledFrom([]Mode{Weighted, RoundRobinMode, LongestIdle, BestWorkerMode}).Draw(t, "mode"),
		Fallback:        rapid.SampledFrom([]Ranker{LoadRatio, BestWorker, RoundRobin, Redraw}).Draw(t, "fallback"),
		BypassSelectors: rapid.Bool().Draw(t, "bypass"),
		Scoring:         Scoring{Ascending: rapid.Bool().Draw(t, "ascending")},
	}
	switch rapid.IntRange(0, 3).Draw(t, "scoring") {
	case 1, 2: // which fails while a channel of quality 0 is among them
		source := rapid.SampledFrom([]string{"channel.labels.quality + load_ratio", "1 / channel.labels.quality - price"}).Draw(t, "expression")
		if route.Scoring.Expression, err = score.Compile(source); err != nil {
			t.Fatal(err)
		}
	case 3:
		route.Scoring.Function = &Function{Deadline: time.Second}
	}
	route.Members = rapid.Permutation(places(n)).Draw(t, "listing")
	// Entries of the table are the members in their order.
	ordered := make([]selector.Entry, n)
	for i, c := range route.Members {
		ordered[i] = entries[c]
	}
	if route.Table, err = selector.NewTable(ordered); err != nil {
		t.Fatal(err)
	}
	r.Routes = []Route{route}
	return r
}

func places(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// drawnState is any shared state of the channels, and what this process knows of its connections.
func drawnState(t *rapid.T, r *Routing) (*ledger.Seen, []string) {
	seen := &ledger.Seen{Now: noon, Version: r.Version}
	unready := make([]string, len(r.Channels))
	for i := range r.Channels {
		state := ledger.ChannelState{Name: r.Channels[i].Name}
		state.Gate.Active = admission.Active{Count: rapid.Int64Range(0, 3).Draw(t, "active"), Max: 4}
		if ago := rapid.IntRange(0, 3).Draw(t, "idle"); ago > 0 {
			state.LastAssigned = noon.Add(-time.Duration(ago) * time.Minute)
		}
		seen.Channels = append(seen.Channels, state)
		unready[i] = rapid.SampledFrom([]string{"", "", "connecting"}).Draw(t, "unready")
	}
	if cursor := rapid.IntRange(-1, len(r.Channels)-1).Draw(t, "cursor"); cursor >= 0 {
		seen.Cursors = []ledger.Cursor{{Route: "default", Channel: r.Channels[r.Routes[0].Members[cursor]].Name, Position: cursor}}
	} else {
		seen.Cursors = []ledger.Cursor{{Route: "default", Position: -1}}
	}
	return seen, unready
}

// drawnJob is a message with any wishes.
func drawnJob(t *rapid.T) Job {
	m := envelope.Message{ID: rapid.StringMatching(`[a-z]{1,8}`).Draw(t, "id"), To: "+447700900123", Text: "x"}
	for range rapid.IntRange(0, 2).Draw(t, "selectors") {
		m.Selectors = append(m.Selectors, envelope.Selector{
			Key: "quality", Operator: rapid.SampledFrom([]selector.Operator{selector.GreaterThan, selector.Equal, selector.LessThanEqual}).Draw(t, "operator"),
			Value: selector.NumberValue(float64(rapid.IntRange(0, 3).Draw(t, "value"))),
		})
	}
	if rapid.Bool().Draw(t, "capped") {
		cap := rapid.Int64Range(1, 3).Draw(t, "cap") * 1000
		m.MaxPrice = &cap
	}
	return Job{Message: m, Raw: m.Append(nil), Lane: "bulk", Produced: noon.Add(-time.Second)}
}

// TestWhateverIsDecidedCanBeDerivedAgain lets the pipeline's own functions make up to three
// attempts at a message under any routing and any state, and has each verified from what is stored.
func TestWhateverIsDecidedCanBeDerivedAgain(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		routing, job := drawnRouting(t), drawnJob(t)
		keys := newDrawers(verifyKeys[rapid.IntRange(0, 1).Draw(t, "rotated"):])
		p := &planner{routing: routing, keys: keys, now: noon}
		task := p.plan(&job)
		task.row.ReceivedAt = noon
		record := ledger.Record{Message: task.row}
		for range 3 {
			if task.route.asks() {
				task.scores = drawnScores(t, len(routing.Channels))
			}
			seen, unready := drawnState(t, routing)
			d := newAssigner(routing, keys, seen, unready).decide(&task)
			record.Message.Plan = d.Plan
			if d.State != ledger.Sending {
				record.Seen = d.Seen
				break
			}
			record.Attempts = append(record.Attempts, ledger.AttemptRecord{Attempt: d.Attempt, ClaimedAt: noon})
			row := task.row
			row.Plan, row.Attempts, row.Tried = d.Plan, row.Attempts+1, append(row.Tried, d.Attempt.Channel)
			task = p.planDue(row)
		}
		if found := verified(t, routing, &record); len(found) > 0 {
			t.Fatalf("%d attempts, differences: %+v", len(record.Attempts), found)
		}
	})
}

func drawnScores(t *rapid.T, n int) *Scores {
	if rapid.Bool().Draw(t, "timeout") {
		return &Scores{Trouble: FunctionTimeout}
	}
	s := &Scores{Values: make([]float64, n)}
	for i := range s.Values {
		s.Values[i] = rapid.Float64Range(-1, 1).Draw(t, "score")
	}
	return s
}

// forged is a record of two attempts: a fallback because the first choice had no room, and one
// more after that was refused. Tests forge a part of it.
func forged(t *testing.T) (*Routing, *ledger.Record) {
	t.Helper()
	w := newWorld(t)
	job := Job{Message: envelope.Message{ID: "m-1", To: "+447700900123", Text: "x"}, Lane: "bulk", Produced: noon}
	job.Raw = job.Message.Append(nil)
	keys := newDrawers(verifyKeys)
	p := &planner{routing: w.routing, keys: keys, now: noon}
	task := p.plan(&job)
	task.row.ReceivedAt = noon
	first := w.routing.channel(task.row.Plan.FirstChoice)
	w.seen.Channels[first].Gate.Active = admission.Active{Count: 3, Max: 3}
	record := &ledger.Record{Message: task.row}
	for i := range 2 {
		for c := range w.seen.Channels {
			w.seen.Channels[c].LastAssigned = noon.Add(-time.Duration(c+1) * time.Minute)
		}
		d := newAssigner(w.routing, keys, w.seen, w.unready).decide(&task)
		if d.State != ledger.Sending {
			t.Fatalf("attempt %d: %+v", i+1, d)
		}
		record.Attempts = append(record.Attempts, ledger.AttemptRecord{Attempt: d.Attempt, ClaimedAt: noon})
		row := task.row
		row.Attempts, row.Tried = row.Attempts+1, append(row.Tried, d.Attempt.Channel)
		task = p.planDue(row)
	}
	if found := verified(t, w.routing, record); len(found) > 0 {
		t.Fatalf("before anything was forged: %+v", found)
	}
	return w.routing, record
}

// TestForgedRecordsAreFound changes one thing of a record at a time; each is told by its word.
func TestForgedRecordsAreFound(t *testing.T) {
	t.Parallel()
	other := map[string]string{"a": "b", "b": "c", "c": "a"}
	ranking := func(r *ledger.Record, attempt int, change func(*Ranking)) {
		var stored Ranking
		err := json.Unmarshal(r.Attempts[attempt].Ranking, &stored)
		if err != nil {
			t.Fatal(err)
		}
		change(&stored)
		if r.Attempts[attempt].Ranking, err = json.Marshal(stored); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]struct {
		what  string
		forge func(*ledger.Record)
	}{
		"draw":            {whatDraw, func(r *ledger.Record) { r.Message.Plan.Draw ^= 1 }},
		"size":            {whatSize, func(r *ledger.Record) { r.Message.Plan.Size++ }},
		"first choice":    {whatFirstChoice, func(r *ledger.Record) { r.Message.Plan.FirstChoice = other[r.Message.Plan.FirstChoice] }},
		"route":           {whatRoute, func(r *ledger.Record) { r.Message.Plan.Route = "cheap" }},
		"segments":        {whatSegments, func(r *ledger.Record) { r.Message.Plan.Segments++ }},
		"alphabet":        {whatAlphabet, func(r *ledger.Record) { r.Message.Plan.Alphabet = "ucs2" }},
		"key":             {whatDrawKey, func(r *ledger.Record) { r.Message.Plan.KeyID = "00000000" }},
		"envelope":        {whatEnvelope, func(r *ledger.Record) { r.Message.Envelope = []byte("{") }},
		"id":              {whatDraw, func(r *ledger.Record) { r.Message.ID = "m-2" }},
		"channel":         {whatChannel, func(r *ledger.Record) { r.Attempts[0].Channel = other[r.Attempts[0].Channel] }},
		"reason":          {whatReason, func(r *ledger.Record) { r.Attempts[0].Reason = ledger.ByFirstChoice }},
		"number":          {whatNumber, func(r *ledger.Record) { r.Attempts[1].Number = 5 }},
		"price":           {whatPrice, func(r *ledger.Record) { r.Attempts[0].PriceMicros++ }},
		"currency":        {whatCurrency, func(r *ledger.Record) { r.Attempts[0].Currency = "EUR" }},
		"billed segments": {whatSegments, func(r *ledger.Record) { r.Attempts[0].Segments, r.Attempts[0].PriceMicros = 2, 60_000 }},
		"no ranking":      {whatRanking, func(r *ledger.Record) { r.Attempts[1].Ranking = nil }},
		"unreadable":      {whatRanking, func(r *ledger.Record) { r.Attempts[1].Ranking = []byte("[]") }},
		"ranked by":       {whatBy, func(r *ledger.Record) { ranking(r, 0, func(k *Ranking) { k.By = "best_worker" }) }},
		"load":            {whatOrder, func(r *ledger.Record) { ranking(r, 0, func(k *Ranking) { k.Candidates[1].Active = 90 }) }},
		"idle time": {whatOrder, func(r *ledger.Record) {
			ranking(r, 0, func(k *Ranking) { k.Candidates[1].LastAssigned = microsOf(noon) })
		}},
		"capacity":          {whatCandidates, func(r *ledger.Record) { ranking(r, 0, func(k *Ranking) { k.Candidates[1].Capacity = 9 }) }},
		"left out":          {whatCandidates, func(r *ledger.Record) { ranking(r, 0, func(k *Ranking) { k.Candidates = k.Candidates[:2] }) }},
		"stranger":          {whatCandidates, func(r *ledger.Record) { ranking(r, 0, func(k *Ranking) { k.Candidates[2].Channel = "x" }) }},
		"obstacle invented": {whatObstacle, func(r *ledger.Record) { ranking(r, 0, func(k *Ranking) { k.Candidates[0].Reason = disabled }) }},
		"never tried":       {whatObstacle, func(r *ledger.Record) { ranking(r, 0, func(k *Ranking) { k.Candidates[0].Reason = alreadyTried }) }},
		"first not in front": {whatOrder, func(r *ledger.Record) {
			ranking(r, 0, func(k *Ranking) { k.Candidates[0], k.Candidates[1] = k.Candidates[1], k.Candidates[0] })
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			routing, record := forged(t)
			test.forge(record)
			found := verified(t, routing, record)
			if !slices.ContainsFunc(found, func(m Mismatch) bool { return m.What == test.what }) {
				t.Errorf("found %+v, want a difference in %s", found, test.what)
			}
		})
	}
}

// TestMismatchesShowNeitherNumberNorText: the list of differences is read by auditors.
func TestMismatchesShowNeitherNumberNorText(t *testing.T) {
	t.Parallel()
	routing, record := forged(t)
	record.Message.Plan = ledger.Plan{Version: routing.Version, Route: "x", Draw: 3, Size: 4, KeyID: "1", FirstChoice: "q"}
	raw, err := json.Marshal(verified(t, routing, record))
	if err != nil || strings.Contains(string(raw), "7700900123") {
		t.Errorf("%v %s", err, raw)
	}
}
