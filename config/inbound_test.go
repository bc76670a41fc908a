package config_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dispatcher/config"
)

// withInbound returns a document with two channels and this inbound section.
func withInbound(text string) string {
	return "channels: {a: {provider: sandbox}, b: {provider: sandbox}}\n" +
		"routes: [{name: r, weights: {a: 1}}]\n" + text
}

func TestADocumentWithoutInboundHasTheUsualKeywords(t *testing.T) {
	t.Parallel()
	want := config.Inbound{Keywords: config.Keywords{
		Stop:  []string{"STOP", "STOPALL", "UNSUBSCRIBE", "CANCEL", "END", "QUIT"},
		Start: []string{"START", "UNSTOP"},
	}}
	if diff := cmp.Diff(want, parse(t, withInbound("")).Inbound); diff != "" {
		t.Error(diff)
	}
}

// YES may be the answer to a question and not a request for messages. It means START only in a
// document that says so.
func TestYesOptsNobodyInUnlessTheDocumentSaysSo(t *testing.T) {
	t.Parallel()
	if start := parse(t, withInbound("")).Inbound.Keywords.Start; slices.Contains(start, "YES") {
		t.Errorf("the standard words are %v", start)
	}
	if start := parse(t,
		withInbound("inbound: {keywords: {start: [start, yes]}}")).Inbound.Keywords.Start; !slices.Equal(start, []string{
		"START", "YES",
	}) {
		t.Errorf("configured are %v", start)
	}
}

func TestNumbersAndChannelsNameTheirTenantAndKeywords(t *testing.T) {
	t.Parallel()
	got := parse(t, withInbound(`
inbound:
  keywords: {stop: [stop, " arrêt! "]}
  numbers:
    "+15550100": {tenant: shop}
    "12345": {tenant: bank, keywords: {start: [go]}, channels: [a, b]}
  channels: {b: {tenant: news}}`)).Inbound
	stop, start := []string{"STOP", "ARRÊT"}, []string{"START", "UNSTOP"}
	want := config.Inbound{
		Keywords: config.Keywords{Stop: stop, Start: start},
		Numbers: []config.InboundSource{
			{Name: "+15550100", Tenant: "shop"},
			{
				Name: "12345", Tenant: "bank", Channels: []string{"a", "b"},
				Keywords: config.Keywords{Stop: stop, Start: []string{"GO"}},
			},
		},
		Channels: []config.InboundSource{{Name: "b", Tenant: "news"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestMistakesInInboundAreNamed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{numbers: {"abc": {}}}`:                                      `inbound.numbers.abc: "abc" is not a number`,
		`{numbers: {"15550100999": {}}}`:                              "too long for a short code",
		`{numbers: {"+12345678": {}, "12345678": {}}}`:                "is the same number as +12345678",
		`{channels: {c: {tenant: x}}}`:                                `there is no channel "c"`,
		`{channels: {a: {channels: [b]}}}`:                            "only a number has channels",
		`{numbers: {"12345": {channels: [c]}}}`:                       `there is no channel "c"`,
		`{numbers: {"12345": {channels: []}}}`:                        "is an empty list",
		`{keywords: {stop: []}}`:                                      "is an empty list",
		`{keywords: {stop: ["!!"]}}`:                                  "is not a keyword",
		`{keywords: {stop: [Stop, STOP]}}`:                            "is listed twice",
		`{keywords: {stop: [unstop]}}`:                                `"UNSTOP" stands under stop and under start`,
		`{keywords: {stop: [` + strings.Repeat("x", 41) + `]}}`:       "up to 40 letters",
		`{numbers: {"+15550100": {tenant: shop, keyword: {}}}}`:       "there is no such key",
		`{numbers: {"+15550100": {keywords: {stop: [x], begin: 1}}}}`: "there is no such key",
	} {
		_, err := config.ParseRouting("routing.yaml", []byte(withInbound("inbound: "+text)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: want %q, got %v", text, want, err)
		}
	}
}

func TestALaneRespectsOptOutsUnlessToldOtherwise(t *testing.T) {
	t.Parallel()
	doc := parse(t, withInbound("lanes: {otp: {ignore_opt_out: true}, bulk: {}}"))
	if !doc.Lanes[0].IgnoreOptOut || doc.Lanes[1].IgnoreOptOut {
		t.Errorf("%+v", doc.Lanes)
	}
	for _, lane := range parse(t, withInbound("")).Lanes {
		if lane.IgnoreOptOut {
			t.Errorf("lane %s ignores opt-outs by default", lane.Name)
		}
	}
}

func TestKeywordsAreComparedWithoutCaseAndSigns(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Stop": "STOP", " stop.\r\n": "STOP", `"STOP"`: "STOP", "arrêt": "ARRÊT", "stop all": "STOP ALL",
		"": "", " ?! ": "", "СТОП": "СТОП", "停止": "停止", "1": "1", "please stop": "PLEASE STOP",
	} {
		if got := config.Keyword(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestTheExampleOfTheGuideIsValid(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../docs/inbound.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(guide), "```yaml\n")
	example, _, _ := strings.Cut(rest, "```")
	got := parse(t,
		"channels: {acme: {provider: sandbox}}\nroutes: [{name: r, weights: {acme: 1}}]\n"+
			example).Inbound
	if len(got.Numbers) != 2 || len(got.Channels) != 1 {
		t.Errorf("%+v", got)
	}
	standard := parse(t, withInbound("")).Inbound.Keywords
	if diff := cmp.Diff(standard, got.Keywords); diff != "" {
		t.Errorf("the guide does not show the standard keywords: %s", diff)
	}
}
