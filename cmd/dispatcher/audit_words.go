package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"dispatcher/cmd/dispatcher/internal/audit"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/cmd/dispatcher/internal/seal"
	"dispatcher/ledger"
)

// notCheckedWords say what cannot be checked once payloads are gone, in the order of the sentence.
var notCheckedWords = []struct{ kind, words string }{
	{"route", "route match"},
	{"segments", "segments"},
	{"alphabet", "alphabet"},
	{"passed_over", "selectors, senders and price caps"},
	{"price", "prices that depend on the number"},
	{"score", "scores"},
	{"calling_code", "calling code"},
	{"number_hmac", "keyed hash of the number"},
	{"envelope_hmac", "hash of the envelope"},
	{"salt", "derivation of the salt"},
}

// gone says what could not be checked; empty when every payload exists.
func (v *verification) gone() string {
	n := v.WithoutPayload.Messages
	if n == 0 {
		return ""
	}
	var parts []string
	for _, part := range notCheckedWords {
		switch of := v.WithoutPayload.NotChecked[part.kind]; of {
		case 0:
		case n:
			parts = append(parts, part.words)
		default:
			parts = append(parts, fmt.Sprintf("%s (of %d)", part.words, of))
		}
	}
	why := "whose payload is gone"
	if v.WithoutPayload.Hidden > 0 { // then none could be read
		why = "whose payload this login may not read"
	}
	return fmt.Sprintf("%d messages %s: not checked were %s\n", n, why, strings.Join(parts, "; "))
}

// payloads says how many payloads were compared with their messages.
func (v *verification) payloads() string {
	p := v.Payloads
	line := counted(p.Compared, "payload", "payloads") + " compared with the hashes of their messages"
	if p.Gone > 0 {
		line += "; " + counted(p.Gone, "is gone", "are gone")
	}
	if p.Unhashed > 0 {
		line += "; " + counted(p.Unhashed, "that an earlier build stored has no salt",
			"that an earlier build stored have no salt")
	}
	return line + "\n"
}

// changedPayloadWords say what is in payloads, and what was expected.
var changedPayloadWords = map[string][2]string{
	ledger.PayloadChanged:   {"another number, text or salt in payloads", "those that came"},
	ledger.PayloadRecipient: {"another recipient in payloads", "the hash of its number"},
	ledger.PayloadNoSalt:    {"no salt in payloads", "the one that was stored"},
}

// changedPayloads are payloads that are not those that were received.
func changedPayloads(all []ledger.ChangedPayload) []audit.Mismatch {
	out := make([]audit.Mismatch, len(all))
	for i, p := range all {
		words := changedPayloadWords[p.What]
		out[i] = audit.Mismatch{ID: p.ID, What: seal.Changed, Stored: words[0], Derived: words[1]}
	}
	return out
}

// missedByLimits are the windows of limits that counted attempts which are not on record.
func missedByLimits(windows []ledger.Uncounted) []audit.Mismatch {
	out := make([]audit.Mismatch, len(windows))
	for i, w := range windows {
		name := "limit of " + cmp.Or(w.Channel, "all channels")
		if w.Scope != "channel" {
			name += ", " + w.Scope
		}
		out[i] = audit.Mismatch{
			ID:   name,
			What: seal.Deleted,
			Stored: fmt.Sprintf("%d attempts in the %d s from %s", w.OnRecord, w.WindowSeconds,
				w.WindowStart.UTC().Format(time.DateTime+"Z07:00")),
			Derived: fmt.Sprintf("%d were counted", w.Granted),
		}
	}
	return out
}

// whatBudget: attempts cost more of a prepaid budget than had been topped up by then.
const whatBudget = "budget"

// beyondBudgets are budgets that were spent before they were topped up.
func beyondBudgets(found []ledger.Overspent) []audit.Mismatch {
	out := make([]audit.Mismatch, len(found))
	for i := range found {
		o := &found[i]
		name := "budget of " + cmp.Or(o.Channel, "all channels")
		if o.Scope != "channel" {
			name += ", " + o.Scope
		}
		out[i] = audit.Mismatch{
			ID: name, What: whatBudget,
			Stored: fmt.Sprintf("attempts of the day cost %s %s by %s", report.Money(o.Cost),
				o.Currency, o.At.UTC().Format(time.DateTime+"Z07:00")),
			Derived: report.Amount(o.ToppedUp, o.Currency) + " were topped up by then",
		}
	}
	return out
}

// whatReceipt: a receipt contradicts what was submitted, or what its attempt says.
const whatReceipt = "receipt"

// misfitWords say what a correct receipt would have been.
var misfitWords = map[string][2]string{
	ledger.MisfitChannel:   {"from channel ", "one of an attempt of the message on that channel"},
	ledger.MisfitReference: {"for reference ", "a reference that an answer to a submit named"},
	ledger.MisfitTime:      {"came ", "not before the message was submitted there"},
	ledger.MisfitState:     {"", "a receipt on record that says so"},
	ledger.MisfitDelivered: {"delivered ", "the time at which a receipt on record came"},
}

// misfitReceipts are receipts that contradict the record.
func misfitReceipts(all []ledger.MisfitReceipt) []audit.Mismatch {
	out := make([]audit.Mismatch, len(all))
	for i, m := range all {
		words := misfitWords[m.What]
		out[i] = audit.Mismatch{
			ID: m.ID, Attempt: m.Attempt, What: whatReceipt, Stored: words[0] + m.Stored,
			Derived: words[1],
		}
	}
	return out
}

// whatSums: reports of a closed day read sums that are not those of its figures.
const whatSums = "sums"

// wrongSums are sums of a day that are not those of its figures.
func wrongSums(day string, found []ledger.WrongSum) []audit.Mismatch {
	out := make([]audit.Mismatch, len(found))
	for i, w := range found {
		out[i] = audit.Mismatch{
			ID: fmt.Sprintf("revision %d of %s", w.Revision, day), What: whatSums,
			Stored:  fmt.Sprintf("other values in %s, split %s", w.Sums, w.Split),
			Derived: "the sums of " + w.Figures,
		}
	}
	return out
}
