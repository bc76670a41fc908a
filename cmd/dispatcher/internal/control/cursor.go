package control

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"dispatcher/ledger"
)

// ErrCursor means that no page had this cursor.
var ErrCursor = errors.New("cursor is not from an earlier page")

// mostMicros is the last time that a cursor may have, in microseconds: PostgreSQL takes no year
// beyond 294276.
const mostMicros = 200_000_000_000_000_000

// Cursor is the cursor of the page that begins after a row. The numbers say where that row is.
func Cursor(numbers ...int64) string {
	text := strings.Trim(fmt.Sprint(numbers), "[]")
	return base64.RawURLEncoding.EncodeToString([]byte(text))
}

// ReadCursor reads count numbers, none of them negative, from a cursor. The error is ErrCursor.
func ReadCursor(cursor string, count int) ([]int64, error) {
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	words := strings.Split(string(raw), " ")
	if err != nil || len(words) != count {
		return nil, ErrCursor
	}
	numbers := make([]int64, count)
	for i, word := range words {
		if numbers[i], err = strconv.ParseInt(word, 10, 64); err != nil || numbers[i] < 0 {
			return nil, ErrCursor
		}
	}
	return numbers, nil
}

// AmbiguousCursor is the cursor of the page that begins after an ambiguous submission.
func AmbiguousCursor(r *ledger.AmbiguityRecord) string {
	return Cursor(r.OpenedAt.UnixMicro(), r.Seq, int64(r.Attempt))
}

// AmbiguousAt reads from a cursor the last submission of the previous page; an empty one without a
// cursor. The error is ErrCursor.
func AmbiguousAt(cursor string) (*ledger.AmbiguityRecord, error) {
	last := &ledger.AmbiguityRecord{}
	if cursor == "" {
		return last, nil
	}
	at, err := ReadCursor(cursor, 3)
	if err != nil || at[0] > mostMicros || at[2] > math.MaxInt16 {
		return nil, ErrCursor
	}
	last.OpenedAt, last.Seq, last.Attempt = time.UnixMicro(at[0]), at[1], int(at[2])
	return last, nil
}

// UnsentCursor is the cursor of the page that begins after a message, of those stored before an
// instant.
func UnsentCursor(last int64, before time.Time) string { return Cursor(last, before.UnixMicro()) }

// UnsentAt is what UnsentCursor was made of. The error is ErrCursor.
func UnsentAt(cursor string) (last int64, before time.Time, err error) {
	at, err := ReadCursor(cursor, 2)
	if err != nil || at[1] > mostMicros {
		return 0, before, ErrCursor
	}
	return at[0], time.UnixMicro(at[1]), nil
}
