package api_test

import (
	"testing"

	"dispatcher/config/tier"
	"dispatcher/ledger/ledgertest"
)

func TestMain(m *testing.M) {
	tier.Parallel(4)
	ledgertest.Main(m)
}
