package control_test

import (
	"errors"
	"testing"

	"dispatcher/cmd/dispatcher/internal/control"
)

func TestAReasonHasNoPhoneNumber(t *testing.T) {
	t.Parallel()
	for reason, refused := range map[string]bool{
		"":                                  false,
		"b is cheaper from 2026-11-21 on":   false,
		"ticket 447700900123":               false,
		"+20 % for b, +1234567 in all":      false,
		"account +1234567890123456":         true,
		"+447700900123 4711":                true,
		"by +44 (0)7700.900.123":            true,
		"C++ client, +5 +6 +7 +8 +9":        false,
		"asked by +447700900123":            true,
		"asked by +44 7700 900-123, urgent": true,
		"(+12345678)":                       true,
		"+1 or +44-7700-900123":             true,
		"+123456789012345":                  true,
	} {
		err := control.CheckReason(reason)
		if _, ok := errors.AsType[*control.Refused](err); ok != refused || (err == nil) == refused {
			t.Errorf("%q: got error %v, want refused %v", reason, err, refused)
		}
	}
}
