package ledger

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"dispatcher/admission"
	"dispatcher/config/tier"
	"dispatcher/ledger/ledgertest"
)

// Guarantee 3 does not depend on the arithmetic of a process. Here both the arithmetic and its
// check are broken on purpose: the constraint of the table fails, and nothing is stored.
func TestTheDatabaseRefusesWhateverAProcessComputes(t *testing.T) {
	t.Parallel()
	tier.OneWindow(t, time.Hour)
	for name, sabotage := range map[string]struct {
		spoil      func(*Seen)
		constraint string
	}{
		"channel": {func(s *Seen) {
			s.Channels[0].Gate.Counters[0].Granted = 4
		}, "limits_granted"},
		"tenant": {func(s *Seen) {
			s.Scoped[0].Counters[0].Granted = 3
		}, "limits_granted"},
		"money": {func(s *Seen) {
			s.Scoped[0].Counters[1].Granted = 1001
		}, "limits_granted"},
		"below nothing": {func(s *Seen) {
			s.Channels[0].Gate.Counters[0].Granted = -1
		}, "limits_granted"},
		"maximum raised": {func(s *Seen) {
			c := &s.Channels[0].Gate.Counters[0]
			c.Max, c.Granted = 5, 4
		}, "limits_max"},
		"active": {func(s *Seen) {
			s.Channels[0].Gate.Active.Count = 3
		}, "channels_active"},
		"window left full": {func(s *Seen) {
			leave(&s.Channels[0].Gate.Counters[0], 4)
		}, "limits_granted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := sabotaged(t)
			messages := []Message{{ID: "m", State: Sending, ExpiresAt: time.Now().Add(time.Hour)}}
			tx, err := l.Claims.Lock(t.Context(), Claim{
				Messages: messages, Channels: []string{"a"}, Scopes: []ScopeRef{
					{Scope: admission.Scope{Tenant: "shop"}},
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer tx.Rollback()
			for i := range tx.seen.Scoped[0].Counters {
				tx.seen.Scoped[0].Counters[i].Roll(tx.seen.Now, time.UTC)
			}
			tx.seen.Channels[0].Gate.Roll(tx.seen.Now, time.UTC)
			sabotage.spoil(&tx.seen)
			tx.decisions.Each = []Decision{{State: Sending, Attempt: Attempt{
				Number: 1, Channel: "a", Reason: ByFirstChoice, Segments: 1, Currency: "GBP",
			}}}
			var tag commitTag
			err = tx.write(t.Context(), &tag)
			var pg *pgconn.PgError
			if !errors.As(err, &pg) || pg.ConstraintName != sabotage.constraint {
				t.Errorf("answered with %q, %v; want a violation of %s", tag, err,
					sabotage.constraint)
			}
			tx.Rollback()
			var left string
			err = l.reports.QueryRow(t.Context(), `
				select concat_ws(' ', (select count(*) from dispatcher.messages), (select count(*)
				from dispatcher.all_attempts),
				  (select sum(granted) from dispatcher.limits), (select sum(active)
				  from audit.active))`).Scan(&left)
			if err != nil || left != "0 0 0 0" {
				t.Errorf("messages, attempts, granted and active are %s, %v", left, err)
			}
		})
	}
}

func leave(c *admission.Counter, granted int64) {
	c.Start, c.Granted = c.Start.Add(time.Hour), granted
}

// sabotaged is a ledger with limits of 3 messages and 2 at once on channel a, and of 2 messages and
// 1000 micros for tenant shop.
func sabotaged(t *testing.T) *Ledger {
	t.Helper()
	l, err := Connect(t.Context(), Config{
		URL: ledgertest.URL(t), Region: "test",
		Host: strings.ReplaceAll(t.Name(), "/", "-"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	if err := l.Instances.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	shop := admission.Scope{Tenant: "shop"}
	_, err = l.Routing.Apply(t.Context(), NewRouting{
		Document: "routes: []",
		Channels: []ChannelSpec{
			{Name: "a", ActiveMax: 2, Limits: []admission.Limit{{Window: admission.Hour, Max: 3}}},
		},
		Limits: []admission.Limit{
			{Scope: shop, Window: admission.Hour, Max: 2}, {
				Scope: shop, Window: admission.Hour,
				Max: 1000, Unit: admission.Money, Currency: "GBP",
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}
