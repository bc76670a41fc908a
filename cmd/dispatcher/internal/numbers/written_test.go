package numbers_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"dispatcher/cmd/dispatcher/internal/numbers"
)

func TestWrittenIsANumberAsPeopleWriteIt(t *testing.T) {
	t.Parallel()
	for number, want := range map[string][]string{
		"+447700900123": {"7700900123", "07700900123", "4407700900123"},
		"+919876543210": {"9876543210", "09876543210", "9109876543210"},
		"+6834002":      nil, // too short
		"+14155550123":  {"4155550123", "14155550123"},
		"+9991234567":   nil,
	} {
		if diff := cmp.Diff(want, numbers.Written(number)); diff != "" {
			t.Errorf("%s: %s", number, diff)
		}
	}
}
