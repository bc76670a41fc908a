package numbers_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/nyaruka/phonenumbers"
	"pgregory.net/rapid"

	"dispatcher/cmd/dispatcher/internal/numbers"
	"dispatcher/config/tier"
)

func TestPremiumKnowsThePremiumRateNumbersOfThePlans(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, plan := range numbers.Metadata() {
		example := plan.GetPremiumRate().GetExampleNumber()
		if example == "" {
			continue
		}
		number := fmt.Sprintf("+%d%s", plan.GetCountryCode(), example)
		parsed, err := phonenumbers.Parse(number, "")
		if err != nil || phonenumbers.GetNumberType(parsed) != phonenumbers.PREMIUM_RATE {
			continue // an example number that the plans no longer know
		}
		seen++
		if !numbers.Premium(number) {
			t.Errorf("the example of region %s does not count as a premium-rate number", plan.GetId())
		}
	}
	if seen < 150 {
		t.Errorf("%d regions have premium-rate numbers", seen)
	}
}

func TestPremiumSaysWhatThePlansSay(t *testing.T) {
	t.Parallel()
	for number, want := range map[string]bool{
		"+447700900123": false, "+448712345678": true, "+449098765432": true, "+33612345678": false,
		"+33899000000": true,
		"+19002345678": true, "+14155550100": false, "+979123456789": true, "+4915123456789": false,
		"+499001234567": true,
		"+1":            false, "+": false, "": false, "+99912345678": false, "+44": false,
		"+x4479": false,
	} {
		if got := numbers.Premium(number); got != want {
			t.Errorf("a number of %.4s...: premium %v, want %v", number, got, want)
		}
	}
}

// premium reports whether the plans, without our table, call a number premium.
func premium(number string) bool {
	parsed, err := phonenumbers.Parse(number, "")
	return err == nil && phonenumbers.GetNumberType(parsed) == phonenumbers.PREMIUM_RATE
}

func TestTheTableNeverHidesAPremiumRateNumber(t *testing.T) {
	t.Parallel()
	number := rapid.Custom(func(t *rapid.T) string {
		code := rapid.SampledFrom([]string{
			"1", "44", "33", "49", "7", "39", "61", "34", "31", "46",
			"48", "91", "972", "353", "386", "979", "420",
		}).Draw(t, "code")
		return "+" + code + rapid.StringMatching(`(?:9|8|90|89|87|1|[0-9])[0-9]{6,9}`).
			Draw(t, "national")
	})
	tier.Check(t, func(t *rapid.T) {
		n := number.Draw(t, "number")
		if numbers.Premium(n) != premium(n) {
			t.Fatalf("Premium = %v, the plans say %v", numbers.Premium(n), premium(n))
		}
	})
}

func TestCountriesDistinguishRegionsThatShareACode(t *testing.T) {
	t.Parallel()
	c := numbers.NewCountries()
	for range 2 { // cached results do not change an answer
		for number, want := range map[string]string{
			"+447400123456": "gb", "+33612345678": "fr", "+14155552671": "us", "+16045551234": "ca",
			"+18765551234": "jm", "+77012345678": "kz",
			"+79161234567": "ru", "+99912345678": "", "": "", "+": "", "+x": "",
			"+8501921234567": "kp", "+979123456789": "001",
			"+447911112345": "gg", "+441624123456": "im", "+447797123456": "je",
			"+262639012345": "yt", "+262692123456": "re",
		} {
			if got := c.Of(number); got != want {
				t.Errorf("a number of %.4s... is in %q, want %q", number, got, want)
			}
		}
	}
}

func TestCountriesSayWhatThePlansSay(t *testing.T) {
	t.Parallel()
	c, seen := numbers.NewCountries(), 0
	for _, plan := range numbers.Metadata() {
		for _, kind := range []*phonenumbers.PhoneNumberDesc{
			plan.GetFixedLine(), plan.GetMobile(),
			plan.GetTollFree(), plan.GetPremiumRate(), plan.GetVoip(),
		} {
			number := fmt.Sprintf("+%d%s", plan.GetCountryCode(), kind.GetExampleNumber())
			parsed, err := phonenumbers.Parse(number, "")
			if kind.GetExampleNumber() == "" || err != nil {
				continue
			}
			want := strings.ToLower(phonenumbers.GetRegionCodeForNumber(parsed))
			if seen++; c.Of(number) != want {
				t.Errorf("an example of %s is in %q, want %q", plan.GetId(), c.Of(number), want)
			}
		}
	}
	if seen < 500 {
		t.Errorf("%d examples", seen)
	}
}

// Earlier queries must not matter, because an audit asks in another order.
func TestACountryDependsOnTheNumberAlone(t *testing.T) {
	t.Parallel()
	number := rapid.StringMatching(`\+(44|1|7|39|47|61|212|262|590|358)[0-9]{6,10}`)
	tier.Check(t, func(t *rapid.T) {
		known, one := numbers.NewCountries(), number.Draw(t, "number")
		for _, other := range rapid.SliceOfN(number, 0, 3).Draw(t, "before") {
			known.Of(other)
		}
		last := one[:len(one)-1] + rapid.StringMatching(`[0-9]`).Draw(t, "last digit")
		known.Of(last)
		if got, want := known.Of(one), numbers.NewCountries().Of(one); got != want {
			t.Fatalf("%q after others, %q before", got, want)
		}
	})
}

func TestMainCallingCodesAreThoseOfTheMainCountries(t *testing.T) {
	t.Parallel()
	for countries, want := range map[string]string{
		"us kp ru gb it fr xx": "+1 +33 +39 +44 +7 +850",
		"us jm us":             "+1",
		// as the guide lists them
		"us ru gb it no au ma re sh fi gp cw": "+1 +212 +262 +290 +358 +39 +44 +47 +590 +599 +61 " +
			"+7",
		// each shares a code that another one is the main country of
		"jm ca kz gg je im va": "",
		"":                     "",
	} {
		if got := strings.Join(numbers.MainCallingCodes(strings.Fields(countries)),
			" "); got != want {
			t.Errorf("%q of %s, want %q", got, countries, want)
		}
	}
}

// TestOnlyMainCountriesLeadACallingCode: each shared code has a main country. Otherwise a number
// whose country is not known would never be blocked.
func TestOnlyMainCountriesLeadACallingCode(t *testing.T) {
	t.Parallel()
	leaders := map[string]int{}
	for region := range phonenumbers.GetSupportedRegions() {
		for _, code := range numbers.MainCallingCodes([]string{strings.ToLower(region)}) {
			leaders[code]++
		}
	}
	for region := range phonenumbers.GetSupportedRegions() {
		if code := "+" + strconv.Itoa(phonenumbers.GetCountryCodeForRegion(region)); leaders[code] != 1 {
			t.Errorf("%s of %s has %d main countries", code, region, leaders[code])
		}
	}
}

// TestExamplesForRulesByCountryHaveOne: the guides also use fictitious mobile numbers, which have
// no country.
func TestExamplesForRulesByCountryHaveOne(t *testing.T) {
	t.Parallel()
	c := numbers.NewCountries()
	for number, want := range map[string]string{
		"+442079460123": "gb", "+14155550100": "us",
		"+447700900123": "",
	} {
		if got := c.Of(number); got != want {
			t.Errorf("%s is in %q, want %q", number, got, want)
		}
	}
}

func TestRegionPutsNationalNumbersIntoE164(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		region numbers.Region
		in     string
		want   string
	}{
		{"GB", "07700 900123", "+447700900123"},
		{"GB", "07700-900123", "+447700900123"},
		{"GB", "(07700) 900 123", "+447700900123"},
		{"GB", "+44 (0)7700 900123", "+447700900123"},
		{"GB", "0033 6 12 34 56 78", "+33612345678"},
		{"GB", "+33 6 12 34 56 78", "+33612345678"},
		{"GB", "+447700900123", "+447700900123"},
		{"GB", "+12", "+12"}, // numbers with a plus stay unchanged
		{"FR", "06 12 34 56 78", "+33612345678"},
		{"IT", "06 1234 5678", "+390612345678"},
		{"US", "(415) 555-2671", "+14155552671"},
		{"US", "415-555-2671 ext. 5", "415-555-2671 ext. 5"},
		{"GB", "12", "12"},
		{"GB", "call me", "call me"},
		{"GB", "", ""},
		{"", "07700 900123", "07700 900123"},
	} {
		if got := c.region.E164(c.in); got != c.want {
			t.Errorf("%s: %q, want %q", c.region, got, c.want)
		}
	}
}

func TestParseRegionTakesCountryCodes(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"GB", "gb", "fr", ""} {
		if _, err := numbers.ParseRegion(code); err != nil {
			t.Errorf("ParseRegion(%q): %v", code, err)
		}
	}
	for _, code := range []string{"UK", "ZZ", "GBR", "44", "001"} {
		if _, err := numbers.ParseRegion(code); err == nil {
			t.Errorf("ParseRegion(%q) gave no error", code)
		}
	}
}

func TestRewriteChangesNothingButTheRecipient(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"id":"1", "to" : "07700 900123","text":"07700 900123"}`: `{"id":"1", "to" : ` +
			`"+447700900123","text":"07700 900123"}`,
		`{"metadata":{"to":"07700 900124"},"to":"07700 900123"}`: `{"metadata":{"to":"07700 ` +
			`900124"},"to":"+447700900123"}`,
		`{"to":"+447700900123"}`:     `{"to":"+447700900123"}`,
		`{"to":"07700\u0020900123"}`: `{"to":"+447700900123"}`,
		`{"to":7700900123}`:          `{"to":7700900123}`,
		`{"to":`:                     `{"to":`,
		`[]`:                         `[]`,
		``:                           ``,
	} {
		if got := string(numbers.Region("GB").Rewrite([]byte(in))); got != want {
			t.Errorf("Rewrite(%s) = %s, want %s", in, got, want)
		}
		if got := string(numbers.Region("").Rewrite([]byte(in))); got != in {
			t.Errorf("without a region %s became %s", in, got)
		}
	}
}

func FuzzRewrite(f *testing.F) {
	f.Add([]byte(`{"id":"1","to":"07700 900123"}`), "07700 900123")
	f.Fuzz(func(t *testing.T, object []byte, number string) {
		once := numbers.Region("GB").Rewrite(object)
		if twice := numbers.Region("GB").Rewrite(once); string(twice) != string(once) {
			t.Error("a second pass changes the record again")
		}
		if e164 := numbers.Region("GB").E164(number); numbers.Region("GB").E164(e164) != e164 {
			t.Error("a second pass changes the number again")
		}
		numbers.Premium(number)
		numbers.NewCountries().Of(number)
	})
}

func BenchmarkPremium(b *testing.B) {
	for name, number := range map[string]string{
		"mobile":  "+447700900123",
		"premium": "+449098765432", "code without": "+99912345678",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				numbers.Premium(number)
			}
		})
	}
}

func BenchmarkCountriesKnown(b *testing.B) {
	c := numbers.NewCountries()
	b.ReportAllocs()
	for b.Loop() {
		c.Of("+447400123456")
	}
}

func BenchmarkCountriesUnknown(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		numbers.NewCountries().Of("+447400123456")
	}
}

func BenchmarkE164(b *testing.B) {
	for name, number := range map[string]string{
		"already":  "+447700900123",
		"national": "07700 900123",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				numbers.Region("GB").E164(number)
			}
		})
	}
}

// TestAWholeNumberIsNoPrefix: ranges of any country are prefixes, numbers are not.
func TestAWholeNumberIsNoPrefix(t *testing.T) {
	for prefix, want := range map[string]bool{
		"+44": false, "+1809": false, "+4477009": false, "+37167881": false, "+88299": false,
		"+447700900123": true, "+4915112345678": true, "+37167881234": true, "+18092345678": true,
	} {
		if got := numbers.Whole(prefix); got != want {
			t.Errorf("%s: got %v, want %v", prefix, got, want)
		}
	}
}
