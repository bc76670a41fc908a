package pipeline

import (
	"testing"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/selector/score"
)

func expression(t testing.TB, source string) decide.Scoring {
	t.Helper()
	e, err := score.Compile(source)
	if err != nil {
		t.Fatal(err)
	}
	return decide.Scoring{Expression: e}
}
