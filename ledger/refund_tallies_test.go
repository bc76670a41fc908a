package ledger_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"dispatcher/admission"
	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/provider"
)

// price is what a message costs in these tests, in micros.
const price = 28000

// party is a claimer: its policy, process and lane.
type party struct {
	policy admission.Policy
	worker admission.Worker
	lane   string
}

// giveAs gives every message to channel a, counts it as a process does, and notes for each, by its
// number, the refunds. OTPs have a reserve in every limit.
func giveAs(p *party, back map[int64][]ledger.Refund) decide {
	return func(seen *ledger.Seen) (ledger.Decisions, error) {
		m := &admission.Moment{Now: seen.Now, Earliest: seen.Now, Zone: time.UTC, Worker: p.worker}
		var accounts []admission.Account
		var refunds []ledger.Refund
		open := func(ref ledger.ScopeRef, counters []admission.Counter) {
			for i := range counters {
				c := &counters[i]
				c.Reserve = []admission.Reserve{{Lane: "otp", Percent: 10}}
				c.Roll(seen.Now, time.UTC)
				a := admission.Account{Counter: c, Rate: 1, Policy: p.policy}
				if p.policy != nil {
					a.Split = p.policy.Split(&admission.PolicyInput{
						Limit: c.Max, Total: 1, Region: p.worker.Region, Workers: map[string]int64{
							p.worker.Region: 1,
						},
						History: map[string]int64{p.worker.Region: 1, admission.Anywhere: 1},
					})
				}
				accounts = append(accounts, a)
				refunds = append(refunds, ledger.Refund{
					ScopeRef: ref, Window: c.Window,
					Micros: price,
				})
			}
		}
		open(ledger.ScopeRef{Channel: "a"}, seen.Channels[0].Gate.Counters)
		for i := range seen.Scoped {
			open(seen.Scoped[i].ScopeRef, seen.Scoped[i].Counters)
		}
		d := ledger.Decisions{Each: make([]ledger.Decision, len(seen.Messages))}
		for i := range seen.Messages {
			need := admission.Need{Lane: p.lane, Segments: 1, Micros: price}
			release, e := admission.Fit(m, accounts, &need)
			if e != nil {
				return d, fmt.Errorf("no room in %+v", e.Counter)
			}
			own := append([]ledger.Refund(nil), refunds...)
			for k := range accounts {
				own[k].Tallies = accounts[k].Tallies(m, &need)
			}
			back[seen.Messages[i].Seq] = own
			admission.Take(m, accounts, &need, release)
			seen.Channels[0].Gate.Active.Count++
			d.Each[i] = ledger.Decision{
				State: ledger.Sending, Plan: seen.Messages[i].Plan,
				Attempt: ledger.Attempt{
					Number: 1, Channel: "a", Reason: ledger.ByFirstChoice, Segments: 1,
					PriceMicros: price, Currency: "GBP",
				},
			}
		}
		return d, nil
	}
}

// overAll are the budgets of tenant shop over all channels.
var overAll = ledger.ScopeRef{Scope: tenant("shop")}

// claimAs claims messages of tenant shop, and adds their refunds to back.
func claimAs(
	t testing.TB, l *ledger.Ledger, p *party, n int, back map[int64][]ledger.Refund,
) []ledger.Message {
	t.Helper()
	_, sent, err := claimScoped(t, l, of("shop", n), giveAs(p, back), overAll)
	if err != nil {
		t.Fatal(err)
	}
	return sent
}

// rejected settles messages as rejected, with a refund of the whole price.
func rejected(sent []ledger.Message, back map[int64][]ledger.Refund) []ledger.Settlement {
	settlements := accepted(sent)
	for i := range settlements {
		s := &settlements[i]
		s.Outcome, s.State, s.Segments, s.PriceMicros, s.Refunds = provider.Rejected,
			ledger.Rejected, 0, 0, back[s.Seq]
	}
	return settlements
}

// spending is what a limit counts.
type spending struct {
	Granted int64
	Taken   map[string]int64
}

// spendings are the spendings of all limits in money, by channel.
func spendings(t testing.TB, db *pgx.Conn) map[string]spending {
	t.Helper()
	rows, err := db.Query(t.Context(), `
		select channel, granted, coalesce(taken, '{}')::text from dispatcher.limits
		where unit = 'money'`)
	if err != nil {
		t.Fatal(err)
	}
	out, name, taken, s := map[string]spending{}, "", "", spending{}
	if _, err := pgx.ForEachRow(rows, []any{&name, &s.Granted, &taken}, func() error {
		s.Taken = nil
		err := json.Unmarshal([]byte(taken), &s.Taken)
		out[name] = s
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// shared opens a ledger with a budget on channel a and one of tenant shop over all channels.
func shared(t testing.TB) (l *ledger.Ledger, db *pgx.Conn, url string) {
	t.Helper()
	r := lend(t)
	l, db, url = r.l, r.db, r.url
	applyLimits(t, l, []admission.Limit{budget(admission.Scope{}, 1e9)},
		budget(tenant("shop"), 1e9))
	return l, db, url
}

// TestWhatComesBackIsTakenFromItsTallies: those of the lane and of the pool in which the claim
// counted it, under each policy.
func TestWhatComesBackIsTakenFromItsTallies(t *testing.T) {
	t.Parallel()
	for policy, pool := range map[admission.Policy]string{
		nil: "", admission.Exact{}: "anywhere", admission.Even{}: "worker:7", admission.Curve{
			Factor: 1,
		}: "worker:7", admission.CounterPolicy{}: "region:eu",
	} {
		for lane, kept := range map[string]string{"otp": "lane:otp", "bulk": ""} {
			t.Run(fmt.Sprint(policy, " ", lane), func(t *testing.T) {
				l, db, _ := shared(t)
				p := &party{policy, admission.Worker{ID: 7, Region: "eu"}, lane}
				back := map[int64][]ledger.Refund{}
				sent := claimAs(t, l, p, 3, back)
				settleAll(t, l, rejected(sent[:2], back))
				want := map[string]int64{pool: price, kept: price}
				delete(want, "")
				for channel, s := range spendings(t, db) {
					if diff := cmp.Diff(spending{price, want}, s); diff != "" {
						t.Errorf("policy %v, lane %s, channel %q: %s", policy, lane, channel, diff)
					}
				}
			})
		}
	}
}

// TestTalliesGetBackNoMoreThanTheyHold, nothing from another window, and nothing for a tally that
// does not exist any more.
func TestTalliesGetBackNoMoreThanTheyHold(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		sql  string // on the limit of channel a
		want spending
	}{
		"less than comes back": {
			`taken = '{"lane:otp": 5000, "worker:7": 60000, "worker:8": 9}'`, spending{
				price, map[string]int64{"lane:otp": 0, "worker:7": 60000 - 2*price, "worker:8": 9},
			},
		},
		"the next window": {
			`window_start = window_start + interval '1 day'`,
			spending{3 * price, map[string]int64{"lane:otp": 3 * price, "worker:7": 3 * price}},
		},
		"a limit that is newer": {`since = now() + interval '1 hour'`, spending{
			3 * price, map[string]int64{"lane:otp": 3 * price, "worker:7": 3 * price},
		}},
		"one tally alone": {`taken = '{"worker:7": 84000}'`, spending{
			price, map[string]int64{"worker:7": price},
		}},
		"nothing counted apart":        {`taken = null`, spending{price, map[string]int64{}}},
		"nothing counted apart as yet": {`taken = '{}'`, spending{price, map[string]int64{}}},
		"tallies of others": {`taken = '{"anywhere": 84000}'`, spending{
			price, map[string]int64{"anywhere": 84000},
		}},
		"a limit that was lowered then": {`configured_max = 30000, max = 84000`, spending{
			price, map[string]int64{"lane:otp": price, "worker:7": price},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			l, db, _ := shared(t)
			back := map[int64][]ledger.Refund{}
			sent := claimAs(t, l, &party{
				admission.Even{},
				admission.Worker{ID: 7, Region: "eu"},
				"otp",
			}, 3, back)
			execute(t, db, `update dispatcher.limits set `+tc.sql+` where channel = 'a'`)
			for range 2 { // to settle again has no effect
				settleAll(t, l, rejected(sent[:2], back))
			}
			if diff := cmp.Diff(tc.want, spendings(t, db)["a"]); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		})
	}
}

// TestTalliesAddUpWhilePartiesClaimAndGiveBackAtOnce: granted is what was spent, and each unit of
// it is counted in one pool.
func TestTalliesAddUpWhilePartiesClaimAndGiveBackAtOnce(t *testing.T) {
	t.Parallel()
	_, db, url := shared(t)
	policies := []admission.Policy{
		admission.Even{},
		admission.CounterPolicy{},
		admission.Exact{},
		admission.Curve{Factor: 1},
	}
	var parties sync.WaitGroup
	const rounds, each, taken = 8, 6, 2 // messages of a claim, and how many of them somebody takes
	for i, policy := range policies {
		l := connect(t, ledger.Config{URL: url})
		parties.Go(func() {
			p := &party{policy, admission.Worker{ID: int64(i), Region: "eu"}, []string{
				"otp", "bulk",
			}[i%2]}
			for round := range rounds {
				back := map[int64][]ledger.Refund{}
				messages := batch(fmt.Sprintf("p%d-r%d", i, round), each)
				_, sent, err := claimScoped(t, l, messages, giveAs(p, back), overAll)
				if err == nil {
					err = l.Settlements.Settle(t.Context(), append(accepted(sent[:taken]),
						rejected(sent[taken:], back)...))
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	parties.Wait()
	const spent = rounds * taken * price
	want := spending{int64(len(policies)) * spent, map[string]int64{
		"lane:otp": 2 * spent, "worker:0": spent, "region:eu": spent, "anywhere": spent,
		"worker:3": spent,
	}}
	for channel, s := range spendings(t, db) {
		if diff := cmp.Diff(want, s); diff != "" {
			t.Errorf("channel %q: %s", channel, diff)
		}
	}
}

// TestCountsAndTalliesAreWhatWasTakenLessWhatCameBack claims and settles at random, and computes
// the expected values.
func TestCountsAndTalliesAreWhatWasTakenLessWhatCameBack(t *testing.T) {
	t.Parallel()
	l, db, _ := shared(t)
	tier.Check(t, func(rt *rapid.T) {
		execute(t, db, `update dispatcher.limits set granted = 0, taken = null`)
		model := map[string]spending{"a": {Taken: map[string]int64{}}, "": {
			Taken: map[string]int64{},
		}}
		count := func(r *ledger.Refund, units int64) {
			s := model[r.Channel]
			s.Granted = max(s.Granted+units, 0)
			for _, tally := range []string{r.Tallies.Lane, r.Tallies.Pool} {
				if tally != "" {
					s.Taken[tally] = max(s.Taken[tally]+units, 0)
				}
			}
			model[r.Channel] = s
		}
		var open, done []ledger.Settlement
		for range rapid.IntRange(1, 8).Draw(rt, "steps") {
			if rapid.Bool().Draw(rt, "claims") {
				p := &party{
					rapid.SampledFrom([]admission.Policy{nil, admission.Even{}, admission.Curve{
						Factor: 1,
					}, admission.CounterPolicy{}, admission.Exact{}}).Draw(rt, "policy"),
					admission.Worker{
						ID:     rapid.Int64Range(1, 2).Draw(rt, "worker"),
						Region: rapid.SampledFrom([]string{"eu", "us"}).Draw(rt, "region"),
					},
					rapid.SampledFrom([]string{"otp", "bulk"}).Draw(rt, "lane"),
				}
				back := map[int64][]ledger.Refund{}
				settlements := rejected(claimAs(t, l, p, rapid.IntRange(1, 4).Draw(rt, "messages"),
					back), back)
				for i := range settlements {
					for k := range settlements[i].Refunds {
						count(&settlements[i].Refunds[k], price)
					}
				}
				open = append(open, settlements...)
			} else {
				n := rapid.IntRange(0, len(open)).Draw(rt, "settled")
				again := done[rapid.IntRange(0, len(done)).Draw(rt, "again"):]
				for i := range open[:n] {
					micros := rapid.Int64Range(0, price+10).Draw(rt, "comes back")
					for k := range open[i].Refunds {
						open[i].Refunds[k].Micros = micros
					}
				}
				settleAll(t, l, append(append([]ledger.Settlement(nil), open[:n]...), again...))
				for i := range open[:n] {
					for k := range open[i].Refunds {
						count(&open[i].Refunds[k], -open[i].Refunds[k].Micros)
					}
				}
				done, open = append(done, open[:n]...), open[n:]
			}
			if diff := cmp.Diff(model, spendings(t, db), cmpopts.EquateEmpty()); diff != "" {
				rt.Fatal(diff)
			}
		}
	})
}
