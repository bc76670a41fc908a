package app

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
)

// TestStartWarnsOfCommitsThatMayBeLost uses the server of the tests, which runs without fsync.
func TestStartWarnsOfCommitsThatMayBeLost(t *testing.T) {
	t.Parallel()
	l, err := ledger.Connect(t.Context(),
		ledger.Config{URL: ledgertest.URL(t), Region: "test", Host: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	var out bytes.Buffer
	a := &App{log: zerolog.New(&out), ledger: l}
	if err := a.warnOfDurability(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"setting":"synchronous_commit","value":"off"`,
		`"setting":"fsync"`, `"setting":"full_page_writes"`, "attempts that went out already",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is missing in %s", want, out.String())
		}
	}
}

func TestMain(m *testing.M) {
	tier.Parallel(4)
	ledgertest.Main(m)
}
