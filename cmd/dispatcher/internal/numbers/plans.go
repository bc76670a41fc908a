package numbers

import (
	"regexp"
	"regexp/syntax"
	"strings"
	"sync"

	"github.com/nyaruka/phonenumbers"
)

// plan is the numbering plan of one of the regions that share a calling code.
type plan struct {
	leading *regexp.Regexp // the digits that all its numbers begin with; nil for none
	numbers []*syntax.Prog // one for each kind of number
}

// plans are the numbering plans of the regions that share calling codes.
var plans = sync.OnceValue(func() map[string]*plan {
	out := map[string]*plan{}
	for _, p := range metadata() {
		if len(phonenumbers.GetRegionCodesForCountryCode(int(p.GetCountryCode()))) > 1 {
			out[p.GetId()] = newPlan(p)
		}
	}
	return out
})

func newPlan(p *phonenumbers.PhoneMetadata) *plan {
	if digits := p.GetLeadingDigits(); digits != "" {
		return &plan{leading: regexp.MustCompile("^(?:" + digits + ")")}
	}
	out := &plan{}
	for _, kind := range []*phonenumbers.PhoneNumberDesc{
		p.GetFixedLine(), p.GetMobile(), p.GetTollFree(), p.GetPremiumRate(), p.GetSharedCost(),
		p.GetVoip(),
		p.GetPersonalNumber(), p.GetPager(), p.GetUan(), p.GetVoicemail(),
	} {
		if pattern := kind.GetNationalNumberPattern(); pattern != "" && pattern != "NA" {
			out.numbers = append(out.numbers, compile(pattern))
		}
	}
	return out
}

// has reports whether the plan has numbers with this beginning.
func (p *plan) has(national string) bool {
	if p.leading != nil {
		return p.leading.MatchString(national)
	}
	for _, program := range p.numbers {
		if begins(program, national) {
			return true
		}
	}
	return false
}

// regionOf is the region of the numbers with this beginning, with or without a plus. If several
// regions share the calling code, it is the first that has such numbers; the main one is tried
// first.
func regionOf(beginning string) string {
	digits, _ := strings.CutPrefix(beginning, "+")
	code := 0
	for i := 0; i < 3 && i < len(digits); i++ {
		if digits[i] < '0' || digits[i] > '9' {
			return ""
		}
		code = code*10 + int(digits[i]-'0')
		regions := phonenumbers.GetRegionCodesForCountryCode(code)
		switch {
		case len(regions) == 1:
			return strings.ToLower(regions[0])
		case len(regions) > 1:
			return firstOf(regions, digits[i+1:])
		}
	}
	return ""
}

func firstOf(regions []string, national string) string {
	for _, region := range regions {
		if p := plans()[region]; p != nil && p.has(national) {
			return strings.ToLower(region)
		}
	}
	return ""
}
