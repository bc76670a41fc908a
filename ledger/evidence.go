package ledger

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// HashSize is how many bytes of the SHA-256 of a part of a message are kept.
const HashSize = 16

// Indexes of Parts.
const (
	PartIntake   = iota // where it came from, and what was received
	PartPlan            // route, version, draw, first choice, segments
	PartAttempts        // channels, prices, answers, times
	PartLater           // state, receipts, what was found out about unknown answers, detail
)

// PartNames are the names of the parts, by index.
var PartNames = [...]string{"intake", "plan", "attempts", "later"}

// NotSent is the state in evidence of a message that is still to be sent.
const NotSent = "open"

// Parts are the hashes of a message, by part.
type Parts [len(PartNames)][HashSize]byte

// Evidence is what an auditor compares of a message, of a routing version, of the closing of a day
// or of a finance row. See the views evidence, version_evidence, closing_evidence and
// finance_evidence of schema facts.
type Evidence struct {
	// Seq is the number of a message. A negative Seq is a version: -3 is version 3. Lower numbers are
	// closings, see ClosingOf and ClosingParts. The lowest are finance rows, see FinanceOf.
	Seq        int64
	ID         string    // of a message
	ReceivedAt time.Time // or when another row was made; zero for figures without a closing
	// State is NotSent while the message is still to be sent.
	State State
	// Open says that the plan and the attempts may still change.
	Open  bool
	Parts Parts
	// Later1 is PartLater of a message in seals of format 1.
	Later1 [HashSize]byte
	// LaterAt is the newest of the times in PartAttempts and PartLater; zero for none.
	LaterAt time.Time
}

// closingDay is the factor of the day in the Seq of a closing, see ClosingOf. Versions and
// revisions are smaller.
const closingDay = 1 << 32

// ClosingOf reads a Seq that is the closing of a day: -(days since 1970-01-01 * 2^32 + revision).
func ClosingOf(seq int64) (day string, revision int64, ok bool) {
	if seq > -closingDay || seq <= -topUpSeq {
		return "", 0, false
	}
	return time.Unix(-seq/closingDay*86400, 0).UTC().Format(time.DateOnly), -seq % closingDay, true
}

// ClosingParts are the views of schema audit that have the parts of a closing, by index.
var ClosingParts = [...]string{
	"closings", "choice_figures", "attempt_figures", "carried_figures",
}

// Evidence calls each with the routing versions created and then the messages received in [from,
// to), messages ascending by number. They are read in one snapshot.
func (s *Seals) Evidence(
	ctx context.Context, from, to time.Time, each func(*Evidence) error,
) error {
	return wrap("read evidence", s.evidence(ctx, s.reports, from, to, each))
}

func (s *Seals) evidence(
	ctx context.Context, q querier, from, to time.Time, each func(*Evidence) error,
) error {
	low, high, err := s.seekRange(ctx, from, to)
	if err != nil {
		return err
	}
	r, err := q.Query(ctx, `
		select -version, '', created_at, '', false, intake, plan, ''::bytea, ''::bytea, ''::bytea,
		  null::timestamptz
		from facts.version_evidence
		where created_at >= $3 and created_at < $4
		union all
		(select seq, id, received_at, state, open, intake, coalesce(plan, ''),
		  coalesce(attempts, ''), coalesce(later_2, ''), coalesce(later, ''), later_at
		from facts.evidence
		where seq > $1 and seq < $2 and received_at >= $3 and received_at < $4
		order by seq)`, low, high, from, to)
	if err != nil {
		return err
	}
	var e Evidence
	var parts [len(e.Parts)][]byte
	var later1 []byte
	var laterAt *time.Time
	_, err = pgx.ForEachRow(r, []any{
		&e.Seq, &e.ID, &e.ReceivedAt, &e.State, &e.Open, &parts[PartIntake], &parts[PartPlan],
		&parts[PartAttempts], &parts[PartLater], &later1, &laterAt,
	}, func() error {
		e.Parts, e.Later1, e.LaterAt = Parts{}, [HashSize]byte{}, time.Time{}
		copy(e.Later1[:], later1)
		if laterAt != nil {
			e.LaterAt = *laterAt
		}
		for i := range parts {
			copy(e.Parts[i][:], parts[i])
		}
		return each(&e)
	})
	return err
}

// ClosingsOf calls each with the closings of a day such as 2026-11-21, by their revisions. They are
// read in one snapshot.
func (s *Seals) ClosingsOf(ctx context.Context, day string, each func(*Evidence) error) error {
	return wrap("read evidence of closings", closingsOf(ctx, s.reports, day, each))
}

func closingsOf(ctx context.Context, q querier, day string, each func(*Evidence) error) error {
	r, err := q.Query(ctx, `
		select -((day - date 'epoch') * $2::bigint + revision), at, coalesce(intake, ''),
		  coalesce(choices, ''), coalesce(attempts, ''), coalesce(carried, '')
		from facts.closing_evidence where day = $1::date order by revision`, day, closingDay)
	if err != nil {
		return err
	}
	var seq int64
	var at *time.Time
	var parts [len(ClosingParts)][]byte
	_, err = pgx.ForEachRow(r, []any{&seq, &at, &parts[0], &parts[1], &parts[2], &parts[3]},
		func() error {
			e := Evidence{Seq: seq}
			if at != nil {
				e.ReceivedAt = *at
			}
			for i := range parts {
				copy(e.Parts[i][:], parts[i])
			}
			return each(&e)
		})
	return err
}
