package receive_test

import (
	"testing"

	"dispatcher/ledger/ledgertest"
)

func TestMain(m *testing.M) { ledgertest.Main(m) }
