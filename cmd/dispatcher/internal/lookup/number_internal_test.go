package lookup

import (
	"errors"
	"strings"
	"testing"
	"time"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
	"dispatcher/selector"
)

func TestMain(m *testing.M) { ledgertest.Main(m) }

// TestASearchThatTakesTooLongSaysWhatToDo, and does not call the database away.
func TestASearchThatTakesTooLongSaysWhatToDo(t *testing.T) {
	t.Parallel()
	l, err := ledger.Connect(t.Context(), ledger.Config{URL: ledgertest.URL(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	q := &NumberQuery{Keys: []selector.Key{{1}}, Number: "+447700900123", Days: 7, Limit: 10}
	if _, err := byNumber(t.Context(), l, q, numberTimeout); err != nil {
		t.Fatal(err)
	}
	_, err = byNumber(t.Context(), l, q, time.Nanosecond)
	if _, ok := errors.AsType[*control.Impossible](err); !ok ||
		!strings.Contains(err.Error(), "ask for fewer days") {
		t.Errorf("got %v", err)
	}
}
