package main

import (
	"time"

	"dispatcher/ledger"
)

// contradictionLine is an attempt that its provider denied, and that its receipt calls delivered.
type contradictionLine struct {
	ID                string    `json:"id"`
	Lane              string    `json:"lane"`
	Tenant            string    `json:"tenant"`
	Channel           string    `json:"channel"`
	Attempt           int       `json:"attempt"`
	Outcome           string    `json:"outcome"` // that the provider answered
	Code              string    `json:"code"`
	Reference         string    `json:"reference"` // that the receipt names
	ReceivedAt        time.Time `json:"received_at"`
	State             string    `json:"state"` // of the message
	PossibleDuplicate bool      `json:"possible_duplicate"`
}

func contradictionLines(records []ledger.ContradictionRecord) []contradictionLine {
	lines := make([]contradictionLine, len(records))
	for i := range records {
		r := &records[i]
		lines[i] = contradictionLine{
			ID: r.ID, Lane: r.Lane, Tenant: r.Tenant, Channel: r.Channel, Attempt: r.Attempt, Outcome: r.Outcome, Code: r.Code, Reference: r.Reference,
			ReceivedAt: r.ReceivedAt, State: string(r.State), PossibleDuplicate: r.PossibleDuplicate,
		}
	}
	return lines
}

// verdictContradicted stands in the CSV rows of contradictions.
const verdictContradicted = "contradicted"

// contradictionRows are the contradictions in the columns of doubts.
func contradictionRows(lines []contradictionLine) (rows [][]string) {
	for i := range lines {
		c := &lines[i]
		at := c.ReceivedAt.Format(time.RFC3339)
		rows = append(rows, []string{
			c.ID, c.Lane, c.Tenant, c.Channel, number(int64(c.Attempt)), "0", "0", "", c.Code, string(ledger.AwaitReceipt),
			at, at, "0", verdictContradicted, "", c.note(),
		})
	}
	return rows
}

// note says what contradicts what.
func (c *contradictionLine) note() string {
	note := "answered " + c.Outcome + ", then delivered by receipt"
	if c.Reference != "" {
		note += " " + c.Reference
	}
	if c.PossibleDuplicate {
		note += "; possible duplicate"
	}
	return note
}

// contradictionTable lists contradictions for people.
func contradictionTable(lines []contradictionLine) sheet {
	s := sheet{
		title:  "Delivered, although the provider had answered that it did not take it",
		header: []string{"id", "lane", "attempt", "answer", "reference", "receipt (UTC)", "message"}, tight: true,
		wrap: map[int]int{1: 24, 2: 13, 3: 18, 4: 14, 5: 16, 6: 10, 7: 18},
	}
	for i := range lines {
		c := &lines[i]
		message := c.State
		if c.PossibleDuplicate {
			message += ", possible duplicate"
		}
		s.rows = append(s.rows, []string{
			c.ID, c.Lane, number(int64(c.Attempt)) + " on " + c.Channel, joined([]string{c.Outcome, c.Code}), c.Reference, c.ReceivedAt.Format(time.DateTime), message,
		})
	}
	return s
}
