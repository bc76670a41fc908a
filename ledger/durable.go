package ledger

// Durability are the settings of the server that decide what of a commit is left after a crash. An
// attempt that went out and is not on record any more goes out again, and its slots are given away
// a second time.
type Durability struct {
	SynchronousCommit, Fsync, FullPageWrites string // as the server shows them: on, off, local and so on
	// SynchronousStandbyNames are those that a commit waits for; where there are none, local is the
	// same as on.
	SynchronousStandbyNames string
	// Followers are the standbys and other receivers of the server's log that are connected now.
	Followers int
}

// Unwaited are the followers when a commit waits for none of them. One that takes over lacks the
// last commits; whether one may is not for the server to say.
func (d *Durability) Unwaited() int {
	if d.SynchronousStandbyNames != "" {
		return 0 // who is not named is not to take over
	}
	return d.Followers
}

// Weaknesses say what of it may cost commits that were reported as done, and which setting fixes
// that; none when a commit is on the disk of this server before it is reported.
func (d *Durability) Weaknesses() []Weakness {
	const last = "what was committed last: counters, and attempts that went out already"
	var out []Weakness
	if d.Fsync == "off" {
		out = append(out, Weakness{"fsync", d.Fsync, true, "a crash of the machine may cost the whole database"})
	}
	if d.FullPageWrites == "off" {
		out = append(out, Weakness{"full_page_writes", d.FullPageWrites, true, "a crash of the machine may leave pages that are half written"})
	}
	switch {
	case d.SynchronousCommit == "off":
		out = append(out, Weakness{"synchronous_commit", d.SynchronousCommit, false, "a crash of the server costs " + last})
	case d.SynchronousCommit == "local" && d.SynchronousStandbyNames != "":
		out = append(out, Weakness{"synchronous_commit", d.SynchronousCommit, false, "a standby that takes over lacks " + last})
	}
	return out
}

// Weakness is one setting under which commits may be lost.
type Weakness struct {
	Setting, Value string
	ServerOnly     bool   // it is set for the whole server, and cannot be for a database or a role
	Cost           string // what may be lost, as a sentence without its beginning and its end
}
