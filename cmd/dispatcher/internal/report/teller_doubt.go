package report

import (
	"strings"
	"time"

	"dispatcher/cmd/dispatcher/internal/dispatch"
	"dispatcher/ledger"
)

// Ambiguity is how it was tried to find out what became of an attempt that nobody answered.
type Doubt struct {
	Attempt int       `json:"attempt"` // the latest under its key
	Step    string    `json:"step"`    // same_key, lookup, receipt or none
	Until   time.Time `json:"until"`
	Asked   int       `json:"asked"`
	Verdict string    `json:"verdict"` // taken, not_taken, resent or final; empty while it is open
	Author  string    `json:"author"`  // empty for the dispatcher itself
	Note    string    `json:"note"`
}

func newDoubts(records []ledger.AmbiguityRecord) []Doubt {
	doubts := make([]Doubt, len(records))
	for i := range records {
		d := &records[i]
		doubts[i] = Doubt{
			Attempt: d.Last, Step: string(d.Step), Until: d.Until, Asked: d.Asked, Verdict: string(d.ResolvedAs), Author: d.Author, Note: d.Note,
		}
	}
	return doubts
}

// searches say what is done to find out.
var searches = map[ledger.Step]string{
	ledger.SameKey:      "it is submitted again under the same key, which the provider takes once",
	ledger.Lookup:       "the provider is asked for it",
	ledger.AwaitReceipt: "a receipt is waited for",
}

// verdictWords say how a search ended.
var verdictWords = map[ledger.ResolvedAs]string{
	ledger.Taken:      "that it had been taken",
	ledger.NotTaken:   "that it had not been taken",
	ledger.Resent:     "nothing, so the lane had it sent once more",
	ledger.Unresolved: "nothing: nobody knows whether it was taken, and it is booked as possibly billable",
}

// foundOut says who told what became of an attempt that nobody had answered, by its code.
var foundOut = map[string]string{dispatch.CodeOperator: "an operator settled", dispatch.CodeLookup: "the provider was asked and said"}

// foundOut tells of an attempt about which was found out later what its provider had not answered.
func (t *teller) foundOut(a *Attempt, took string) {
	fate := "it had not been taken"
	if a.Outcome == outcomeAccepted {
		fate = "it had been taken"
	}
	t.say("%s gave no answer; %s%s that %s%s%s.", a.Channel, foundOut[a.Code], took, fate, bill(a), t.underOther(a))
}

// doubt tells what was done about an attempt that nobody had answered.
func (t *teller) doubt(attempt int) {
	for i := range t.story.Doubts {
		d := &t.story.Doubts[i]
		if d.Attempt != attempt {
			continue
		}
		switch search := searches[ledger.Step(d.Step)]; {
		case d.Author != "":
			t.say("%s settled it as %s: %s.", d.Author, strings.ReplaceAll(d.Verdict, "_", " "), strings.TrimSuffix(d.Note, "."))
		case d.Verdict == "" && search != "":
			t.say("To find out, %s, until %s%s.", search, t.when(d.Until), asked(d.Asked))
		case d.Verdict != "" && search != "":
			t.say("A search found %s%s.", verdictWords[ledger.ResolvedAs(d.Verdict)], asked(d.Asked))
		}
	}
}

// asked says how often it was tried.
func asked(n int) string {
	if n == 0 {
		return ""
	}
	return " (tried " + plural(n, "time") + ")"
}
