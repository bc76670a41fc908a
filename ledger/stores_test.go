package ledger_test

import (
	"reflect"
	"testing"

	"dispatcher/ledger"
)

// TestALedgerIsItsStores, each small enough to read, and what they share is not exported.
func TestALedgerIsItsStores(t *testing.T) {
	t.Parallel()
	const most = 12
	l := reflect.TypeFor[ledger.Ledger]()
	types := []reflect.Type{reflect.PointerTo(l)}
	for f := range l.Fields() {
		if f.IsExported() {
			types = append(types, f.Type)
		}
	}
	if len(types) < 10 {
		t.Fatalf("only %d stores were found", len(types)-1)
	}
	for _, store := range types {
		if n := store.NumMethod(); n == 0 || n > most {
			t.Errorf("%s has %d methods, of at most %d", store, n, most)
		}
	}
}
