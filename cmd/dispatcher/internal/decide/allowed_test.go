package decide

import (
	"testing"

	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/config"
	"dispatcher/ledger"
)

// TestAMessageToACountryThatIsNotAllowedIsRejectedBeforeAnyDraw: it has no plan and no dead letter.
func TestAMessageToACountryThatIsNotAllowedIsRejectedBeforeAnyDraw(t *testing.T) {
	t.Parallel()
	shop := []config.TenantCountries{{Tenant: "shop", Countries: []string{"us"}}}
	for name, c := range map[string]struct {
		allowed config.Allowed
		route   []string
		country string
		sent    bool
	}{
		"no list":                   {country: "gb", sent: true},
		"listed":                    {config.Allowed{Countries: []string{"fr", "gb"}}, nil, "gb", true},
		"not listed":                {config.Allowed{Countries: []string{"fr"}}, nil, "gb", false},
		"no country is known":       {config.Allowed{Countries: []string{"fr"}}, nil, "", false},
		"the tenant's own list":     {config.Allowed{Countries: []string{"gb"}, Tenants: shop}, nil, "us", true},
		"not on the tenant's":       {config.Allowed{Countries: []string{"gb"}, Tenants: shop}, nil, "gb", false},
		"listed by the route":       {config.Allowed{}, []string{"gb"}, "gb", true},
		"not listed by the route":   {config.Allowed{}, []string{"fr"}, "gb", false},
		"the route narrows further": {config.Allowed{Countries: []string{"gb"}}, []string{"fr"}, "gb", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := testPlanner(t)
			p.routing.Allowed, p.routing.Routes[0].AllowedCountries = c.allowed, c.route
			p.routing.Country = func(string) string { return c.country }
			job := testJob(envelope.Message{Tenant: "shop"})
			if c.allowed.Tenants == nil {
				job.Message.Tenant = "bank"
			}
			got := p.plan(&job)
			if c.sent {
				if got.Row.State != ledger.Sending || got.Row.Plan.Size == 0 {
					t.Errorf("got %+v, want State %v and Plan.Size other than %v", got.Row, ledger.Sending, 0)
				}
				return
			}
			if got.Row.State != ledger.Rejected || got.Row.Reason != "country_not_allowed" ||
				got.letter != nil || got.Wanted() || got.Row.Plan != (ledger.Plan{}) {
				t.Errorf("got %+v", got.Row)
			}
		})
	}
}

// TestAWaitingMessageIsRejectedOnceItsCountryIsNotAllowed: unless a part was sent.
func TestAWaitingMessageIsRejectedOnceItsCountryIsNotAllowed(t *testing.T) {
	t.Parallel()
	p, job := testPlanner(t), testJob(envelope.Message{})
	row := p.plan(&job).Row
	row.Seq, row.State = 5, ledger.Waiting
	row.Envelope = []byte(`{"id":"order-1","to":"+447700900123","text":"Your code is 123456"}`)
	p.routing.Routes[0].AllowedCountries = []string{"fr"}
	p.routing.Country = func(string) string { return "gb" }
	task := p.planDue(row)
	w := newFixture(t)
	if d := w.decide(&task); d.State != ledger.Rejected || d.Reason != "country_not_allowed" {
		t.Errorf("got %+v, want State %v and Reason %v", d, ledger.Rejected, "country_not_allowed")
	}
	row.PartsLeft, row.Attempts = []int{1}, 1
	if task := p.planDue(row); task.problem != "" {
		t.Errorf("message with a sent part: got %s", task.problem)
	}
}
