package api_test

import (
	"testing"

	"dispatcher/config/tier"
	"dispatcher/ledger/ledgertest"
	"dispatcher/ledger/ledgertest/lent"
)

func TestMain(m *testing.M) {
	tier.Parallel(4)
	ledgertest.Main(m, lent.Close)
}
