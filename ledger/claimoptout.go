package ledger

// recipientOf is the recipient of a message m. Rows that the release before opt-outs inserted have
// none.
const recipientOf = `coalesce(m.recipient, dispatcher.recipient_of(m.tenant, m.envelope))`

// optedOut is whether a recipient is on the opt-out list, as an expression of a statement that
// answers rows. It looks at the list as of the beginning of its statement, so a claim that begins
// after an opt-out was committed sees it.
//
// While nobody is on the list that is found out once for the statement, and nothing is looked up.
// Otherwise each row costs one descent of the index of those who are on it. A subquery that is
// correlated and scalar is never turned into a hash of the whole list.
func optedOut(recipient string) string {
	return `case when (select exists (select from dispatcher.opt_outs where until is null))
	    then coalesce((select true from dispatcher.opt_outs o where o.recipient = ` + recipient + ` and o.until is null), false)
	    else false end`
}

// bar notes that the recipient of a message has opted out.
func (t *Tx) bar(at int) {
	for len(t.seen.OptedOut) <= at {
		t.seen.OptedOut = append(t.seen.OptedOut, false)
	}
	t.seen.OptedOut[at] = true
}

// IsOptedOut reports whether the recipient of the message at a place in Messages has opted out of
// what its tenant sends.
func (s *Seen) IsOptedOut(at int) bool { return at < len(s.OptedOut) && s.OptedOut[at] }
