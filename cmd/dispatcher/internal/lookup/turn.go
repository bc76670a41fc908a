package lookup

import (
	"context"
	"errors"
	"time"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/ledger"
)

// turnWait is how long a question waits for its turn.
const turnWait = 2 * time.Second

var errBusy error = &control.Busy{Err: errors.New("another search or report is running, and " +
	"reads many messages: try again when it has ended")}

// turn waits until no other question of this process reads many messages: a search by number, or a
// report. end ends it.
func turn(ctx context.Context, l *ledger.Ledger) (end func(), err error) {
	waiting, cancel := context.WithTimeout(ctx, turnWait)
	defer cancel()
	if end = l.Reports.LongRead(waiting); end != nil {
		return end, nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, errBusy
}
