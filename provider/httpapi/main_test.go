package httpapi_test

import (
	"testing"

	"dispatcher/provider/providertest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	providertest.AllowWaiting()
	goleak.VerifyTestMain(m)
}
