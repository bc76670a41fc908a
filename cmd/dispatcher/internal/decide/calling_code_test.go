package decide

import (
	"strconv"
	"testing"

	"github.com/nyaruka/phonenumbers"
)

func TestCallingCodesAreThoseOfTheNumberingPlans(t *testing.T) {
	t.Parallel()
	codes := phonenumbers.GetSupportedCallingCodes()
	if len(codes) < 200 {
		t.Fatalf("only %d calling codes", len(codes))
	}
	for code := range codes {
		if got := CallingCode("+" + strconv.Itoa(code) + "55500123"); int(got) != code {
			t.Errorf("a number of +%d: got calling code +%d", code, got)
		}
	}
	for _, number := range []string{"", "+", "+44", "447700900123"} {
		if got := CallingCode(number); got != 0 {
			t.Errorf("%q has the calling code %d", number, got)
		}
	}
}
