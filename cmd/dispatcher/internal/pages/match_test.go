package pages

import (
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"dispatcher/config"
	"dispatcher/selector"
)

// TestEveryPartOfAMatchIsInItsWords: a new field of config.Match needs words here, else the page
// says that a route takes messages which it does not take.
func TestEveryPartOfAMatchIsInItsWords(t *testing.T) {
	t.Parallel()
	workdays := config.Days(1<<time.Monday | 1<<time.Tuesday | 1<<time.Wednesday)
	samples := map[string]struct {
		match config.Match
		want  string
	}{
		"Prefixes":  {config.Match{Prefixes: []string{"+4477", "+353"}}, "prefix +4477, +353"},
		"Countries": {config.Match{Countries: []string{"gb", "ie"}}, "country gb, ie"},
		"Tenants":   {config.Match{Tenants: []string{"shop"}}, "tenant shop"},
		"Lanes":     {config.Match{Lanes: []string{"otp"}}, "lane otp"},
		"Senders":   {config.Match{Senders: []string{"ACME"}}, "sender ACME"},
		"Hours": {
			config.Match{Hours: config.Hours{{Days: workdays, From: 22 * 60, To: 7*60 + 30}}},
			"hours mon-wed 22:00-07:30",
		},
		"Labels": {
			config.Match{Labels: map[string]selector.Value{
				"language": selector.TextValue("en"), "quality": selector.NumberValue(5),
			}},
			"label language=en, quality=5",
		},
	}
	for field := range reflect.TypeFor[config.Match]().Fields() {
		sample, ok := samples[field.Name]
		if !ok {
			t.Errorf("config.Match.%s has no sample in this test", field.Name)
			continue
		}
		if reflect.ValueOf(sample.match).FieldByName(field.Name).IsZero() {
			t.Errorf("the sample of %s does not set it", field.Name)
		}
		if got := matchWords(&sample.match); got != sample.want {
			t.Errorf("%s: got %q, want %q", field.Name, got, sample.want)
		}
	}
	if got := matchWords(&config.Match{}); got != "all messages" {
		t.Errorf("an empty match: got %q", got)
	}
}

const rulesDocument = `timezone: Europe/London
channels:
  a: {provider: sandbox}
  b: {provider: sandbox}
routes:
  - name: night
    match: {senders: [ACME], hours: "22:00-08:00"}
    weights: {a: 1, b: 1}
    sticky: true
    quiet: {hours: "sat,sun 12:00-13:00", zone: recipient, then: next}
    no_receipt: {after: 2m}
    allowed_countries: [gb, ie]
  - {name: rest, match: {}, weights: {a: 1}, quiet: {hours: "23:00-06:00"}}
lanes:
  otp: {topics: [sms.otp], ttl: 10m}
`

func TestPagesShowTheRulesOfARoute(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	c.apply(t, rulesDocument)
	viewer := c.client(t, "viewer")
	night := []string{
		"sender ACME; hours 22:00-08:00",
		"Sticky: a recipient stays on one channel.",
		"Quiet sat-sun 12:00-13:00, by the clock of the recipient&#39;s country: messages go to the next route.",
		"Without a receipt 2 min after the answer, a copy goes to the next channel.",
		"Only to the countries gb, ie.",
	}
	rest := []string{
		"all messages",
		"Quiet 23:00-06:00, by the clock of Europe/London: messages wait.",
	}
	for path, want := range map[string][]string{
		"/routes/" + url.PathEscape("night"): night,
		"/routes/rest":                       rest,
		"/routes":                            append(night, rest...),
	} {
		body := viewer.get(path).body
		for _, words := range want {
			if !strings.Contains(body, words) {
				t.Errorf("%s does not say %q:\n%s", path, words, body)
			}
		}
	}
}
