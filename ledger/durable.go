package ledger

// Durability are the settings of the server that decide what of a commit is left after a crash. An attempt that
// went out and is not on record any more goes out again, and its slots are given away a second time.
type Durability struct {
	SynchronousCommit, Fsync, FullPageWrites string // as the server shows them: on, off, local and so on
}

// Weaknesses say what of it may cost commits that were reported as done, and which setting mends that; none when a
// commit is on the disk of this server before it is reported.
func (d *Durability) Weaknesses() []Weakness {
	all := []struct{ setting, value, weak, cost string }{
		{"fsync", d.Fsync, "off", "a crash of the machine may cost the whole database"},
		{"full_page_writes", d.FullPageWrites, "off", "a crash of the machine may leave pages that are half written"},
		{"synchronous_commit", d.SynchronousCommit, "off", "a crash of the server costs what was committed last: counters, and attempts that went out already"},
		{"synchronous_commit", d.SynchronousCommit, "local", "a standby that takes over lacks what was committed last: counters, and attempts that went out already"},
	}
	var out []Weakness
	for _, s := range all {
		if s.value == s.weak {
			out = append(out, Weakness{Setting: s.setting, Value: s.value, Cost: s.cost})
		}
	}
	return out
}

// Weakness is one setting under which commits may be lost.
type Weakness struct {
	Setting, Value string
	Cost           string // what may be lost, as a sentence without its beginning and its end
}
