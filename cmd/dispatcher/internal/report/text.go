package report

import (
	"embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/config"
	"dispatcher/ledger"
)

//go:embed templates
var templateFiles embed.FS

// templates write the paragraph of an explanation, one file per section.
var templates = template.Must(template.New("").Funcs(functions).Funcs((&clock{}).functions()).
	ParseFS(templateFiles, "templates/*.tmpl"))

// functions are the functions of the templates that depend only on their arguments.
var functions = template.FuncMap{
	"list": list, "money": Money, "percent": percent, "span": span, "plural": plural[int],
	"score": func(f float64) string { return strconv.FormatFloat(f, 'g', 4, 64) },
	"upper": strings.ToUpper, "trimDot": func(s string) string {
		return strings.TrimSuffix(s, ".")
	},
	"words":      func(s string) string { return strings.ReplaceAll(s, "_", " ") },
	"dead":       func(reason string) string { return because(deadWords, reason) },
	"scoring":    func(trouble string) string { return because(scoringWords, trouble) },
	"rejected":   func(reason string) string { return rejectedWords[reason] },
	"waits":      func(reason string) string { return waitWords[reason] },
	"clarify":    func(step string) string { return clarifyWords[step] },
	"resolution": func(word string) string { return resolutionWords[word] },
	"cause":      func(cause string) string { return receiptWords[cause] },
}

// clock writes times in the business time zone, with the date if it differs from the last one.
type clock struct {
	zone *time.Location
	day  string // the last date written
}

func (c *clock) functions() template.FuncMap { return template.FuncMap{"at": c.at, "when": c.when} }

const dateForm = "2 January 2006"

// at writes a time after "at", or after "on" if the date comes first.
func (c *clock) at(t time.Time) string {
	if t.In(c.zone).Format(dateForm) == c.day {
		return "at " + c.when(t)
	}
	return "on " + c.when(t)
}

// when writes a time without a preposition, such as after "until".
func (c *clock) when(t time.Time) string {
	t = t.In(c.zone)
	clock, date := t.Format("15:04:05 MST"), t.Format(dateForm)
	if date == c.day {
		return clock
	}
	c.day = date
	return date + " at " + clock
}

// page is the data of the templates: an explanation, and what they derive from it.
type page struct {
	*Explanation
	Limit    *limitWait // nil unless the message waits for a limit
	Forecast bool
	doc      *config.Routing // nil when the message was planned under no version
	ranking  *lastRanking
	zone     *time.Location
	now      time.Time // zero when it is not known
}

// text executes a template.
func (p *page) text(name string) (string, error) {
	t, err := templates.Clone()
	if err != nil {
		return "", fmt.Errorf("write the paragraph: %w", err)
	}
	var out strings.Builder
	clock := clock{zone: p.zone}
	if err := t.Funcs(clock.functions()).ExecuteTemplate(&out, name, p); err != nil {
		return "", fmt.Errorf("write the paragraph: %w", err)
	}
	return strings.Join(strings.Fields(out.String()), " "), nil
}

// FurtherDetail is Detail, unless it equals the words for Reason.
func (p *page) FurtherDetail() string {
	if p.Detail == deadWords[p.Reason] {
		return ""
	}
	return p.Detail
}

// Was is "is" in a forecast, else "was".
func (p *page) Was() string {
	if p.Forecast {
		return "is"
	}
	return "was"
}

// Members are the channels of the route.
func (p *page) Members() []string {
	if route := p.doc.Route(p.Route); route != nil {
		return route.Channels
	}
	return nil
}

// Shares are the shares by the weights of the document: "25 % for a".
func (p *page) Shares() []string {
	route := p.doc.Route(p.Route)
	shares := agreedShares(route)
	var out []string
	for _, channel := range p.Members() {
		if share, ok := shares[channel]; ok {
			out = append(out, percent(share)+" for "+channel)
		}
	}
	return out
}

// Lowered are the weights that health weighting had changed.
func (p *page) Lowered() (out []string) {
	route := p.doc.Route(p.Route)
	if route == nil || p.Forecast {
		return nil
	}
	for _, w := range route.Weights {
		if w.Weight != w.Configured {
			out = append(out, fmt.Sprintf("%s was %s instead of %s", w.Channel, w.Weight,
				w.Configured))
		}
	}
	return out
}

// LastDraw is the largest possible draw.
func (p *page) LastDraw() int64 { return *p.Size - 1 }

// OnlyChannel reports whether every draw picks the first choice.
func (p *page) OnlyChannel() bool {
	return p.Interval != nil && p.Interval.Low == 0 && p.Interval.High == uint64(p.LastDraw())
}

// CountryMatters reports whether the country is worth a sentence: the document has rules or prices
// of countries, or the number was blocked.
func (p *page) CountryMatters() bool {
	return p.Country != nil && (p.Blocked() || usesCountries(p.doc))
}

// CountryCode is the country of the number; "001" for a number of no single country, as under +979.
func (p *page) CountryCode() string { return *p.Country }

// Blocked reports whether nothing is sent to the number.
func (p *page) Blocked() bool { return envelope.Code(p.Reason).Rejects() }

// BlocksCountries reports whether a country may be blocked. It is true when the document is not
// known.
func (p *page) BlocksCountries() bool {
	return p.Reason != string(envelope.CountryNotAllowed) &&
		(p.doc == nil || len(p.doc.Blocked.Countries) > 0)
}

// usesCountries reports whether a document has a block, a match, a price or a sender rule that
// depends on the country of a number.
func usesCountries(doc *config.Routing) bool {
	price := func(l config.PriceList) bool { return len(l.Countries) > 0 }
	sender := func(r config.SenderRule) bool { return len(r.Countries) > 0 }
	match := func(r config.Route) bool {
		return len(r.Match.Countries)+len(r.AllowedCountries) > 0
	}
	channel := func(c config.Channel) bool {
		return slices.ContainsFunc(c.Price.Lists, price) || slices.ContainsFunc(c.Senders.Rules,
			sender)
	}
	return doc != nil && (len(doc.Blocked.Countries) > 0 || doc.Allowed.Any() ||
		slices.ContainsFunc(doc.Channels, channel) || slices.ContainsFunc(doc.Routes, match))
}

// Finished reports whether the message has ended.
func (p *page) Finished() bool { return ledger.State(p.State).Final() }

// Resolving reports whether an ambiguity is open.
func (p *page) Resolving() bool {
	return slices.ContainsFunc(p.Ambiguities, func(a Ambiguity) bool { return a.Resolution == "" })
}

// ResentInVain reports whether the message was to be resent, and it is certain that no channel took
// the resend.
func (p *page) ResentInVain() bool {
	resent := func(a Ambiguity) bool { return a.Resolution == "resent" }
	unanswered := func(a Attempt) bool {
		return a.Reason == "resend" && a.Outcome == outcomeUnknown
	}
	return slices.ContainsFunc(p.Ambiguities, resent) && !slices.ContainsFunc(p.Attempts,
		unanswered)
}

// MayHaveArrivedTwice reports whether more than one attempt may have been taken, and no sentence
// before has said so.
func (p *page) MayHaveArrivedTwice() bool {
	told := p.State == string(ledger.Unknown) && (p.Resolving() || p.ResentInVain())
	return p.PossibleDuplicate && !told
}

// Receipt is the last attempt whose receipts gave the state of the message; nil without one.
func (p *page) Receipt() *Attempt {
	for i := len(p.Attempts) - 1; i >= 0; i-- {
		if p.Attempts[i].Receipt == p.State {
			return &p.Attempts[i]
		}
	}
	return nil
}

// ReceiptDelay is the time from the answer to the receipts; 0 when it is not known.
func (a *Attempt) ReceiptDelay() time.Duration {
	if a.ReceiptAt == nil || a.SettledAt == nil {
		return 0
	}
	return max(a.ReceiptAt.Sub(*a.SettledAt), 0)
}
