package publish

import "dispatcher/ledger"

// waves parts a round so that no wave holds two notices of one key whose order is promised. What is under way together then
// has no order to lose, however the client parts it and whatever the brokers refuse of it. There are as many waves as the most
// such notices that one key has, for a round of the status topic two or three; only the order of different keys changes.
func waves(notices []ledger.Notice) [][]*ledger.Notice {
	var parts [][]*ledger.Notice
	seen := make(map[string]int, len(notices)) // notices by key so far
	for i := range notices {
		n, wave := &notices[i], 0
		if ordered(n) {
			wave = seen[n.Key]
			seen[n.Key]++
		}
		if wave == len(parts) {
			parts = append(parts, nil)
		}
		parts[wave] = append(parts[wave], n)
	}
	return parts
}

// ordered reports whether a notice must not overtake those of its key. Dead letters may: a producer that gives
// thousands of records one id must not hold up the status events of all others by a wave for each.
func ordered(n *ledger.Notice) bool { return n.Kind != ledger.Letter && n.Key != "" }
