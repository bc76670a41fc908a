package control

import (
	"context"
	"errors"
	"strings"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/ledger"
)

// cancelTries is how often a message is looked at that changes meanwhile.
const cancelTries = 5

// Cancel ends a message that has not left, and tells the state that it was in.
func Cancel(ctx context.Context, l *ledger.Ledger, id string, by By) (ledger.State, error) {
	for range cancelTries {
		record, err := l.Messages.Record(ctx, id)
		if errors.Is(err, ledger.ErrNoMessage) {
			return "", unknownf("message %s is not in the ledger: no message has this id, or it "+
				"is still in Kafka", Quoted(id))
		}
		if err != nil {
			return "", err
		}
		now, err := l.Clock(ctx)
		if err != nil {
			return "", err
		}
		cancellation, why := decide.Cancel(&record, now)
		if why != "" {
			return "", impossiblef("message %s %s", Quoted(id), why)
		}
		cancellation.Author, cancellation.Reason = by.Author, by.Reason
		ended, err := l.Messages.Cancel(ctx, cancellation)
		if err != nil {
			return "", err
		}
		if ended {
			return record.Message.State, nil
		}
	}
	return "", impossiblef("message %s changes all the time: try it once more", Quoted(id))
}

// Quoted makes a word safe to copy into a shell.
func Quoted(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("-_.:/@", r)
	}
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
