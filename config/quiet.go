package config

import "time"

// Quiet says when a route sends nothing.
type Quiet struct {
	Hours Hours
	// Zone is the time zone of Hours: that of the document, or one that the route names. With
	// ByRecipient it applies to numbers without a known country.
	Zone *time.Location
	// ByRecipient uses the zone of the recipient's country. If that has several, it is quiet while it
	// is quiet in any of them.
	ByRecipient bool
	// Next leaves messages that come in quiet hours to the routes after this one. Otherwise they wait
	// until the hours end.
	Next bool
}

// Words of quiet hours.
const (
	zoneDocument  = "document"
	zoneRecipient = "recipient"
	quietHold     = "hold"
	quietNext     = "next"
)

var quietThens = []string{quietHold, quietNext}

// At reports whether it is quiet at a moment for numbers of a country; empty means unknown.
func (q *Quiet) At(at time.Time, country string) bool {
	return q.zone(at, country) != nil
}

// zone is a zone in which it is quiet at a moment; nil when there is none.
func (q *Quiet) zone(at time.Time, country string) *time.Location {
	if q.ByRecipient {
		if zones := zonesOf(country); len(zones) > 0 {
			for _, zone := range zones {
				if q.Hours.Contains(at.In(zone)) {
					return zone
				}
			}
			return nil
		}
	}
	if q.Hours.Contains(at.In(q.Zone)) {
		return q.Zone
	}
	return nil
}

// Ends is when to check again whether it is still quiet.
func (q *Quiet) Ends(at time.Time, country string) time.Time {
	last := at.AddDate(0, 0, 7)
	for at.Before(last) {
		zone := q.zone(at, country)
		if zone == nil {
			break
		}
		at = q.Hours.end(at.In(zone))
	}
	return at.UTC()
}

// readQuietHours reads the quiet hours of a route; nil when it has none.
func readQuietHours(f fields, document *time.Location) *Quiet {
	v, ok := f.get("quiet")
	if !ok {
		return nil
	}
	q := &Quiet{Zone: document}
	keys, ok := v.fields(quietPart)
	if !ok {
		return q
	}
	if hours, ok := keys.need("hours", `hours: "22:00-08:00"`); ok {
		if q.Hours = readHours(hours); q.Hours.always() {
			hours.fail("never ends, so the route would send nothing; disable its channels or " +
				"pause it instead")
		}
	}
	if zone, ok := keys.get("zone"); ok {
		switch s, _ := zone.text(); s {
		case zoneDocument:
		case zoneRecipient:
			q.ByRecipient = true
		default:
			q.Zone = zone.timezone()
		}
	}
	if then, ok := keys.get("then"); ok {
		word, _ := then.word("then", quietThens)
		q.Next = word == quietNext
	}
	return q
}

func pathsOfQuiet(p paths, q *Quiet) {
	p.below("hours").setWords(q.Hours.words())
	zone := q.Zone.String()
	if q.ByRecipient {
		zone = zoneRecipient + ", else " + zone
	}
	p.below("zone").set(zone)
	then := quietHold
	if q.Next {
		then = quietNext
	}
	p.below("then").setDefault(then, quietHold)
}

var quietPart = &Part{"quiet", []Key{
	{"hours", "", required, "when nothing is sent: [hours](#hours), such as `\"22:00-08:00\"`"},
	{"zone", "", "`document`", "whose clock counts: `document` is `timezone`, `recipient` that of " +
		"the number's country, and a name such as `America/Chicago` is that zone. A country with " +
		"several zones is quiet while it is quiet in one of them; for a number without a " +
		"known country `timezone` counts"},
	{"then", "", "`hold`", "what becomes of a message that comes in these hours: `hold` keeps it " +
		"until they end, `next` leaves it to the routes behind"},
}}
