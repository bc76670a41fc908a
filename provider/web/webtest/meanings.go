package webtest

import (
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// CheckTable fails unless each code of a vendor's table decides something, and says why. A code that decides nothing has no place in a
// table: what is not there is Unknown, or left to the status.
func CheckTable[Code comparable](t testing.TB, table map[Code]web.Meaning) {
	t.Helper()
	for code, v := range table {
		if v.Why == "" || v.Outcome == provider.Accepted || v.Outcome == provider.Unknown {
			t.Errorf("%v: %v, %q", code, v.Outcome, v.Why)
		}
	}
}

// CheckBlame fails unless these codes of a vendor's table are refusals, each of them about what it stands under.
func CheckBlame[Code comparable](t testing.TB, table map[Code]web.Meaning, blames map[web.Blame][]Code) {
	t.Helper()
	for blame, codes := range blames {
		for _, code := range codes {
			if v := table[code]; v.Outcome != provider.Refused || v.Blame != blame {
				t.Errorf("%v: %v, on %v, want %v", code, v.Outcome, v.Blame, blame)
			}
		}
	}
}
