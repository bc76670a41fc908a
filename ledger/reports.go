package ledger

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Reports adds up figures over many messages, and closes business days. Its queries wait for no
// locks of claims or settlements. The reports of days read only views, so a login of finance may
// use them.
type Reports struct{ *db }

// LongRead lets one read at a time take long on a connection of reports, so that pauses, guards and
// reloads of the routing find a free one. It waits for its turn until ctx ends, then it returns
// nil. The caller calls end when it has read.
func (s *Reports) LongRead(ctx context.Context) (end func()) {
	select {
	case s.longRead <- struct{}{}:
		return func() { <-s.longRead }
	case <-ctx.Done():
		return nil
	}
}

// DailyRow is what one channel did for one route on one business day, in one currency. It counts
// the attempts claimed on that day, however old their messages are.
type DailyRow struct {
	Route, Channel string

	Fallback  int64 // attempts that went here because an earlier candidate could not take them
	Attempts  int64 // all attempts
	Submitted int64 // all except those refused, which certainly were not taken, and those pending
	Accepted  int64
	Delivered int64 // accepted ones whose receipts say so
	Rejected  int64
	Refused   int64 // by the channel or its provider
	Throttled int64
	Unknown   int64
	// Unsent were refused on this side before anything was sent, which says nothing about the channel.
	Unsent  int64
	Pending int64

	// Segments and CostMicros are what was accepted and is billed.
	Segments   int64
	CostMicros int64
	// UnknownSegments and UnknownMicros are those of unknown attempts. They may be billed too.
	UnknownSegments int64
	UnknownMicros   int64
	Currency        string // ISO 4217

	// Undelivered are the accepted ones whose receipts say that they never will be delivered, and
	// NoReceipt those without a receipt in time. The other accepted ones, if not Delivered, have no
	// final receipt yet, or expect none.
	Undelivered int64
	NoReceipt   int64

	// Retries, Resends and Further count attempts by reason, as Fallback does. All others are first
	// choices. Further were made because no receipt had come, see ByNoReceipt.
	Retries int64
	Resends int64
	Further int64
	// DeliveredSegments and DeliveredMicros are the part of Segments and CostMicros that was
	// delivered.
	DeliveredSegments int64
	DeliveredMicros   int64
	// Reason is the attempts' reason where Split asks for it, else empty.
	Reason string
}

// Failed counts the attempts that ended without the channel taking the message.
func (r *DailyRow) Failed() int64 { return r.Rejected + r.Refused + r.Throttled }

// Add adds the figures of another row of the same route, channel and currency.
func (r *DailyRow) Add(o *DailyRow) {
	r.Fallback += o.Fallback
	r.Attempts += o.Attempts
	r.Submitted += o.Submitted
	r.Accepted += o.Accepted
	r.Delivered += o.Delivered
	r.Rejected += o.Rejected
	r.Refused += o.Refused
	r.Throttled += o.Throttled
	r.Unknown += o.Unknown
	r.Unsent += o.Unsent
	r.Pending += o.Pending
	r.Segments += o.Segments
	r.CostMicros += o.CostMicros
	r.UnknownSegments += o.UnknownSegments
	r.UnknownMicros += o.UnknownMicros
	r.Undelivered += o.Undelivered
	r.NoReceipt += o.NoReceipt
	r.Retries += o.Retries
	r.Resends += o.Resends
	r.Further += o.Further
	r.DeliveredSegments += o.DeliveredSegments
	r.DeliveredMicros += o.DeliveredMicros
}

// Totals are counts over the whole ledger.
type Totals struct {
	// Messages counts by state.
	Messages map[State]int64
	// Channels has one entry for each channel with attempts or first choices, by name.
	Channels []ChannelTotal
}

// ChannelTotal is one channel over all days.
type ChannelTotal struct {
	Channel     string
	FirstChoice int64 // messages whose draw picked it
	Fallback    int64 // attempts
	Attempts    int64
	Accepted    int64
	Unknown     int64
	Segments    int64  // accepted
	CostMicros  int64  // accepted
	Currency    string // the first in alphabetical order, if there are several
}

// Totals reads every row of messages and attempts. It is for the end of a demo or a test, not for a
// dashboard.
func (s *Reports) Totals(ctx context.Context) (Totals, error) {
	t := Totals{Messages: map[State]int64{}}
	r, err := s.reports.Query(ctx, `
		select state, count(*) from dispatcher.message_states group by state`)
	if err != nil {
		return Totals{}, wrap("count messages", err)
	}
	var state State
	var n int64
	if _, err = pgx.ForEachRow(r, []any{&state, &n}, func() error {
		t.Messages[state] = n
		return nil
	}); err != nil {
		return Totals{}, wrap("count messages", err)
	}
	t.Channels, err = rows(ctx, s.db, pgx.RowToStructByPos[ChannelTotal], `
		with drawn as (
		  select first_choice as channel, count(*) as first_choice
		  from dispatcher.messages where first_choice is not null group by 1
		), tried as (
		  select channel, count(*) filter (where reason = 'fallback') as fallback,
		    count(*) as attempts,
		    count(*) filter (where outcome = 'accepted') as accepted,
		      count(*) filter (where outcome = 'unknown') as unknown,
		    sum(segments) filter (where outcome <> 'unknown') as segments,
		    sum(price_micros) filter (where outcome <> 'unknown') as cost, min(currency) as currency
		  from dispatcher.all_attempts group by 1
		)
		select channel, coalesce(first_choice, 0), coalesce(fallback, 0), coalesce(attempts, 0),
		  coalesce(accepted, 0),
		  coalesce(unknown, 0), coalesce(segments, 0), coalesce(cost, 0)::bigint,
		    coalesce(currency, '')
		from drawn full join tried using (channel) order by channel`)
	return t, wrap("count attempts", err)
}

// ChoiceRow counts the messages whose draw picked one channel under one routing version. When the
// routing was changed during the day, each message counts under the weights of the version by which
// it was chosen.
type ChoiceRow struct {
	Version     int64
	Route       string
	Channel     string
	FirstChoice int64
	// Rejected, Failed and Unknown count those that ended without any channel being known to have
	// taken them, Open those that have not ended: waiting, scheduled, or in flight.
	Rejected, Failed, Unknown, Open int64
	// Segments counts the segments of the messages' texts.
	Segments int64
	// Cause is why no channel is known to have taken these messages: rejected, opted_out, failed,
	// expired, cancelled, no_channel, no_answer, or open. It is empty where one took them.
	Cause string
}

func (r *ChoiceRow) add(o *ChoiceRow) {
	r.FirstChoice += o.FirstChoice
	r.Rejected += o.Rejected
	r.Failed += o.Failed
	r.Unknown += o.Unknown
	r.Open += o.Open
	r.Segments += o.Segments
}

// CarriedRow counts the messages that one channel carried for one route: those of which it accepted
// an attempt that was claimed on the day. A message counts once for each channel that accepted it,
// and under the version that it was planned under.
type CarriedRow struct {
	Version     int64
	Route       string
	FirstChoice string
	Channel     string
	// Cause is why the first choice did not carry these messages; empty where it did. It is the
	// exclusion reason of the first choice when the message first went to another channel. Where the
	// first choice had been tried before, it is the outcome of that: refused, throttled, unknown, or
	// breaker_open.
	Cause    string
	Messages int64
	// Segments and CostMicros are what the channel billed for them, including parts that it accepted
	// in later attempts.
	Segments   int64
	CostMicros int64
	Currency   string
	// TextSegments counts the segments of the messages' texts.
	TextSegments int64
}

func (r *CarriedRow) add(o *CarriedRow) {
	r.Messages += o.Messages
	r.Segments += o.Segments
	r.CostMicros += o.CostMicros
	r.TextSegments += o.TextSegments
}
