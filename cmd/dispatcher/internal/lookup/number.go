package lookup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// NumberQuery asks for messages to a number.
type NumberQuery struct {
	Keys   []selector.Key // of the draws, by which numbers are hashed
	Number string         // with plus and country code
	Days   int            // how far back
	Before int64          // only messages with a lower sequence number; 0 for all
	Limit  int            // the most rows that come back
}

// numberTimeout bounds a search, which reads all messages of the days asked for: no index has the
// hash, because every message would pay for it.
const numberTimeout = 20 * time.Second

// errTooLong is returned by a search that numberTimeout ended.
var errTooLong error = &control.Impossible{Err: fmt.Errorf("the search took longer than %s, "+
	"because it reads all messages of these days: ask for fewer days", numberTimeout)}

// ErrNoKeys is returned by an instance that cannot hash numbers.
var ErrNoKeys error = &control.Impossible{Err: errors.New("this instance has no draw keys")}

// ByNumber lists the messages to a number, the newest first. The ledger has only keyed hashes of
// numbers, so it finds messages by the hashes under all keys.
func ByNumber(
	ctx context.Context, l *ledger.Ledger, q *NumberQuery,
) ([]ledger.FoundMessage, error) {
	return byNumber(ctx, l, q, numberTimeout)
}

func byNumber(
	ctx context.Context, l *ledger.Ledger, q *NumberQuery, timeout time.Duration,
) ([]ledger.FoundMessage, error) {
	if len(q.Keys) == 0 {
		return nil, ErrNoKeys
	}
	hashes := make([]int64, len(q.Keys))
	for i, key := range q.Keys {
		hashes[i] = decide.NumberHMAC(key, q.Number)
	}
	end, err := turn(ctx, l)
	if err != nil {
		return nil, err
	}
	defer end()
	parent := ctx
	ctx, cancel := context.WithTimeout(parent, timeout)
	defer cancel()
	found, err := l.Messages.ToNumber(ctx, hashes, q.Days, q.Before, q.Limit)
	if ctx.Err() != nil && parent.Err() == nil {
		return nil, errTooLong
	}
	return found, err
}
