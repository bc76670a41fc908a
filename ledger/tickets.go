package ledger

import "slices"

// freeTickets takes the slots away from attempts whose ticket was shown and that do not keep
// it: it went on to the next attempt, which took no slot of its own, or the message takes a new
// slot or is not going on at all, and then the channel's count sinks, if it is among those that the
// claim has locked; else the slot is held until its time is over.
func (t *Tx) freeTickets() (seqs []int64, numbers []int16) {
	for i := range t.seen.Messages {
		m, d := &t.seen.Messages[i], &t.decisions.Each[i]
		if m.Ticket == nil || d.State == "" || d.State == Waiting {
			continue
		}
		if d.State != Sending || d.Attempt.Ticket == nil {
			at := slices.IndexFunc(t.seen.Channels, func(c ChannelState) bool { return c.Name == m.Pinned })
			if at < 0 {
				continue
			}
			t.seen.Channels[at].Gate.Active.Count--
		}
		seqs, numbers = append(seqs, m.Seq), append(numbers, int16(m.Attempts))
	}
	return seqs, numbers
}
