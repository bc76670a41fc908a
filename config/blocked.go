package config

import (
	"strings"
)

// Blocked says to which numbers nothing is sent, on any route. The zero value blocks none.
type Blocked struct {
	Prefixes  []string // beginnings of numbers, plus included
	Countries []string // ISO 3166 in lower case
	Premium   bool     // numbers whose owner earns from calls and messages to them
}

func readBlocked(v value) Blocked {
	f, ok := v.fields(blockedPart)
	if !ok {
		return Blocked{}
	}
	b := Blocked{
		Prefixes:  readWords(f, "prefixes", "prefix", checkPrefix),
		Countries: readCountries(f, "countries", "country"),
	}
	if premium, ok := f.get("premium"); ok {
		b.Premium = premium.flag()
	}
	return b
}

// countries are the regions that telephone numbers belong to: those of ISO 3166 that have numbers,
// and AC, TA and XK, which ISO 3166 reserves or leaves to users.
var countries = strings.Fields(`
	ac ad ae af ag ai al am ao ar as at au aw ax az ba bb bd be bf bg bh bi bj bl bm bn bo bq
	br bs bt bw by bz ca cc cd cf cg ch ci ck cl cm cn co cr cu cv cw cx cy cz de dj dk dm do
	dz ec ee eg eh er es et fi fj fk fm fo fr ga gb gd ge gf gg gh gi gl gm gn gp gq gr gt gu
	gw gy hk hn hr ht hu id ie il im in io iq ir is it je jm jo jp ke kg kh ki km kn kp kr kw
	ky kz la lb lc li lk lr ls lt lu lv ly ma mc md me mf mg mh mk ml mm mn mo mp mq mr ms mt
	mu mv mw mx my mz na nc ne nf ng ni nl no np nr nu nz om pa pe pf pg ph pk pl pm pr ps pt
	pw py qa re ro rs ru rw sa sb sc sd se sg sh si sj sk sl sm sn so sr ss st sv sx sy sz ta
	tc td tg th tj tk tl tm tn to tr tt tv tw tz ua ug us uy uz va vc ve vg vi vn vu wf ws xk
	ye yt za zm zw
`)

// isCountry reports whether s is the two-letter code, in either case, of a country that has
// telephone numbers.
func isCountry(s string) bool {
	for _, code := range countries {
		if strings.EqualFold(s, code) {
			return true
		}
	}
	return false
}

// notACountry says what to write instead of a code; for uk, gb.
func notACountry(code string) string {
	if strings.EqualFold(code, "uk") {
		return "is not a country; did you mean GB?"
	}
	return "is not a country; write its two letters, such as GB"
}

// checkCountry reports whether s is the code of a country that has telephone numbers.
func checkCountry(v value, s string) bool {
	if isCountry(s) {
		return true
	}
	v.fail("%q %s", s, notACountry(s))
	return false
}

// Countries are the codes of all countries that have telephone numbers, in lower case.
func Countries() []string { return append([]string(nil), countries...) }
