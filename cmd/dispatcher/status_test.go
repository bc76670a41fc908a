package main

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
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

// thenDoes is a writer that calls a function after each write.
type thenDoes struct {
	bytes.Buffer
	do func()
}

func (w *thenDoes) Write(p []byte) (int, error) {
	n, err := w.Buffer.Write(p)
	w.do()
	return n, err
}

// TestStatusWatchOutlastsADatabaseThatDoesNotAnswer: the error is shown, and the watch goes on.
func TestStatusWatchOutlastsADatabaseThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	_, env := seeded(t)
	url, _ := strings.CutPrefix(env[0], "DISPATCHER_POSTGRES_URL=")
	db := opened(t, url)
	rename := func(from, to string) {
		if _, err := db.Exec(t.Context(), `alter table dispatcher.`+from+` rename to `+to); err != nil {
			t.Error(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), stepTimeout)
	defer cancel()
	documents := 0
	out, errs := &thenDoes{}, &thenDoes{do: func() { rename("away", "instances") }}
	out.do = func() {
		switch now := strings.Count(out.String(), "\n}\n"); now {
		case documents:
		case 1:
			documents = now
			rename("instances", "away")
		default:
			cancel()
		}
	}
	code := execute(ctx, &cli{
		in: strings.NewReader(""), out: out, err: errs, env: env, load: settingsOf(t, env),
	}, []string{"status", "--watch", "--format", "json"})
	if code != exitInterrupted || !strings.Contains(errs.String(), "it is tried again") {
		t.Errorf("got exit code %d and error %q, want %d", code, errs.String(), exitInterrupted)
	}
}

// TestReceiptsAreMissedOnlyWhereTheyAreExpected: a carrier of the demo sends none, unless the
// document says for how long they are waited for.
func TestReceiptsAreMissedOnlyWhereTheyAreExpected(t *testing.T) {
	t.Parallel()
	l, env := seeded(t)
	daysTraffic(t, l, env, 200)
	url, _ := strings.CutPrefix(env[0], "DISPATCHER_POSTGRES_URL=")
	alter(t, url, `update dispatcher.attempts set settled_at = now() - interval '2 minutes'`)
	missed := func() (missed []string) {
		now := decoded[status.Now](t, dispatcher(t, "", env, "status", "--format", "json"))
		for _, f := range now.Findings {
			if strings.Contains(f.Detail, "has a receipt") {
				missed = append(missed, f.Check)
			}
		}
		return missed
	}
	if got := missed(); got != nil {
		t.Errorf("got findings about receipts of %v, want none", got)
	}
	applyRouting(t, env, write(t, "next.yaml", strings.Replace(testRouting, "provider: sandbox",
		"provider: sandbox, receipts: {within: 1h}", 1)))
	if got := missed(); !slices.Equal(got, []string{"traffic of a"}) {
		t.Errorf("got findings about receipts of %v, want of a alone", got)
	}
}
