package httpapi_test

import (
	"testing"

	"go.uber.org/goleak"

	"dispatcher/config/tier"
)

func TestMain(m *testing.M) {
	tier.Parallel(8)
	goleak.VerifyTestMain(m)
}
