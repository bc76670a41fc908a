package audit

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/config"
	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/provider"
	"dispatcher/selector"
	"dispatcher/selector/score"
)

// rewrite changes the ranking of an attempt, counted from 0; -1 is the ranking of the wait.
func (l *life) rewrite(t testing.TB, attempt int, change func(*decide.Ranking)) {
	t.Helper()
	raw := &l.record.Seen
	if attempt >= 0 {
		raw = &l.record.Attempts[attempt].Ranking
	}
	r, err := decide.ReadRanking(*raw)
	if err != nil || r == nil {
		t.Fatal(r, err)
	}
	change(r)
	*raw = decide.AppendRanking(nil, r)
}

// firstCandidate changes the first candidate of the first attempt's ranking.
func firstCandidate(change func(*decide.Ranked)) func(testing.TB, *life) {
	return func(t testing.TB, l *life) {
		l.rewrite(t, 0, func(r *decide.Ranking) { change(&r.Candidates[0]) })
	}
}

// ranked changes the first attempt's ranking.
func ranked(change func(*decide.Ranking)) func(testing.TB, *life) {
	return func(t testing.TB, l *life) { l.rewrite(t, 0, change) }
}

// forged changes only the record.
func forged(change func(*ledger.Record)) func(testing.TB, *life) {
	return func(_ testing.TB, l *life) { change(&l.record) }
}

// recutWord replaces cut_otherwise by another reason.
func recutWord(word string) func(*decide.Ranking) {
	return func(r *decide.Ranking) {
		for i := range r.Candidates {
			if r.Candidates[i].Reason == decide.CutOtherwise {
				r.Candidates[i].Reason = word
			}
		}
	}
}

var otherChannel = map[string]string{"a": "b", "b": "c", "c": "a"}

// foundByPayload are the forgeries of TestForgedRecordsAreFound that cannot be found without
// payload.
var foundByPayload = []string{
	"envelope", "alphabet", "a score", "over the price cap", "cut as before", "cut otherwise",
	"sent though recut",
}

// TestForgedRecordsAreFound makes one change to a record at a time; each is reported under its
// kind. All except foundByPayload are found without payload, too.
func TestForgedRecordsAreFound(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		life  func(testing.TB) *life
		what  string
		forge func(testing.TB, *life)
	}{
		"draw": {fallbackLife, whatDraw, forged(func(r *ledger.Record) {
			r.Message.Plan.Draw ^= 1
		})},
		"sticky draw": {stickyLife, whatDraw, forged(func(r *ledger.Record) {
			r.Message.Plan.Draw ^= 1
		})},
		"sticky draw of another number": {stickyLife, whatDraw, forged(func(r *ledger.Record) {
			r.Message.NumberHMAC = ^r.Message.NumberHMAC
		})},
		"size": {fallbackLife, whatSize, forged(func(r *ledger.Record) { r.Message.Plan.Size++ })},
		"size without draw": {turnLife, whatSize, forged(func(r *ledger.Record) {
			r.Message.Plan.Size = 100
		})},
		"first choice": {fallbackLife, whatFirstChoice, forged(func(r *ledger.Record) {
			r.Message.Plan.FirstChoice = otherChannel[r.Message.Plan.FirstChoice]
		})},
		"route": {fallbackLife, whatRoute, forged(func(r *ledger.Record) {
			r.Message.Plan.Route = "cheap"
		})},
		"no route": {fallbackLife, whatRoute, forged(func(r *ledger.Record) {
			r.Message.Plan.Route = ""
		})},
		"segments": {fallbackLife, whatSegments, forged(func(r *ledger.Record) {
			r.Message.Plan.Segments++
		})},
		"alphabet": {fallbackLife, whatAlphabet, forged(func(r *ledger.Record) {
			r.Message.Plan.Alphabet = "ucs2"
		})},
		"key": {fallbackLife, whatDrawKey, forged(func(r *ledger.Record) {
			r.Message.Plan.KeyID = "00000000"
		})},
		"envelope": {fallbackLife, whatEnvelope, forged(func(r *ledger.Record) {
			r.Message.Envelope = []byte("{")
		})},
		"id": {fallbackLife, whatDraw, forged(func(r *ledger.Record) { r.Message.ID = "m-2" })},
		"channel": {fallbackLife, whatChannel, forged(func(r *ledger.Record) {
			r.Attempts[0].Channel = otherChannel[r.Attempts[0].Channel]
		})},
		"no version": {fallbackLife, whatVersion, forged(func(r *ledger.Record) {
			r.Message.Plan.Version = 999
		})},
		"version 0": {fallbackLife, whatVersion, forged(func(r *ledger.Record) {
			r.Message.Plan.Version = 0
		})},
		"ranked as 9": {fallbackLife, whatVersion, ranked(func(r *decide.Ranking) {
			r.Version = 9
		})},

		"no first choice": {fallbackLife, whatReason, forged(func(r *ledger.Record) {
			r.Attempts[0].Reason = ledger.ByFirstChoice
		})},
		"retry of a stranger": {fallbackLife, whatReason, forged(func(r *ledger.Record) {
			r.Attempts[1].Reason = ledger.ByRetry
		})},
		"resend after an answer": {fallbackLife, whatReason, forged(func(r *ledger.Record) {
			r.Attempts[1].Reason = ledger.ByResend
		})},
		"resend called fallback": {resentLife, whatReason, forged(func(r *ledger.Record) {
			r.Attempts[1].Reason = ledger.ByFallback
		})},
		"resend without flag": {resentLife, whatReason, forged(func(r *ledger.Record) {
			r.Message.PossibleDuplicate = false
		})},
		"resend on a strict lane": {resentLife, whatReason, func(_ testing.TB, l *life) {
			l.lane("bulk", decide.Lane{Lane: config.Lane{Name: "bulk"}})
		}},
		"went on too early": {furtherLife, whatTime, forged(func(r *ledger.Record) {
			r.Attempts[1].ClaimedAt = r.Attempts[1].ClaimedAt.Add(-2 * time.Second)
		})},
		"went on though it was delivered": {furtherLife, whatReason, forged(func(r *ledger.Record) {
			r.Attempts[0].Receipt = ledger.Delivered
			r.Attempts[0].ReceiptAt = r.Attempts[0].SettledAt.Add(time.Minute)
		})},
		"went on where the route does not": {furtherLife, whatReason, func(_ testing.TB, l *life) {
			l.live.Routes[0].NoReceipt = nil
			e := l.editions[l.live.Version]
			e.Routing.Routes[0].NoReceipt = nil
		}},
		"went on after a no": {furtherLife, whatReason, forged(func(r *ledger.Record) {
			r.Attempts[0].Outcome, r.Attempts[0].Segments, r.Attempts[0].PriceMicros = "refused", 0, 0
		})},
		"went on without flag": {furtherLife, whatReason, forged(func(r *ledger.Record) {
			r.Message.PossibleDuplicate = false
		})},
		"went on called fallback": {furtherLife, whatReason, forged(func(r *ledger.Record) {
			r.Attempts[1].Reason = ledger.ByFallback
		})},
		"went on to where it was": {furtherLife, whatExclusion, func(t testing.TB, l *life) {
			l.rewrite(t, 1, func(r *decide.Ranking) { r.Candidates[0].Reason = "" })
			l.record.Attempts[1].Channel = l.record.Attempts[0].Channel
		}},
		"retry called fallback": {partLife, whatReason, forged(func(r *ledger.Record) {
			r.Attempts[1].Reason = ledger.ByFallback
		})},
		"sent again after a yes": {fallbackLife, whatOutcome, forged(func(r *ledger.Record) {
			r.Attempts[0].Outcome = "accepted"
		})},
		"sent again without a no": {fallbackLife, whatOutcome, forged(func(r *ledger.Record) {
			r.Attempts[0].Outcome = ""
		})},
		"unknown after a no": {fallbackLife, whatOutcome, forged(func(r *ledger.Record) {
			r.Message.State, r.Attempts[1].Outcome = ledger.Unknown, "refused"
		})},
		"unknown after a yes": {resentLife, whatOutcome, forged(func(r *ledger.Record) {
			r.Message.State = ledger.Unknown
		})},
		"accepted without a yes": {fallbackLife, whatOutcome, forged(func(r *ledger.Record) {
			r.Attempts[1].Outcome = "rejected"
		})},
		"number": {fallbackLife, whatNumber, forged(func(r *ledger.Record) {
			r.Attempts[1].Number = 5
		})},
		"last attempt deleted": {fallbackLife, whatNumber, forged(func(r *ledger.Record) {
			r.Attempts = r.Attempts[:1]
		})},
		"first attempt deleted": {fallbackLife, whatNumber, forged(func(r *ledger.Record) {
			r.Attempts = r.Attempts[1:]
		})},
		"attempts deleted": {fallbackLife, whatNumber, forged(func(r *ledger.Record) {
			r.Attempts = nil
		})},
		"claimed before received": {fallbackLife, whatTime, forged(func(r *ledger.Record) {
			r.Attempts[0].ClaimedAt = noon.Add(-48 * time.Hour)
		})},
		"claimed after deadline": {fallbackLife, whatTime, forged(func(r *ledger.Record) {
			r.Attempts[1].ClaimedAt = noon.Add(4800 * time.Hour)
		})},
		"claimed after its answer": {fallbackLife, whatTime, forged(func(r *ledger.Record) {
			r.Attempts[0].ClaimedAt = noon.Add(30 * time.Minute)
		})},
		"claimed before the last": {fallbackLife, whatTime, forged(func(r *ledger.Record) {
			r.Attempts[1].ClaimedAt = noon.Add(-2 * time.Second)
		})},

		"price": {fallbackLife, whatPrice, forged(func(r *ledger.Record) {
			r.Attempts[1].PriceMicros++
		})},
		"currency": {fallbackLife, whatCurrency, forged(func(r *ledger.Record) {
			r.Attempts[1].Currency = "EUR"
		})},
		"billed too much": {fallbackLife, whatSegments, forged(func(r *ledger.Record) {
			r.Attempts[1].Segments, r.Attempts[1].PriceMicros = 2, 60_000
		})},
		"billed nothing": {fallbackLife, whatSegments, forged(func(r *ledger.Record) {
			r.Attempts[1].Segments, r.Attempts[1].PriceMicros = 0, 0
		})},
		"a refusal billed": {fallbackLife, whatSegments, forged(func(r *ledger.Record) {
			r.Attempts[0].Segments, r.Attempts[0].PriceMicros = 1, 30_000
		})},
		"an unknown not billed": {resentLife, whatSegments, forged(func(r *ledger.Record) {
			r.Attempts[0].Segments, r.Attempts[0].PriceMicros = 0, 0
		})},
		"a part billed twice": {partLife, whatSegments, forged(func(r *ledger.Record) {
			r.Attempts[1].Segments, r.Attempts[1].PriceMicros = 2, 60_000
		})},
		"cut as before": {recutLife, whatExclusion, func(t testing.TB, l *life) {
			l.rewrite(t, -1, recutWord("connecting"))
		}},
		"cut otherwise": {recutLife, whatExclusion, forged(func(r *ledger.Record) {
			r.Message.PartsCut = "otherwise"
		})},
		"sent though recut": {restoredLife, whatExclusion, forged(func(r *ledger.Record) {
			r.Message.PartsCut = "otherwise"
		})},
		"nothing was cut": {waitLife, whatExclusion, func(t testing.TB, l *life) {
			l.rewrite(t, -1, func(r *decide.Ranking) {
				r.Candidates[0].Reason = decide.CutOtherwise
			})
		}},
		"a part left out": {partLife, whatSegments, forged(func(r *ledger.Record) {
			r.Attempts[0].Segments, r.Attempts[0].PriceMicros = 1, 30_000
		})},

		"no ranking": {fallbackLife, whatRanking, forged(func(r *ledger.Record) {
			r.Attempts[1].Ranking = nil
		})},
		"unreadable": {fallbackLife, whatRanking, forged(func(r *ledger.Record) {
			r.Attempts[1].Ranking = []byte("[]")
		})},
		"needless ranking": {waitLife, whatRanking, forged(func(r *ledger.Record) {
			r.Attempts[0].Ranking = chosenFirst(r)
		})},
		"ranked by": {fallbackLife, whatBy, ranked(func(r *decide.Ranking) { r.By = "redraw" })},
		"held": {fallbackLife, whatBy, ranked(func(r *decide.Ranking) {
			r.By = decide.ByWait
		})},
		"load": {fallbackLife, whatOrder, ranked(func(r *decide.Ranking) {
			r.Candidates[1].Active = 90
		})},
		"idle time": {fallbackLife, whatOrder, ranked(func(r *decide.Ranking) {
			r.Candidates[1].LastAssigned = decide.Micros(noon.UnixMicro())
		})},
		"capacity": {fallbackLife, whatCandidates, ranked(func(r *decide.Ranking) {
			r.Candidates[1].Capacity = 9
		})},
		"negative load": {fallbackLife, whatCandidates, ranked(func(r *decide.Ranking) {
			r.Candidates[1].Active = -5
		})},
		"assigned later": {fallbackLife, whatCandidates, ranked(func(r *decide.Ranking) {
			r.Candidates[2].LastAssigned = decide.Micros(noon.Add(time.Hour).UnixMicro())
		})},
		"left out": {fallbackLife, whatCandidates, ranked(func(r *decide.Ranking) {
			r.Candidates = r.Candidates[:2]
		})},
		"called more": {fallbackLife, whatCandidates, ranked(func(r *decide.Ranking) {
			r.Candidates, r.More = r.Candidates[:2], 1
		})},
		"stranger": {fallbackLife, whatCandidates, ranked(func(r *decide.Ranking) {
			r.Candidates[2].Channel = "x"
		})},
		"twice": {fallbackLife, whatCandidates, ranked(func(r *decide.Ranking) {
			r.Candidates[2].Channel = r.Candidates[1].Channel
		})},
		"not the attempts before": {fallbackLife, whatRanking, func(t testing.TB, l *life) {
			l.rewrite(t, 1, func(r *decide.Ranking) { r.Attempts = 2 })
		}},
		"cursor without turns": {fallbackLife, whatRanking, ranked(func(r *decide.Ranking) {
			r.Cursor = "zzz"
		})},
		"place without turns": {fallbackLife, whatRanking, ranked(func(r *decide.Ranking) {
			r.After = new(int)
		})},
		"key without draws": {fallbackLife, whatRanking, ranked(func(r *decide.Ranking) {
			r.KeyID = "5778f985"
		})},
		"scoring without scores": {fallbackLife, whatRanking, ranked(func(r *decide.Ranking) {
			r.Scoring = decide.ByExpression
		})},
		"trouble without scores": {fallbackLife, whatRanking, ranked(func(r *decide.Ranking) {
			r.Trouble = decide.FunctionTimeout
		})},
		"another turn": {turnLife, whatOrder, ranked(func(r *decide.Ranking) { r.After = new(1) })},
		"turn of another channel": {turnLife, whatCursor, ranked(func(r *decide.Ranking) {
			r.Cursor = "b"
		})},
		"no turn": {turnLife, whatCursor, ranked(func(r *decide.Ranking) { r.After = nil })},
		"a turn left out": {turnLife, whatOrder, ranked(func(r *decide.Ranking) {
			r.Candidates, r.More = r.Candidates[1:], r.More+1
		})},

		"invented word": {fallbackLife, whatExclusion, firstCandidate(func(r *decide.Ranked) {
			r.Reason = "i_like_b"
		})},
		"exclusion invented": {fallbackLife, whatExclusion, firstCandidate(func(r *decide.Ranked) {
			r.Reason = decide.SwitchedOff
		})},
		"pinned elsewhere": {fallbackLife, whatExclusion, firstCandidate(func(r *decide.Ranked) {
			r.Reason = decide.PinnedElsewhere
		})},
		"removed though member": {fallbackLife, whatExclusion, firstCandidate(func(r *decide.Ranked) {
			r.Reason = decide.Removed
		})},
		"never tried": {fallbackLife, whatExclusion, firstCandidate(func(r *decide.Ranked) {
			r.Reason = decide.AlreadyTried
		})},
		"no window": {fallbackLife, whatExclusion, firstCandidate(func(r *decide.Ranked) {
			r.Reason = decide.NoSlot
		})},
		"no bound": {fallbackLife, whatExclusion, firstCandidate(func(r *decide.Ranked) {
			r.Reason = decide.NoActive
		})},
		"no limit of a tenant": {fallbackLife, whatExclusion, firstCandidate(func(r *decide.Ranked) {
			r.Reason = decide.TenantLimit
		})},
		"no limit of a prefix": {fallbackLife, whatExclusion, firstCandidate(func(r *decide.Ranked) {
			r.Reason = decide.PrefixLimit
		})},
		"no budget": {fallbackLife, whatExclusion, firstCandidate(func(r *decide.Ranked) {
			r.Reason = decide.NoBudget
		})},
		"no reserve": {fallbackLife, whatExclusion, firstCandidate(func(r *decide.Ranked) {
			r.Reason = decide.Reserved
		})},
		"no policy": {fallbackLife, whatExclusion, firstCandidate(func(r *decide.Ranked) {
			r.Reason = decide.NoShare
		})},
		"over the price cap": {fallbackLife, whatExclusion, firstCandidate(func(r *decide.Ranked) {
			r.Reason = decide.PriceCap
		})},
		"no weight": {fallbackLife, whatExclusion, firstCandidate(func(r *decide.Ranked) {
			r.Reason = decide.WeightZero
		})},
		"exclusion dropped": {fallbackLife, whatChannel, firstCandidate(func(r *decide.Ranked) {
			r.Reason = ""
		})},
		"word behind the chosen": {fallbackLife, whatExclusion, ranked(func(r *decide.Ranking) {
			r.Candidates[2].Reason = "connecting"
		})},
		"the same channel twice": {fallbackLife, whatExclusion, func(t testing.TB, l *life) {
			first := l.record.Attempts[0].Channel
			l.rewrite(t, 1, func(r *decide.Ranking) {
				for i := range r.Candidates {
					if r.Candidates[i].Reason = "connecting"; r.Candidates[i].Channel == first {
						r.Candidates[i].Reason = ""
						for k := range r.Candidates[i+1:] {
							r.Candidates[i+1+k].Reason = ""
						}
						return
					}
				}
			})
			l.record.Attempts[1].Channel = first
		}},
		"pin broken": {partLife, whatExclusion, func(t testing.TB, l *life) {
			l.rewrite(t, 1, func(r *decide.Ranking) {
				r.Candidates[0].Reason, r.Candidates[1].Reason = "connecting", ""
				l.record.Attempts[1].Channel = r.Candidates[1].Channel
			})
		}},
		"first not in front": {fallbackLife, whatOrder, ranked(func(r *decide.Ranking) {
			r.Candidates[0], r.Candidates[1] = r.Candidates[1], r.Candidates[0]
		})},
		"wait: first not in front": {waitLife, whatOrder, func(t testing.TB, l *life) {
			l.rewrite(t, -1, func(r *decide.Ranking) { r.Candidates[1].Active = 99 })
		}},
		"wait: chosen": {waitLife, whatChannel, func(t testing.TB, l *life) {
			l.rewrite(t, -1, func(r *decide.Ranking) { r.Candidates[2].Reason = "" })
		}},
		"wait: too early": {waitLife, whatVersion, func(t testing.TB, l *life) {
			l.rewrite(t, -1, func(r *decide.Ranking) { r.Version = 999 })
		}},
		"wait: after ten": {waitLife, whatRanking, func(t testing.TB, l *life) {
			l.rewrite(t, -1, func(r *decide.Ranking) { r.Attempts = 10 })
		}},
		"passed over early": {fallbackLife, whatExclusion, holdFirst},
		"full yet prompt":   {fallbackLife, whatExclusion, fullYetPrompt},
		"a score": {scoreLife, whatScore, ranked(func(r *decide.Ranking) {
			r.Candidates[0].Score = new(0.99)
		})},
		"scores swapped": {scoreLife, whatOrder, swapped},
		"another scoring": {scoreLife, whatScoring, ranked(func(r *decide.Ranking) {
			r.Scoring = decide.ByFunction
		})},
		"trouble invented": {scoreLife, whatScoring, ranked(func(r *decide.Ranking) {
			r.Trouble = "function_bored"
		})},
		"draws of another": {drawLife, whatDrawKey, ranked(func(r *decide.Ranking) {
			r.KeyID = "00000000"
		})},
		"draws in order": {drawLife, whatOrder, swapDraw},
		"draws of a new key": {drawLife, whatDrawKey, ranked(func(r *decide.Ranking) {
			r.KeyID = verifyKeys[0].ID()
		})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := test.life(t)
			if found := l.verified(t); len(found) > 0 {
				t.Fatalf("before the change: got %+v in %s", found, l)
			}
			test.forge(t, l)
			found := l.verified(t)
			if !slices.ContainsFunc(found, func(m Mismatch) bool { return m.What == test.what }) {
				t.Errorf("got %+v, want a difference in %s of %s", found, test.what, l)
			}
			found, forgotten := l.verifiedWithout(t), slices.Contains(foundByPayload, name)
			if (len(found) == 0) != forgotten {
				t.Errorf("without payload: got %+v of %s", found, l)
			}
		})
	}
}

// TestWithoutPayloadWhatMayBeIsChecked changes what only documents with prices and with matches by
// number can show.
func TestWithoutPayloadWhatMayBeIsChecked(t *testing.T) {
	t.Parallel()
	routing := func(r *decide.Routing) {
		for i := range r.Channels {
			r.Channels[i].Price = decide.NewPrice("GBP", decide.PriceList{
				Default: 30_000, Countries: map[string]int64{"gb": 21_000, "de": 22_000},
				Prefixes: map[string]int64{"+447": 23_000, "+4915": 24_000},
			})
		}
		french, shops := r.Routes[0], r.Routes[0]
		french.Name, french.Match.Countries = "french", []string{"fr"}
		shops.Name = "shops"
		shops.Match.Labels = map[string]selector.Value{
			"kind": selector.TextValue("shop"),
		}
		last := r.Routes[0]
		last.Name = "never"
		r.Routes = []decide.Route{french, shops, r.Routes[0], last}
		r.Country = func(string) string { return "gb" }
		r.CallingCode = func(country string) int {
			return map[string]int{"gb": 44, "de": 49, "fr": 33}[country]
		}
	}
	route := func(name string) func(*ledger.Record) {
		return func(r *ledger.Record) { r.Message.Plan.Route = name }
	}
	price := func(micros int64) func(*ledger.Record) {
		return func(r *ledger.Record) {
			last := &r.Attempts[len(r.Attempts)-1]
			last.PriceMicros = micros
		}
	}
	for name, tc := range map[string]struct {
		forge func(*ledger.Record)
		what  string // empty if it cannot be found
	}{
		"a route that may have matched":  {route("shops"), ""},
		"one of another country":         {route("french"), whatRoute},
		"one behind one that takes all":  {route("never"), whatRoute},
		"the price of its country":       {price(21_000), ""},
		"the price of another country":   {price(22_000), whatPrice},
		"the price of another prefix":    {price(24_000), whatPrice},
		"the price of unnamed countries": {price(30_000), ""},
		"a price of nothing":             {price(12_345), whatPrice},
		"no segments": {func(r *ledger.Record) {
			r.Message.Plan.Segments, r.Attempts = 0, nil
		}, whatSegments},
		"more segments than allowed": {func(r *ledger.Record) {
			r.Message.Plan.Segments, r.Attempts = 11, nil
		}, whatSegments},
	} {
		l, first := lifeOf(t, routing)
		l.claimed(t, jobOf("m-1", 1), map[string]string{first: "connecting"})
		l.answer(provider.Result{Outcome: provider.Accepted, Reference: "r"})
		if found := append(l.verified(t), l.verifiedWithout(t)...); len(found) > 0 {
			t.Fatalf("before the change: got %+v in %s", found, l)
		}
		tc.forge(&l.record)
		found := l.verifiedWithout(t)
		reported := slices.ContainsFunc(found, func(m Mismatch) bool { return m.What == tc.what })
		if reported != (tc.what != "") || !reported && len(found) > 0 {
			t.Errorf("%s: got %+v of %s", name, found, l)
		}
	}
}

// TestWhatStaysOfThePayloadIsChecked: while the payload exists.
func TestWhatStaysOfThePayloadIsChecked(t *testing.T) {
	t.Parallel()
	for what, forge := range map[string]func(*ledger.Message){
		whatCallingCode: func(m *ledger.Message) { m.CallingCode = 49 },
		whatNumberHMAC:  func(m *ledger.Message) { m.NumberHMAC++ },
		whatHMAC: func(m *ledger.Message) {
			m.Envelope = append(slices.Clone(m.Envelope), ' ')
		},
		whatSalt: func(m *ledger.Message) { // with the hash that fits it
			m.Salt[3]++
			hash := sha256.Sum256(slices.Concat(m.Salt[:], m.Envelope))
			m.EnvelopeHMAC = int64(binary.BigEndian.Uint64(hash[:]))
		},
		whatSalt + ", none": func(m *ledger.Message) { m.Salt = [ledger.SaltSize]byte{} },
	} {
		l := fallbackLife(t)
		forge(&l.record.Message)
		found := l.verified(t)
		kind, _, _ := strings.Cut(what, ",")
		if len(found) != 1 || found[0].What != kind {
			t.Errorf("%s: found %+v", what, found)
		}
	}
	l := fallbackLife(t) // as an earlier release stored it
	m := &l.record.Message
	m.Salt = [ledger.SaltSize]byte{}
	m.EnvelopeHMAC = selector.NewDrawer(l.keys[0]).HMAC("envelope", m.Envelope)
	if found := l.verified(t); len(found) > 0 {
		t.Errorf("of an earlier release: found %+v", found)
	}
	m.EnvelopeHMAC++
	if found := l.verified(t); len(found) != 1 || found[0].What != whatHMAC {
		t.Errorf("of an earlier release, changed: found %+v", found)
	}
}

// TestReasonsOfLimitsPassOnlyWhereTheDocumentHasSuch excludes a first choice with each reason of a
// limit, under documents with one limit.
func TestReasonsOfLimitsPassOnlyWhereTheDocumentHasSuch(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		own    *admission.Limit // of the first choice
		over   *admission.Limit
		policy admission.Policy
		passes []string
	}{
		"none": {passes: []string{decide.Throttled}},
		"of the channel": {
			own:    &admission.Limit{Max: 5},
			passes: []string{decide.Throttled, decide.NoSlot},
		},
		"divided": {
			own: &admission.Limit{Max: 5}, policy: admission.Even{},
			passes: []string{decide.Throttled, decide.NoSlot, decide.NoShare},
		},
		"exact": {
			own: &admission.Limit{Max: 5}, policy: admission.Exact{},
			passes: []string{decide.Throttled, decide.NoSlot},
		},
		"with a reserve": {
			own: &admission.Limit{
				Max:     5,
				Reserve: []admission.Reserve{{Lane: "otp", Percent: 10}},
			},
			passes: []string{decide.Throttled, decide.NoSlot, decide.Reserved},
		},
		"of its tenant": {
			own:    &admission.Limit{Scope: shop, Max: 5},
			passes: []string{decide.Throttled, decide.TenantLimit},
		},
		"of its tenant, over all": {
			over:   &admission.Limit{Scope: shop, Max: 5},
			passes: []string{decide.Throttled, decide.TenantLimit},
		},
		"of another tenant": {over: &admission.Limit{
			Scope: admission.Scope{Tenant: "bank"},
			Max:   5,
		}, passes: []string{decide.Throttled}},
		"of its prefix": {
			own:    &admission.Limit{Scope: british, Max: 5},
			passes: []string{decide.Throttled, decide.PrefixLimit},
		},
		"of another prefix": {over: &admission.Limit{
			Scope: admission.Scope{Prefix: "+49"},
			Max:   5,
		}, passes: []string{decide.Throttled}},
		"in money": {
			own:    &admission.Limit{Unit: admission.Money, Max: 500_000},
			passes: []string{decide.Throttled, decide.NoBudget},
		},
		"in money, with a reserve": {
			own: &admission.Limit{
				Unit: admission.Money, Max: 500_000,
				Reserve: []admission.Reserve{{Lane: "otp", Percent: 10}},
			},
			passes: []string{decide.Throttled, decide.NoBudget, decide.Reserved},
		},
		"in money, divided": {
			own:    &admission.Limit{Unit: admission.Money, Max: 500_000},
			policy: admission.Even{}, passes: []string{
				decide.Throttled, decide.NoBudget,
				decide.NoShare,
			},
		},
		"in money of its tenant": {
			own: &admission.Limit{
				Scope: shop, Unit: admission.Money,
				Max: 500_000,
			}, policy: admission.Even{},
			passes: []string{decide.Throttled, decide.NoBudget},
		},
		"in money of another": {over: &admission.Limit{
			Scope: admission.Scope{Tenant: "bank"},
			Unit:  admission.Money, Max: 5,
		}, passes: []string{decide.Throttled}},
		"in money, over its shops": {over: &admission.Limit{
			Scope: shop, Unit: admission.Money,
			Max: 500_000,
		}, passes: []string{decide.Throttled, decide.NoBudget}},
	} {
		for _, word := range []string{
			decide.Throttled, decide.NoSlot, decide.NoActive,
			decide.Reserved, decide.NoShare, decide.TenantLimit, decide.PrefixLimit,
			decide.NoBudget,
		} {
			l := tenantLife(t, func(r *decide.Routing, first int) {
				for _, limit := range []*admission.Limit{tc.own, tc.over} {
					if limit != nil {
						limit.Window = admission.Day
					}
				}
				if tc.own != nil {
					r.Channels[first].Limits = []admission.Limit{*tc.own}
				}
				if tc.over != nil {
					r.Limits = []admission.Limit{*tc.over}
				}
				r.Channels[first].Policy = tc.policy
			})
			passes := slices.Contains(tc.passes, word)
			for named, may := range namesOf(tc.own, tc.over) {
				if word == decide.Throttled {
					may = named == decide.LimitName{}
				}
				firstCandidate(func(r *decide.Ranked) { r.Reason, r.Limit = word, named })(t, l)
				if found := l.verified(t); (len(found) == 0) != (passes && may) {
					t.Errorf("limit %s, reason %s of %+v: got %+v", name, word, named, found)
				}
			}
		}
	}
}

// namesOf returns names of limits, and whether own or over has the name. own is a limit of the
// channel, over one over all channels; either may be nil. The empty name is among them.
func namesOf(own, over *admission.Limit) map[decide.LimitName]bool {
	names := map[decide.LimitName]bool{{}: false}
	for _, limit := range []*admission.Limit{own, over} {
		if limit == nil {
			continue
		}
		other := *limit
		other.Window = admission.Hour
		names[decide.NameLimit(limit, limit == over)] = true
		names[decide.NameLimit(limit, limit != over)] = false
		names[decide.NameLimit(&other, limit == over)] = false
	}
	return names
}

// tenantLife is fallbackLife for a message of tenant shop.
func tenantLife(t testing.TB, change func(r *decide.Routing, first int)) *life {
	t.Helper()
	l, first := lifeOf(t, nil)
	change(l.live, l.live.Channel(first))
	l.live.Prepare()
	job := jobOf("m-1", 1)
	job.Message.Tenant = "shop"
	job.Raw = job.Message.Append(nil)
	l.claimed(t, job, map[string]string{first: "connecting"})
	l.answer(provider.Result{Outcome: provider.Accepted, Reference: "r"})
	e := l.editions[l.live.Version]
	e.Routing = l.live
	l.editions[l.live.Version] = e
	return l
}

// TestFirstChoiceThatIsClosedIsNotWaitedFor: a first choice whose limit can never admit the message
// is passed over at once, even if the route waits. For any other a message waits.
func TestFirstChoiceThatIsClosedIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	// of a message of two segments
	for limit, held := range map[int64]bool{0: false, 1: false, 2: true} {
		l, first := lifeOf(t, func(r *decide.Routing) { r.Routes[0].Wait = time.Minute })
		c := l.live.Channel(first)
		l.live.Channels[c].Limits = []admission.Limit{{
			Window: admission.Day,
			Unit:   admission.Segments, Max: limit,
		}}
		l.live.Prepare()
		e := l.editions[7]
		e.Routing = l.live
		l.editions[7] = e
		seen, unready := idle(l.live)
		full := admission.Counter{
			Limit: l.live.Channels[c].Limits[0],
			Start: noon.Add(-12 * time.Hour), Granted: limit, Max: limit,
		}
		seen.Channels[c].Gate.Counters = []admission.Counter{full}
		d := l.decide(t, jobOf("m-1", 2), seen, unready, nil)
		if (d.State == ledger.Waiting) != held {
			t.Errorf("limit %d: %+v", limit, d)
		}
		if found := l.verified(t); len(found) > 0 {
			t.Errorf("limit %d: %+v", limit, found)
		}
		if held {
			continue
		}
		l.live.Channels[c].Limits[0].Max = 5 // the document does not close it
		l.live.Prepare()
		if found := l.verified(t); !slices.ContainsFunc(found, func(m Mismatch) bool {
			return m.What == whatExclusion
		}) {
			t.Errorf("limit %d: passed over before the wait ended, got %+v", limit, found)
		}
	}
}

// lane sets a lane in every version.
func (l *life) lane(name string, lane decide.Lane) {
	for _, e := range l.editions {
		e.Routing.Lanes[name] = lane
	}
}

// chosenFirst returns the ranking of a first choice without exclusion, which is never stored.
func chosenFirst(r *ledger.Record) []byte {
	k := decide.Ranking{
		Version: r.Message.Plan.Version, By: string(decide.LoadRatio),
		Candidates: []decide.Ranked{{Channel: r.Message.Plan.FirstChoice, Capacity: 100}},
	}
	for _, name := range []string{"a", "b", "c"} {
		if name != r.Message.Plan.FirstChoice {
			k.Candidates = append(k.Candidates, decide.Ranked{Channel: name, Capacity: 100})
		}
	}
	return decide.AppendRanking(nil, &k)
}

// holdFirst excludes a first choice with a reason for which its route holds messages.
func holdFirst(t testing.TB, l *life) {
	for _, e := range l.editions {
		e.Routing.Routes[0].Wait = time.Hour
	}
	firstCandidate(func(r *decide.Ranked) { r.Reason = decide.Throttled })(t, l)
}

// fullYetPrompt excludes a first choice because it is full though it answers promptly. A message
// waits ten seconds for such a channel.
func fullYetPrompt(t testing.TB, l *life) {
	firstCandidate(func(r *decide.Ranked) { r.Reason = decide.InFlight })(t, l)
}

// TestAWaitForRoomCanBeDerivedAgain: on any route for a prompt first choice, and only on a route
// that waits for a late one.
func TestAWaitForRoomCanBeDerivedAgain(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		wait   time.Duration
		late   bool
		forged string // replaces the stored reason
		wrong  string
	}{
		"prompt, no wait":              {0, false, "", ""},
		"prompt, the route waits":      {time.Minute, false, "", ""},
		"late, the route waits":        {time.Minute, true, "", ""},
		"late is told, without wait":   {0, false, decide.Bulkhead, whatBy},
		"another is told, and waits":   {time.Minute, true, decide.Breaker, whatExclusion},
		"what needs a limit is told":   {time.Minute, true, decide.NoActive, whatExclusion},
		"prompt is told, it may be so": {time.Minute, true, decide.InFlight, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, first := lifeOf(t, func(r *decide.Routing) { r.Routes[0].Wait = tc.wait })
			l.rooms = []decide.Room{{ShareLeft: 9}, {ShareLeft: 9}, {ShareLeft: 9}}
			l.rooms[l.live.Channel(first)] = decide.Room{PassOver: tc.late}
			seen, unready := idle(l.live)
			d := l.decide(t, jobOf("m-1", 1), seen, unready, nil)
			if want := l.rooms[l.live.Channel(first)].Reason(); d.State != ledger.Waiting ||
				d.Reason != want {
				t.Fatalf("got %s for %q, want a wait for %q", d.State, d.Reason, want)
			}
			if tc.forged != "" {
				k, err := decide.ReadRanking(l.record.Seen)
				if err != nil {
					t.Fatal(err)
				}
				k.Candidates[0].Reason = tc.forged
				l.record.Seen = decide.AppendRanking(nil, k)
			}
			found := l.verified(t)
			if tc.wrong == "" && len(found) > 0 || tc.wrong != "" &&
				!slices.ContainsFunc(found, func(m Mismatch) bool {
					return m.What == tc.wrong
				}) {
				t.Errorf("found %+v, want %q", found, tc.wrong)
			}
		})
	}
}

// TestChoicesOfBuildsThatKnewNoWritableSendersStay: they chose a channel that cannot write the
// sender, and its adapter refused.
func TestChoicesOfBuildsThatKnewNoWritableSendersStay(t *testing.T) {
	t.Parallel()
	l, _ := lifeOf(t, func(*decide.Routing) {})
	seen, unready := idle(l.live)
	if d := l.decide(t, jobOf("m-1", 1), seen, unready, nil); d.State != ledger.Sending {
		t.Fatalf("got %s", d.State)
	}
	for i := range l.live.Channels {
		l.live.Channels[i].Writes = func(string, string) bool { return false }
	}
	if found := l.verified(t); len(found) > 0 {
		t.Errorf("found %+v", found)
	}
}

// TestAWaitForRoomEnds: a first choice stays full, and a fallback accepts the message when the wait
// is over. The audit accepts that, but not a fallback before.
func TestAWaitForRoomEnds(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ wait, ttl, lasts time.Duration }{
		"on every route":          {0, time.Hour, 10 * time.Second},
		"by the route's own time": {time.Minute, time.Hour, time.Minute},
		"by the deadline":         {time.Minute, 30 * time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, first := lifeOf(t, func(r *decide.Routing) {
				r.Routes[0].Wait = tc.wait
				for name, lane := range r.Lanes {
					lane.TTL = tc.ttl
					r.Lanes[name] = lane
				}
			})
			l.rooms = []decide.Room{{ShareLeft: 9}, {ShareLeft: 9}, {ShareLeft: 9}}
			l.rooms[l.live.Channel(first)] = decide.Room{}
			seen, unready := idle(l.live)
			if d := l.decide(t, jobOf("m-1", 1), seen, unready, nil); d.State != ledger.Waiting ||
				d.Reason != decide.InFlight {
				t.Fatalf("%s for %q", d.State, d.Reason)
			}
			began := l.now
			if tc.lasts == 0 {
				tc.lasts = l.record.Message.ExpiresAt.Sub(began) - 5*time.Second
			}
			l.now = began.Add(tc.lasts - time.Millisecond)
			if d := l.decide(t, nil, seen, unready, nil); d.State != ledger.Waiting ||
				d.NextAt.After(began.Add(tc.lasts)) {
				t.Fatalf("before the end: %s until %s", d.State, d.NextAt)
			}
			l.now = began.Add(tc.lasts)
			if d := l.decide(t, nil, seen, unready, nil); d.State != ledger.Sending ||
				d.Attempt.Channel == first {
				t.Fatalf("at the end: %s on %q", d.State, d.Attempt.Channel)
			}
			if found := l.verified(t); len(found) > 0 {
				t.Errorf("found %+v", found)
			}
			l.record.Attempts[0].ClaimedAt = began.Add(tc.lasts - time.Millisecond)
			if found := l.verified(t); !slices.ContainsFunc(found, func(m Mismatch) bool {
				return m.What == whatExclusion
			}) {
				t.Errorf("a fallback before that time was accepted: %+v", found)
			}
		})
	}
}

// scoreLife is fallbackLife with scores of an expression.
func scoreLife(t testing.TB) *life {
	t.Helper()
	return rankedLife(t, func(r *decide.Routing) {
		expression, err := score.Compile("channel.labels.quality")
		if err != nil {
			t.Fatal(err)
		}
		r.Routes[0].Fallback, r.Routes[0].Scoring = decide.BestWorker,
			decide.Scoring{Expression: expression}
		for i := range r.Channels {
			r.Channels[i].Labels = map[string]selector.Value{
				"quality": selector.NumberValue(float64(i)),
			}
		}
	})
}

// drawLife is fallbackLife with further draws.
func drawLife(t testing.TB) *life {
	t.Helper()
	return rankedLife(t, func(r *decide.Routing) { r.Routes[0].Fallback = decide.Redraw })
}

func rankedLife(t testing.TB, change func(*decide.Routing)) *life {
	t.Helper()
	l, first := lifeOf(t, change)
	l.claimed(t, jobOf("m-1", 1), map[string]string{first: "connecting"})
	l.answer(provider.Result{Outcome: provider.Accepted, Reference: "r"})
	return l
}

func swapped(t testing.TB, l *life) {
	l.rewrite(t, 0, func(r *decide.Ranking) {
		r.Candidates[1].Score, r.Candidates[2].Score = r.Candidates[2].Score, r.Candidates[1].Score
	})
}

// swapDraw swaps the draw's two channels.
func swapDraw(t testing.TB, l *life) {
	l.rewrite(t, 0, func(r *decide.Ranking) {
		for _, name := range []string{"a", "b", "c"} {
			if name != r.Candidates[0].Channel && name != l.record.Attempts[0].Channel {
				r.Candidates[1].Channel = name
			}
		}
		l.record.Attempts[0].Channel = r.Candidates[1].Channel
	})
}

// TestAVersionThatWasNotInForceIsFound: a forger stores the version before and what it would have
// chosen. The times of the versions show it, also for a process that kept using an old version.
func TestAVersionThatWasNotInForceIsFound(t *testing.T) {
	t.Parallel()
	moved := 0
	for i := range 200 {
		l, _ := lifeOf(t, nil)
		before := l.live
		l.pass(time.Minute)
		l.apply(turnedRound(t, before), map[string]bool{})
		l.pass(2 * time.Second)
		l.claimed(t, jobOf(fmt.Sprint("m-", i), 1), nil)
		row := &l.record.Message
		table := before.Routes[0].Table
		choice := table.Entry(table.Pick(uint64(row.Plan.Draw))).Name
		if choice == row.Plan.FirstChoice {
			continue
		}
		moved++
		row.Plan.Version, row.Plan.FirstChoice, l.record.Attempts[0].Channel = before.Version,
			choice, choice
		found := l.verified(t)
		if len(found) != 1 || found[0].What != whatVersion ||
			!strings.Contains(found[0].Derived, "until 2026-11-21T12:01:00Z") {
			t.Fatalf("%d: got %+v", i, found)
		}
	}
	if moved < 50 {
		t.Errorf("only %d of 200 were forged", moved)
	}
}

// TestVersionsAreInForceBetweenTheirTimes: with a tolerance of a second for the clock, and more if
// effects followed.
func TestVersionsAreInForceBetweenTheirTimes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*Edition)
		found  bool
	}{
		"open":                   {func(*Edition) {}, false},
		"until then":             {func(e *Edition) { e.Until = noon }, false},
		"the clock was set back": {func(e *Edition) { e.Until = noon.Add(-clockTolerance) }, false},
		"replaced before": {func(e *Edition) {
			e.Until = noon.Add(-clockTolerance - time.Microsecond)
		}, true},
		"replaced by effects": {func(e *Edition) {
			e.Until, e.Overlap = noon.Add(-clockTolerance-time.Second), time.Second
		}, false},
		"effects long before": {func(e *Edition) {
			e.Until, e.Overlap = noon.Add(-clockTolerance-time.Minute), time.Second
		}, true},
		"from then": {func(e *Edition) { e.From = noon }, false},
		"from, the clock was set back": {func(e *Edition) {
			e.From = noon.Add(clockTolerance)
		}, false},
		"not yet": {func(e *Edition) {
			e.From = noon.Add(clockTolerance + time.Microsecond)
		}, true},
	} {
		for what, l := range map[string]*life{
			"attempt": drawLife(t), "turn": turnLife(t),
			"planned alone": waitLife(t),
		} {
			if what == "planned alone" { // received at noon, decided a while later
				l.record.Attempts, l.record.Message.Attempts, l.record.Seen = nil, 0, nil
				l.record.Message.State, l.record.FinishedAt = ledger.Failed, noon
				delete(l.editions, 7)
				l.editions[8] = Edition{Routing: l.editions[8].Routing}
			}
			version := l.record.Message.Plan.Version
			e := l.editions[version]
			tc.change(&e)
			l.editions[version] = e
			found := l.verified(t)
			if got := slices.ContainsFunc(found, func(m Mismatch) bool {
				return m.What == whatVersion
			}); got != tc.found {
				t.Errorf("%s, %s: %+v", what, name, found)
			}
		}
	}
}

// TestMismatchesShowNeitherNumberNorText: auditors read the list of differences.
func TestMismatchesShowNeitherNumberNorText(t *testing.T) {
	t.Parallel()
	l := fallbackLife(t)
	l.record.Message.Plan = ledger.Plan{
		Version: l.live.Version, Route: "x", Draw: 3, Size: 4,
		KeyID: "1", FirstChoice: "q",
	}
	raw, err := json.Marshal(l.verified(t))
	if err != nil || strings.Contains(string(raw), "7700900123") {
		t.Errorf("%v: got %s", err, raw)
	}
}

// TestADamagedRecordIsReportedAndNothingBreaks puts arbitrary numbers and words into a record. The
// audit continues.
func TestADamagedRecordIsReportedAndNothingBreaks(t *testing.T) {
	t.Parallel()
	lives := []func(testing.TB) *life{
		fallbackLife, resentLife, partLife, waitLife, turnLife,
		scoreLife, drawLife,
	}
	tier.Check(t, func(rt *rapid.T) {
		l := rapid.SampledFrom(lives).Draw(rt, "life")(t)
		number := rapid.SampledFrom([]int{-1 << 31, -1, 0, 1, 2, 3, 7, 8, 40, 1 << 31})
		word := rapid.SampledFrom([]string{
			"", "a", "b", "zzz", "wait", "load_ratio", "best_worker",
			"round_robin", "redraw", "function", "expression", decide.Removed, decide.NoSlot,
			"5778f985",
		})
		plan := &l.record.Message.Plan
		for range rapid.IntRange(1, 4).Draw(rt, "damages") {
			n, w := number.Draw(rt, "number"), word.Draw(rt, "word")
			switch rapid.IntRange(0, 12).Draw(rt, "where") {
			case 0:
				plan.Version = int64(n)
			case 1:
				plan.FirstChoice = w
			case 2:
				plan.KeyID, plan.Draw, plan.Size = w, int64(n), int64(n)
			case 3:
				l.record.Message.State, l.record.Message.Attempts = ledger.State(w), n
			case 4:
				l.record.Attempts[0].Segments, l.record.Attempts[0].PriceMicros = n, int64(n)
			case 5:
				l.record.Attempts[0].Channel, l.record.Attempts[0].Number = w, n
			case 6:
				outcomes := []string{"unknown", "refused", "throttled", w}
				first := &l.record.Attempts[0]
				first.Outcome, first.Answers = rapid.SampledFrom(outcomes).Draw(rt, "outcome"), n
			case 7:
				l.record.Message.Lane, l.record.Message.ID = w, w
			case 8:
				l.record.Attempts[0].Ranking = nil
			default:
				r := drawnDamage(rt, number, word)
				l.record.Attempts[0].Ranking = decide.AppendRanking(nil, &r)
				l.record.Seen = decide.AppendRanking(nil, &r)
			}
		}
		l.verified(rt)
	})
}

// drawnDamage draws an invalid ranking.
func drawnDamage(t *rapid.T, number *rapid.Generator[int],
	word *rapid.Generator[string],
) decide.Ranking {
	r := decide.Ranking{
		Version: int64(rapid.SampledFrom([]int{7, 7, 8, 9}).Draw(t, "version")),
		By:      word.Draw(t, "by"), Attempts: rapid.IntRange(-1, 3).Draw(t, "attempts"),
		Cursor: word.Draw(t, "cursor"), KeyID: word.Draw(t, "key"),
		Scoring: word.Draw(t, "scoring"), Trouble: word.Draw(t, "trouble"),
		More: number.Draw(t, "more"),
	}
	if rapid.Bool().Draw(t, "turn") {
		r.After = new(number.Draw(t, "after"))
	}
	for range rapid.IntRange(0, 4).Draw(t, "candidates") {
		one := decide.Ranked{
			Channel: word.Draw(t, "channel"),
			Active:  int64(number.Draw(t, "active")), Capacity: 100, Reason: word.Draw(t, "reason"),
		}
		if rapid.Bool().Draw(t, "scored") {
			one.Score = new(1.5)
		}
		r.Candidates = append(r.Candidates, one)
	}
	return r
}

// TestAStickyDrawIsDerivedWithoutKeys: and without payload.
func TestAStickyDrawIsDerivedWithoutKeys(t *testing.T) {
	t.Parallel()
	l := stickyLife(t)
	l.record.Message.Envelope = nil
	v := NewVerifier(nil, func(version int64) (Edition, error) { return l.editions[version], nil })
	for _, forged := range []bool{false, true} {
		if forged {
			l.record.Message.Plan.Draw ^= 1
		}
		found, err := v.Verify(&l.record)
		if err != nil || v.WithoutKey() != 0 {
			t.Fatalf("%v, %d without key", err, v.WithoutKey())
		}
		if wrong := len(found) == 1 && found[0].What == whatDraw; wrong != forged {
			t.Errorf("forged %t: got %+v", forged, found)
		}
	}
}
