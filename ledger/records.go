package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/provider"
)

// Messages reads what is stored about messages, to explain them and to derive choices again.
type Messages struct {
	*db
	routing     *Routing
	ambiguities *Ambiguities
	may         atomic.Pointer[bool] // see payloads
}

// ErrNoMessage means that the ledger holds no message of that id.
var ErrNoMessage = errors.New("the ledger has no message with this id")

// Record is everything that the ledger has about one message.
type Record struct {
	Message Message
	// PayloadGone: the payload was dropped, so Message has no Envelope.
	PayloadGone bool
	// PayloadHidden: this login may not read payloads, so Message has no Envelope.
	PayloadHidden bool
	// FinishedAt is zero while more may happen to the message.
	FinishedAt time.Time
	// CancelledBy is the author of its cancellation; empty if it was not cancelled. Only Record reads
	// it.
	CancelledBy string
	// Seen is the state, as JSON, on which the last wait was decided; nil if it never waited.
	Seen []byte
	// Attempts are ordered by number.
	Attempts []AttemptRecord
	// Ambiguities are its ambiguous attempts, ordered by attempt.
	Ambiguities []AmbiguityRecord
	// Routing is the version that the message was planned under; nil when it was not.
	Routing *RoutingVersion
}

// AttemptRecord is an attempt with its outcome and its receipts.
type AttemptRecord struct {
	Attempt
	// Outcome is a word of audit.attempts.outcome, empty while the answer is pending.
	Outcome string
	// Unfit is Settlement.Unfit; false when the attempt turned out to have been taken.
	Unfit bool
	// Code is the provider's error code, and Reference its ids, separated by spaces.
	Code, Reference string
	ClaimedAt       time.Time
	SettledAt       time.Time // zero while pending
	// Receipt is its receipt state: Delivered, Undelivered or NoReceipt; empty while that is open.
	// Cause and ReceiptCode say why, and ReceiptAt when the last receipt came.
	Receipt     State
	Cause       provider.Cause
	ReceiptCode string
	ReceiptAt   time.Time
	// ContradictedAt is when a receipt first said that it was delivered although the provider had
	// denied it; zero for never.
	ContradictedAt time.Time
	// OtherIDs are ids in receipts with our key that its answer did not name. Only Record reads them.
	OtherIDs []string
	Instance int64
	// Answers is how many outcomes were stored: 2 when a later one has replaced unknown.
	Answers int
}

// Record reads one message with its attempts and its routing. It returns ErrNoMessage for an id
// that the ledger does not have.
func (s *Messages) Record(ctx context.Context, id string) (Record, error) {
	seq, err := s.seqOf(ctx, id)
	if errors.Is(err, pgx.ErrNoRows) {
		return Record{}, ErrNoMessage
	}
	if err != nil {
		return Record{}, wrap("read record", err)
	}
	found, err := s.Records(ctx, []int64{seq})
	if err != nil {
		return Record{}, err
	}
	if len(found) == 0 {
		return Record{}, ErrNoMessage
	}
	r := found[0]
	others, err := s.ambiguities.otherIDs(ctx, r.Message.Seq)
	if err != nil {
		return Record{}, wrap("read receipts", err)
	}
	for i := range r.Attempts {
		r.Attempts[i].OtherIDs = others[r.Attempts[i].Number]
	}
	if r.Ambiguities, err = s.ambiguities.of(ctx, r.Message.Seq); err != nil {
		return Record{}, wrap("read ambiguities", err)
	}
	if r.Message.State == Failed && r.Message.Reason == ReasonCancelled {
		if r.CancelledBy, err = s.cancelledBy(ctx, id); err != nil {
			return Record{}, wrap("read who cancelled", err)
		}
	}
	if r.Message.Plan.Version == 0 {
		return r, nil
	}
	v, err := s.routing.Version(ctx, r.Message.Plan.Version)
	if err != nil {
		return Record{}, err
	}
	r.Routing = &v
	return r, nil
}

// Records reads messages with their attempts, in the order of Seq, as EachChoice does. A message
// that the ledger does not have is left out.
func (s *Messages) Records(ctx context.Context, seqs []int64) (page []Record, err error) {
	payloads, err := s.payloads(ctx)
	if err != nil {
		return nil, wrap("read records", err)
	}
	err = s.snapshot(ctx, func(tx pgx.Tx) (err error) {
		if page, err = choicesOf(ctx, tx, seqs, payloads); err != nil {
			return err
		}
		return addAttempts(ctx, tx, page)
	})
	return page, wrap("read records", err)
}

// selectCancelledBy reads the author of the latest cancellation of a message with id $1, from the
// view, because finance may not read the table.
const selectCancelledBy = `select coalesce((select author from audit.operator_actions
	where action = 'cancel' and subject = $1 order by id desc limit 1), '')`

// cancelledBy is empty if nobody cancelled a message with this id.
func (s *Messages) cancelledBy(ctx context.Context, id string) (author string, err error) {
	err = s.reports.QueryRow(ctx, selectCancelledBy, id).Scan(&author)
	return author, err
}

// seqOf returns the number of the message with an id. Most ids are asked for while they are
// recognised, and then it reads no day. An id that came again after it had been forgotten has
// several messages: the latest one is returned.
func (s *Messages) seqOf(ctx context.Context, id string) (seq int64, err error) {
	err = s.reports.QueryRow(ctx, `select seq from facts.ids where id = $1`, id).Scan(&seq)
	if errors.Is(err, pgx.ErrNoRows) {
		err = s.reports.QueryRow(ctx, `select seq from facts.past_ids where id = $1
			order by seq desc limit 1`, id).Scan(&seq)
	}
	return seq, err
}

// payloads reports whether this login may read numbers and texts. Finance may not; it sees only
// views.
func (s *Messages) payloads(ctx context.Context) (bool, error) {
	if may := s.may.Load(); may != nil {
		return *may, nil
	}
	var may bool
	err := s.reports.QueryRow(ctx, `
		select has_schema_privilege(n.oid, 'usage') and has_table_privilege(c.oid, 'select')
		from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where n.nspname = 'dispatcher' and c.relname = 'payloads'`).Scan(&may)
	if err == nil {
		s.may.Store(&may)
	}
	return may, err
}

// ChoiceFilter selects the messages that EachChoice visits: those received in [From, To).
type ChoiceFilter struct {
	From, To time.Time
	// Sample is how many of them are visited at most; 0 means all. They are chosen by a hash of the
	// id: evenly over the range, and the same ones each time.
	Sample int
}

// validate returns an error for a filter that cannot match any message.
func (f *ChoiceFilter) validate() error {
	switch {
	case f.From.IsZero() || f.To.IsZero():
		return errors.New("the range of choices needs a beginning and an end")
	case f.Sample < 0:
		return fmt.Errorf("a sample of %d choices", f.Sample)
	}
	return nil
}

// choicePage is how many messages EachChoice reads at a time.
const choicePage = 2000

// EachChoice visits messages for which a route was found, except dead ones, and all messages that
// have attempts, with their attempts, in the order of Seq. Record.Routing is nil. When visit
// returns an error, EachChoice stops and returns it as it is.
//
// It reads page by page by the primary key, each page in a snapshot of its own. So it never holds a
// whole day in memory, and no long snapshot delays the removal of old row versions of the counters.
// Claims write thousands of those. A message and its attempts are read in one snapshot. visit may
// use the ledger.
func (s *Messages) EachChoice(
	ctx context.Context, f ChoiceFilter, visit func(*Record) error,
) error {
	if err := f.validate(); err != nil {
		return fmt.Errorf("read choices: %w", err)
	}
	payloads, err := s.payloads(ctx)
	if err != nil {
		return wrap("read choices", err)
	}
	low, high, err := s.seekRange(ctx, f.From, f.To)
	if err != nil {
		return err
	}
	if f.Sample > 0 {
		return s.eachSampled(ctx, &f, low, high, visit)
	}
	for more := true; more; {
		var page []Record
		err = s.snapshot(ctx, func(tx pgx.Tx) (err error) {
			page, low, more, err = choicesAfter(ctx, tx, &f, low, high, payloads)
			if err != nil {
				return err
			}
			return addAttempts(ctx, tx, page)
		})
		if err != nil {
			return wrap("read choices", err)
		}
		if err := visitPage(page, visit); err != nil {
			return err
		}
	}
	return nil
}

// choicesAfter reads the next page between low and high, both excluded, and returns the Seq at
// which it ends. The limit is inside the subquery, so that the planner reads the primary key,
// however many rows it expects the condition to leave.
func choicesAfter(
	ctx context.Context, tx pgx.Tx, f *ChoiceFilter, low, high int64, payloads bool,
) (page []Record, last int64, more bool, err error) {
	r, err := tx.Query(ctx, `
		select `+recordColumns(payloads)+`, m.received_at >= $1 and m.received_at < $2
		  and (m.route is not null and m.state <> 'dead' or m.attempts > 0)
		from (select * from facts.messages where seq > $3 and seq < $4
		  order by seq limit $5) m
		order by m.seq`, f.From, f.To, low, high, choicePage)
	if err != nil {
		return nil, low, false, err
	}
	defer r.Close()
	read := 0
	for ; r.Next(); read++ {
		row := recordRow{payloads: payloads}
		var wanted bool
		if err := r.Scan(append(row.targets(), &wanted)...); err != nil {
			return nil, low, false, err
		}
		low = row.m.Seq
		if wanted {
			page = append(page, row.record())
		}
	}
	return page, low, read == choicePage, r.Err()
}

// eachSampled lets the database choose the messages, and holds only their seqs in memory. MD5
// spreads ids evenly, and is the same on every server and in every release.
func (s *Messages) eachSampled(
	ctx context.Context, f *ChoiceFilter, low, high int64, visit func(*Record) error,
) error {
	seqs, err := rows(ctx, s.db, pgx.RowTo[int64], `
		select seq from (
		  select m.seq from (select * from facts.stored_messages where seq > $3
		    and seq < $4 offset 0) m
		  where m.received_at >= $1 and m.received_at < $2
		    and (m.route is not null and m.state <> 'dead' or m.attempts > 0)
		  order by md5(m.id) collate "C", m.seq limit $5
		) chosen order by seq`, f.From, f.To, low, high, f.Sample)
	if err != nil {
		return wrap("sample choices", err)
	}
	for some := range slices.Chunk(seqs, choicePage) {
		page, err := s.Records(ctx, some)
		if err != nil {
			return err
		}
		if err := visitPage(page, visit); err != nil {
			return err
		}
	}
	return nil
}

// choicesOf reads messages by their seqs, ascending.
func choicesOf(
	ctx context.Context, tx pgx.Tx, seqs []int64, payloads bool,
) ([]Record, error) {
	r, err := tx.Query(ctx, `select `+recordColumns(payloads)+
		` from facts.messages m where m.seq = any($1) order by m.seq`, seqs)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(r, func(row pgx.CollectableRow) (Record, error) {
		r := recordRow{payloads: payloads}
		err := row.Scan(r.targets()...)
		return r.record(), err
	})
}

// visitPage calls visit for each record.
func visitPage(page []Record, visit func(*Record) error) error {
	for i := range page {
		if err := visit(&page[i]); err != nil {
			return err
		}
	}
	return nil
}

// addAttempts reads the attempts of the records, which must ascend by seq. Those that are open and
// have no row are read only if there can be some, because that reads the keys of all days.
func addAttempts(ctx context.Context, tx pgx.Tx, page []Record) error {
	seqs := make([]int64, len(page))
	for i := range page {
		seqs[i] = page[i].Message.Seq
	}
	if err := addAttemptsFrom(ctx, tx, "facts.stored_attempts", seqs, page); err != nil {
		return err
	}
	var open []int64
	for i := range page {
		if page[i].Message.State == Sending && len(page[i].Attempts) == 0 {
			open = append(open, page[i].Message.Seq)
		}
	}
	if open == nil {
		return nil
	}
	return addAttemptsFrom(ctx, tx, "facts.attempts", open, page)
}

// addAttemptsFrom reads the attempts of some of the records from a view. seqs must ascend.
func addAttemptsFrom(
	ctx context.Context, tx pgx.Tx, view string, seqs []int64, page []Record,
) error {
	r, err := tx.Query(ctx, `
		select a.message_seq, a.attempt, a.channel, a.reason, a.segments, a.price_micros, a.currency,
		  coalesce(a.ranking::text, ''), coalesce(a.outcome, ''),
		  a.unfit is true and a.outcome in ('refused', 'unknown'),
		  coalesce(a.provider_code, ''), coalesce(a.provider_reference, ''),
		  a.claimed_at, a.settled_at, a.instance, a.answers, a.ticket_at,
		  coalesce(a.receipt_state, ''), coalesce(a.receipt_cause, ''),
		  coalesce(a.receipt_code, ''), a.receipt_at, a.contradicted_at
		from `+view+` a
		where a.message_seq = any($1) order by a.message_seq, a.attempt`, seqs)
	if err != nil {
		return err
	}
	defer r.Close()
	at := 0
	for r.Next() {
		var seq int64
		var row attemptRow
		if err := r.Scan(append([]any{&seq}, row.targets()...)...); err != nil {
			return err
		}
		for page[at].Message.Seq != seq { // both ascend, and no other seq was asked for
			at++
		}
		page[at].Attempts = append(page[at].Attempts, row.attempt())
	}
	return r.Err()
}

// Evidence are the JSON texts of a message's parts, by PartNames, whose hashes are in the log. A
// part that does not exist, or that this login may not read, is left out. PartLater is the text
// that seals of format 2 hash, or with format1 that of seals of format 1.
func (s *Messages) Evidence(ctx context.Context, seq int64, format1 bool) (
	map[string]string, error,
) {
	var parts [len(PartNames)]*string
	err := s.reports.QueryRow(ctx, `
		select intake::text, plan::text, attempts::text,
		  case when $2 then later::text else later_2::text end
		from facts.evidence_texts where seq = $1`, seq, format1).
		Scan(&parts[0], &parts[1], &parts[2], &parts[3])
	if err != nil {
		return nil, wrap("read the texts of evidence", err)
	}
	texts := map[string]string{}
	for i, text := range parts {
		if text != nil {
			texts[PartNames[i]] = *text
		}
	}
	return texts, nil
}
