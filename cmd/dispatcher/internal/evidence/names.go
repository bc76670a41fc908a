package evidence

import (
	"fmt"
	"slices"
	"strconv"

	"dispatcher/cmd/dispatcher/internal/audit"
	"dispatcher/cmd/dispatcher/internal/seal"
	"dispatcher/ledger"
)

// sealedRow names the row of a leaf, and the views that show its parts. Messages and versions have
// no views here: their parts have names (ledger.PartNames).
func sealedRow(seq int64, id string) (name string, views []string) {
	day, revision, closing := ledger.ClosingOf(seq)
	kind, number := ledger.FinanceOf(seq)
	switch {
	case closing:
		return fmt.Sprintf("revision %d of %s", revision, day), ledger.ClosingParts[:]
	case kind != nil:
		return fmt.Sprintf("%s %d", kind.Name, number), kind.Parts
	case seq < 0:
		return "routing version " + strconv.FormatInt(-seq, 10), nil
	case id == "":
		return "message number " + strconv.FormatInt(seq, 10), nil
	}
	return id, nil
}

// mismatchesOf are the faults as differences of audit verify.
func mismatchesOf(faults []seal.Fault) []audit.Mismatch {
	found := make([]audit.Mismatch, len(faults))
	for i, f := range faults {
		name, views := sealedRow(f.Seq, f.ID)
		_, _, closing := ledger.ClosingOf(f.Seq)
		m := audit.Mismatch{ID: name, What: f.What}
		switch {
		case views != nil && f.What == seal.Changed:
			m.Stored = "other values in " + views[slices.Index(ledger.PartNames[:], f.Part)]
			m.Derived = "those that were sealed"
		case closing && f.What == seal.Inserted:
			m.Stored, m.Derived = "figures", "nothing: such a closing was not sealed in its time"
		case f.What == seal.Changed:
			m.Stored, m.Derived = "another "+f.Part, "the "+f.Part+" that was sealed"
		case f.What == seal.Deleted:
			m.Stored, m.Derived = "nothing", "what was sealed"
		case f.What == seal.Inserted:
			m.Stored, m.Derived = "a row", "nothing: it was not there when its time was sealed"
		case f.What == seal.Outcome:
			m.Stored, m.Derived = string(f.To), "what may follow "+string(f.From)
		}
		found[i] = m
	}
	return found
}
