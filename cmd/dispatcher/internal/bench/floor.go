// Package bench holds what the dispatcher is measured against: the floor, which does
// the same intake, the same inserts and updates and the same submits, but chooses
// nothing, limits nothing, guards nothing and ranks nothing.
//
// The floor is deliberately the shortest code that gives the same rows. It is not fit
// for sending: an error ends it.
package bench

import (
	"context"
	"fmt"
	"sync"
	"time"

	"dispatcher/cmd/dispatcher/internal/dispatch"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/ledger"
	"dispatcher/provider"
)

// Floor takes jobs in turn to the channels given.
type Floor struct {
	ledger   *ledger.Ledger
	channels []provider.Channel
	names    []string
	slots    chan struct{} // one per batch under way
	work     chan submit
	senders  sync.WaitGroup
	settling sync.WaitGroup
	next     int

	mu  sync.Mutex
	err error // guarded by mu: the first error
}

type submit struct {
	channel int
	message provider.Submission
	result  *provider.Result
	done    *sync.WaitGroup
}

// NewFloor starts as many senders as may be under way at once.
func NewFloor(l *ledger.Ledger, names []string, channels []provider.Channel, unsettled int) *Floor {
	f := &Floor{ledger: l, channels: channels, names: names, slots: make(chan struct{}, 1), work: make(chan submit, unsettled)}
	for range unsettled {
		f.senders.Go(func() {
			for s := range f.work {
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
				*s.result = f.channels[s.channel].Send(ctx, s.message)
				cancel()
				s.done.Done()
			}
		})
	}
	return f
}

// Handle stores a batch and starts to send it. One batch is under way at a time, which
// is the bound that the dispatcher keeps too; the next one is fetched and decoded meanwhile.
func (f *Floor) Handle(ctx context.Context, jobs []dispatch.Job) error {
	select {
	case f.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	rows, attempts, err := f.claim(ctx, jobs)
	if err != nil {
		<-f.slots
		return err
	}
	f.settling.Go(func() {
		defer func() { <-f.slots }()
		if err := f.finish(ctx, jobs, rows, attempts); err != nil {
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.err == nil {
				f.err = err
			}
		}
	})
	return f.Err()
}

// claim inserts messages, attempts and events with the statements of the dispatcher's own
// ledger, but no channel is locked and no counter touched.
func (f *Floor) claim(ctx context.Context, jobs []dispatch.Job) ([]ledger.Message, []ledger.Attempt, error) {
	rows, attempts := make([]ledger.Message, len(jobs)), make([]ledger.Attempt, len(jobs))
	for i := range jobs {
		channel := f.names[f.next%len(f.names)]
		f.next++
		rows[i] = ledger.Message{
			ID: jobs[i].Message.ID, Lane: jobs[i].Lane, Origin: jobs[i].Origin, Envelope: jobs[i].Raw, State: ledger.Sending,
			ExpiresAt: jobs[i].Produced.Add(time.Hour),
			Plan:      ledger.Plan{Route: "floor", Version: 1, Size: 1, KeyID: "00000000", FirstChoice: channel, Segments: 1, Alphabet: "gsm7"},
		}
		attempts[i] = ledger.Attempt{Number: 1, Channel: channel, Reason: ledger.ByFirstChoice, Segments: 1, Currency: "EUR"}
	}
	err := f.ledger.Claim(ctx, ledger.Claim{Messages: rows}, func(seen *ledger.Seen) (ledger.Decisions, error) {
		d := ledger.Decisions{Each: make([]ledger.Decision, len(rows)), Notices: make([]ledger.Notice, len(rows))}
		for i := range rows {
			rows[i].Seq = seen.Messages[i].Seq
			if seen.Fates[i] == ledger.Fresh {
				d.Each[i] = ledger.Decision{State: ledger.Sending, Plan: rows[i].Plan, Attempt: attempts[i]}
			}
			d.Notices[i] = event(&rows[i], ledger.Sending, &attempts[i], seen.Now)
		}
		return d, nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("floor: claim: %w", err)
	}
	return rows, attempts, nil
}

// finish submits a claimed batch, waits for every answer and settles them in one statement.
func (f *Floor) finish(ctx context.Context, jobs []dispatch.Job, rows []ledger.Message, attempts []ledger.Attempt) error {
	results := make([]provider.Result, len(rows))
	var answers sync.WaitGroup
	answers.Add(len(rows))
	for i := range rows {
		f.work <- submit{
			channel: i % len(f.channels), result: &results[i], done: &answers,
			message: provider.Submission{ID: rows[i].ID, Attempt: 1, To: jobs[i].Message.To, From: jobs[i].Message.From, Text: jobs[i].Message.Text},
		}
	}
	answers.Wait()
	settlements, now := make([]ledger.Settlement, len(rows)), time.Now()
	for i := range rows {
		if results[i].Outcome != provider.Accepted {
			return fmt.Errorf("floor: a carrier answered %s", results[i].Outcome)
		}
		notice := event(&rows[i], ledger.Accepted, &attempts[i], now)
		settlements[i] = ledger.Settlement{
			Seq: rows[i].Seq, ID: rows[i].ID, Attempt: 1, Outcome: results[i].Outcome, Reference: results[i].Reference,
			Segments: 1, State: ledger.Accepted, Notice: &notice,
		}
	}
	if err := f.ledger.Settle(ctx, settlements); err != nil {
		return fmt.Errorf("floor: settle: %w", err)
	}
	return nil
}

func event(row *ledger.Message, state ledger.State, a *ledger.Attempt, at time.Time) ledger.Notice {
	return ledger.Notice{Kind: ledger.Status, Key: row.ID, Value: envelope.AppendStatus(make([]byte, 0, 256), envelope.Status{
		ID: row.ID, State: string(state), At: at, Lane: row.Lane, Route: row.Plan.Route, Channel: a.Channel, Attempt: a.Number, Segments: 1,
	})}
}

// Err is the first error of a batch, if any.
func (f *Floor) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// Close waits for the batches under way and ends the senders. Handle must not be called any more.
func (f *Floor) Close() error {
	f.settling.Wait()
	close(f.work)
	f.senders.Wait()
	return f.Err()
}
