package control

import (
	"context"
	"errors"

	"dispatcher/cmd/dispatcher/internal/pipeline"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/ledger"
)

// Cancel ends a message that has not left, and returns the state that it was in.
func Cancel(ctx context.Context, l *ledger.Ledger, id string, by By) (ledger.State, error) {
	if err := CheckReason(by.Reason); err != nil {
		return "", err
	}
	was, why, err := pipeline.Cancel(ctx, l, id, ledger.Cancellation{
		Author: by.Author, Via: by.Via, Reason: by.Reason,
	})
	switch {
	case errors.Is(err, ledger.ErrNoMessage):
		return "", unknownf("message %s is not in the ledger: no message has this id, or it is "+
			"still in Kafka", report.Quoted(id))
	case errors.Is(err, pipeline.ErrChanging):
		return "", impossiblef("message %s changed during each try: try again", report.Quoted(id))
	case err != nil:
		return "", err
	case why != "":
		return "", impossiblef("message %s %s", report.Quoted(id), why)
	}
	return was, nil
}
