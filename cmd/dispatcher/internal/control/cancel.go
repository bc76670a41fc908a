package control

import (
	"context"
	"errors"
	"strings"

	"dispatcher/cmd/dispatcher/internal/pipeline"
	"dispatcher/ledger"
)

// Cancel ends a message that has not left, and returns the state that it was in.
func Cancel(ctx context.Context, l *ledger.Ledger, id string, by By) (ledger.State, error) {
	was, why, err := pipeline.Cancel(ctx, l, id, by.Author, by.Reason)
	switch {
	case errors.Is(err, ledger.ErrNoMessage):
		return "", unknownf("message %s is not in the ledger: no message has this id, or it is "+
			"still in Kafka", Quoted(id))
	case errors.Is(err, pipeline.ErrChanging):
		return "", impossiblef("message %s changed during each try: try again", Quoted(id))
	case err != nil:
		return "", err
	case why != "":
		return "", impossiblef("message %s %s", Quoted(id), why)
	}
	return was, nil
}

// Quoted quotes a word for a shell, where that is needed.
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
