package pipeline

import (
	"strings"
	"testing"
	"time"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/config"
)

// TestACountryThatIsNotAllowedReachesNoProviderAndIsReported: nothing is billed, the event has the
// reason, and the audit verifies the day.
func TestACountryThatIsNotAllowedReachesNoProviderAndIsReported(t *testing.T) {
	t.Parallel()
	a := &archive{versions: map[int64]*decide.Routing{}}
	p := setup(t, func(r *decide.Routing) {
		r.Country = func(number string) string {
			return map[bool]string{true: "gb", false: "fr"}[strings.HasPrefix(number, "+44")]
		}
		r.Allowed = config.Allowed{Countries: []string{"gb"}}
	})
	first := *p.routing
	a.keep(&first)
	const abroad = "+33612345678"
	soon := time.Now().Add(200 * time.Millisecond)
	p.handle(t, []decide.Job{
		jobTo("abroad", "bulk", "", abroad, time.Time{}),
		jobTo("later", "bulk", "", abroad, soon),
		jobTo("home", "bulk", "", "+447700900123", soon),
	})
	p.eventually(t, stateAndReason,
		map[string]int64{"rejected country_not_allowed": 2, "accepted": 1})
	p.stop()
	if ids := p.submitted(); len(ids) != 1 || !ids["home"] {
		t.Errorf("submitted %v", ids)
	}
	if records, found := p.audited(t, a); records != 1 || len(found) > 0 {
		t.Errorf("%d records: %+v", records, found)
	}
	events := p.counts(t,
		`select convert_from(v, 'UTF8')::json ->> 'reason', count(*)
		from dispatcher.outbox, unnest("values") v
		where convert_from(v, 'UTF8')::json ->> 'state' = 'rejected' group by 1`)
	if events["country_not_allowed"] != 2 {
		t.Errorf("status events of rejected messages: %v", events)
	}
	attempts := p.counts(t, `select 'of rejected', count(*) from audit.attempts a
		join audit.messages m on m.id = a.message_id where m.state = 'rejected'`)
	if attempts["of rejected"] != 0 {
		t.Errorf("%v attempts", attempts)
	}
}
