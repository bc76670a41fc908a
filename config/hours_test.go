package config_test

import (
	"slices"
	"testing"
	"time"

	"dispatcher/config"
)

// moment returns a time in the week that begins on Monday, 23 November 2026.
func moment(t *testing.T, zone *time.Location, text string) time.Time {
	t.Helper()
	at, err := time.ParseInLocation("2006-01-02 15:04", text, zone)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestHoursContainWhatTheySay(t *testing.T) {
	t.Parallel()
	for hours, at := range map[string]map[string]bool{
		`"mon-fri 08:00-18:00"`: {
			"2026-11-23 07:59": false, "2026-11-23 08:00": true, "2026-11-27 17:59": true,
			"2026-11-27 18:00": false, "2026-11-28 12:00": false,
		},
		`"22:00-08:00"`: {
			"2026-11-23 21:59": false, "2026-11-23 22:00": true, "2026-11-24 07:59": true,
			"2026-11-24 08:00": false,
		},
		`"fri 22:00-08:00"`: { // the night after Friday
			"2026-11-27 07:00": false, "2026-11-27 23:00": true, "2026-11-28 07:00": true,
			"2026-11-28 23:00": false,
		},
		`["sat-mon 00:00-24:00", "wed,thu 12:00-13:00"]`: {
			"2026-11-28 00:00": true, "2026-11-29 23:59": true, "2026-11-23 12:00": true,
			"2026-11-24 12:30": false, "2026-11-25 12:30": true, "2026-11-26 13:00": false,
		},
	} {
		read := readRoute(t, "weights: {a: 1}, match: {hours: "+hours+"}").Match.Hours
		for text, want := range at {
			if got := read.Contains(moment(t, time.UTC, text)); got != want {
				t.Errorf("%s at %s: %v", hours, text, got)
			}
		}
	}
}

// TestHoursReadAsTheyAreShown: hours in the format of a diff are valid in a document.
func TestHoursReadAsTheyAreShown(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"22:00-08:00", "mon-fri 08:00-18:30", "mon,wed-fri,sun 00:00-24:00", "sat 09:05-13:00",
	} {
		span := readRoute(t, "weights: {a: 1}, match: {hours: \""+text+"\"}").Match.Hours[0]
		if span.String() != text {
			t.Errorf("%s is shown as %s", text, span.String())
		}
	}
}

// quietAt returns the quiet hours of a route in a document for Europe/London.
func quietAt(t *testing.T, keys string) *config.Quiet {
	t.Helper()
	return parse(t, "timezone: Europe/London\n"+three+
		"routes: [{name: r, weights: {a: 1}, quiet: {"+keys+"}}]").Routes[0].Quiet
}

// TestQuietHoursEndByTheRightClock covers both clock changes, and countries with several zones.
func TestQuietHoursEndByTheRightClock(t *testing.T) {
	t.Parallel()
	night := `hours: "22:00-08:00"`
	for name, c := range map[string]struct{ keys, country, at, ends string }{
		"not quiet":                {night, "gb", "2026-11-23 21:00", "2026-11-23 21:00"},
		"by the document":          {night, "jp", "2026-11-23 23:30", "2026-11-24 08:00"},
		"by a zone":                {night + ", zone: America/Chicago", "gb", "2026-11-23 05:00", "2026-11-23 14:00"},
		"by the recipient":         {night + ", zone: recipient", "jp", "2026-11-23 14:00", "2026-11-23 23:00"},
		"recipient unknown":        {night + ", zone: recipient", "", "2026-11-23 23:30", "2026-11-24 08:00"},
		"recipient awake":          {night + ", zone: recipient", "jp", "2026-11-23 23:30", "2026-11-23 23:30"},
		"east and west of Canada":  {night + ", zone: recipient", "ca", "2026-11-23 12:00", "2026-11-23 16:00"},
		"the clocks go forward":    {`hours: "22:00-02:30"`, "gb", "2026-03-28 23:00", "2026-03-29 02:30"},
		"an hour that is left out": {`hours: "22:00-01:30"`, "gb", "2026-03-28 23:00", "2026-03-29 02:00"},
		"the clocks go back":       {night, "gb", "2026-10-24 23:00", "2026-10-25 08:00"},
		"over the weekend": {
			`hours: ["fri 18:00-24:00", "sat,sun 00:00-24:00", "mon 00:00-09:00"]`, "gb",
			"2026-11-27 20:00", "2026-11-30 09:00",
		},
	} {
		q := quietAt(t, c.keys)
		london, err := time.LoadLocation("Europe/London")
		if err != nil {
			t.Fatal(err)
		}
		at := moment(t, london, c.at)
		if got := q.Ends(at, c.country).In(london).Format("2006-01-02 15:04"); got != c.ends {
			t.Errorf("%s: ends at %s, want %s", name, got, c.ends)
		}
		if q.At(at, c.country) != (c.at != c.ends) || q.At(q.Ends(at, c.country), c.country) {
			t.Errorf("%s: it is not quiet exactly until its end", name)
		}
	}
}

// TestAGroupOfCountriesStandsForItsMembers in every list of countries.
func TestAGroupOfCountriesStandsForItsMembers(t *testing.T) {
	t.Parallel()
	doc := parse(t, `country_groups: {dach: [DE, at, CH, DE], far: nz}
channels: {a: {provider: sandbox, senders: {rules: [{country: far, allow: [short_code]}]}}}
routes: [{name: r, match: {countries: [GB, dach, AT]}, weights: {a: 1}}]
blocked: {country: dach}`)
	want := []string{"gb", "at", "ch", "de"}
	if got := doc.Routes[0].Match.Countries; !slices.Equal(got, want) {
		t.Errorf("the route takes %v, want %v", got, want)
	}
	if got := doc.Blocked.Countries; !slices.Equal(got, want[1:]) {
		t.Errorf("blocked are %v", got)
	}
	if got := doc.Channels[0].Senders.Rules[0].Countries; !slices.Equal(got, []string{"nz"}) {
		t.Errorf("the rule is for %v", got)
	}
}

// TestEveryCountryHasAZone for its quiet hours.
func TestEveryCountryHasAZone(t *testing.T) {
	t.Parallel()
	q := &config.Quiet{
		Hours: config.Hours{{Days: 127, From: 0, To: 24 * 60}}, ByRecipient: true, Zone: time.UTC,
	}
	for _, country := range config.Countries() {
		if len(config.ZonesOf(country)) == 0 || !q.At(time.Now(), country) {
			t.Errorf("%s has no time zone", country)
		}
	}
}
