package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"dispatcher/cmd/dispatcher/internal/status"
)

// cancelsAfter is a writer that ends a command once it has printed a number of documents.
type cancelsAfter struct {
	bytes.Buffer
	documents int
	cancel    context.CancelFunc
}

func (w *cancelsAfter) Write(p []byte) (int, error) {
	n, err := w.Buffer.Write(p)
	if strings.Count(w.String(), "\n}\n") >= w.documents {
		w.cancel()
	}
	return n, err
}

// TestStatusWatchPrintsOneDocumentAfterTheOther until it is interrupted.
func TestStatusWatchPrintsOneDocumentAfterTheOther(t *testing.T) {
	t.Parallel()
	_, env := seeded(t)
	ctx, cancel := context.WithTimeout(t.Context(), stepTimeout)
	defer cancel()
	var errs bytes.Buffer
	out := &cancelsAfter{documents: 2, cancel: cancel}
	code := execute(ctx, &cli{
		in: strings.NewReader(""), out: out, err: &errs, env: env, load: settingsOf(t, env),
	}, []string{"status", "--watch", "--format", "json"})
	if code != exitInterrupted || errs.Len() > 0 {
		t.Errorf("got exit code %d and error %q, want %d", code, errs.String(), exitInterrupted)
	}
	documents := json.NewDecoder(&out.Buffer)
	var moments []time.Time
	for documents.More() {
		var now status.Now
		if err := documents.Decode(&now); err != nil {
			t.Fatal(err)
		}
		moments = append(moments, now.Now)
	}
	if len(moments) != 2 || !moments[1].After(moments[0]) {
		t.Errorf("got documents of %v, want two, the second later", moments)
	}
}
