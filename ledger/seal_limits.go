package ledger

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/admission"
)

// windowSeq is where the numbers of windows of limits in Seq begin. Above it are finance rows.
const windowSeq = 1<<58 + 7<<54

// kindSize is how many numbers each kind of windows, and of what follows them, has in Seq.
const kindSize = 1 << 54

// sealedWindows are the lengths of windows that are sealed, and their names. The window of a
// prepaid budget never ends.
var sealedWindows = [...]struct {
	window admission.Window
	name   string
	// longest is how long a window of that kind takes at most: see facts.window_evidence.
	longest time.Duration
}{
	{admission.Second, "second", time.Second},
	{admission.Minute, "minute", time.Minute},
	{admission.Hour, "hour", time.Hour},
	{admission.Day, "day", 25 * time.Hour},
}

// Windows are the windows of limits of one length that ended in one minute.
type Windows struct {
	Length string // second, minute, hour or day
	Ended  time.Time
	Count  int64
	Hash   [HashSize]byte
	kind   int64 // index of sealedWindows
}

// Seq is the number of their leaf: -(2^58 + n * 2^54 + minutes since 1970) with n from 7 to 10.
func (w *Windows) Seq() int64 { return -windowSeq - w.kind*kindSize - w.Ended.Unix()/60 }

// evidence has their hash as PartIntake and how many there are as PartPlan.
func (w *Windows) evidence() *Evidence {
	e := &Evidence{Seq: w.Seq(), ReceivedAt: w.Ended}
	e.Parts[PartIntake] = w.Hash
	binary.BigEndian.PutUint64(e.Parts[PartPlan][HashSize-8:], uint64(w.Count)) //nolint:gosec // ≥ 0
	return e
}

// WindowsOf reads windows from the parts of their leaf. It returns nil for any other Seq.
func WindowsOf(seq int64, parts *Parts) *Windows {
	if seq > -windowSeq || seq <= -definitionSeq {
		return nil
	}
	n := -seq - windowSeq
	w := &Windows{kind: n / kindSize, Ended: time.Unix(n%kindSize*60, 0).UTC()}
	w.Length, w.Hash = sealedWindows[w.kind].name, parts[PartIntake]
	w.Count = int64(binary.BigEndian.Uint64(parts[PartPlan][HashSize-8:])) //nolint:gosec // see Seq
	return w
}

// Windows calls each with the windows of limits that ended in [from, to), which are full minutes.
func (s *Sealed) Windows(ctx context.Context, from, to time.Time, each func(*Windows) error) error {
	return wrap("read evidence of limits", windows(ctx, s.reports, from, to, each))
}

func windows(
	ctx context.Context, q querier, from, to time.Time, each func(*Windows) error,
) error {
	for kind, length := range sealedWindows {
		r, err := q.Query(ctx, `
			select to_timestamp(minute * 60), count(*),
			  substring(sha256(string_agg(hash, '' order by hash)) from 1 for 16)
			from (select floor(extract(epoch from ends_at) / 60) as minute, hash
			  from facts.window_evidence
			  where window_seconds = $1 and window_start >= $2 and window_start < $3) w
			group by minute order by minute`,
			length.window.Seconds(), from.Add(-length.longest), to.Add(-length.longest))
		if err != nil {
			return err
		}
		w := Windows{Length: length.name, kind: int64(kind)}
		var hash []byte
		_, err = pgx.ForEachRow(r, []any{&w.Ended, &w.Count, &hash}, func() error {
			copy(w.Hash[:], hash)
			one := w
			return each(&one)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// KeepsWindows reports whether windows are stored that ended before those of w: then none of w was
// dropped because of its age, because older windows are dropped first.
func (s *Sealed) KeepsWindows(ctx context.Context, w *Windows) (yes bool, err error) {
	length := &sealedWindows[w.kind]
	err = s.reports.QueryRow(ctx, `
		select exists (select from facts.window_evidence
		  where window_seconds = $1 and window_start < $2)`,
		length.window.Seconds(), w.Ended.Add(-length.longest)).Scan(&yes)
	return yes, wrap("look for older windows", err)
}
