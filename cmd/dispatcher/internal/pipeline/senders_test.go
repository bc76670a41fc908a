package pipeline

import (
	"testing"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/provider"
)

// TestASenderIsTheMessagesOwnUnlessItsChannelGivesIt: channel a sets senders for messages with no
// or other senders, and refuses all of them; b sets none. A number is the same with and without a
// plus.
func TestASenderIsTheMessagesOwnUnlessItsChannelGivesIt(t *testing.T) {
	t.Parallel()
	p := setup(t, func(r *decide.Routing) {
		onlyA(r)
		r.Channels[1].State = decide.Enabled
		r.Channels[0].Senders = decide.Senders{Default: "ACME", Rules: []decide.SenderRule{
			{Countries: []string{"fr"}, From: "+447700900222"},
			{Countries: []string{"de"}, From: "447700900333"},
			{
				IDs: []string{
					"ACME", "SHOP", "OWN", "447700900222", "+447700900333",
					"447700900444",
				},
				From: "SHOP",
			},
		}}
	})
	p.channels["a"].answer = always(provider.Refused)
	own := map[string]map[string]bool{ // by channel and by the message's sender
		"a": {
			"": false, "ACME": false, "SHOP": false, "OTHER": false, "OWN": true,
			"447700900222": false, "+447700900333": false, "447700900444": true,
		},
		"b": {
			"": false, "ACME": true, "SHOP": true, "OTHER": true, "OWN": true,
			"447700900222": true, "+447700900333": true, "447700900444": true,
		},
	}
	const each = 5
	names := map[string]string{} // senders by id
	for from := range own["a"] {
		jobs := jobsNamed("from-"+from, each)
		for i := range jobs {
			jobs[i].Message.From = from
			jobs[i].Raw = jobs[i].Message.Append(nil)
			names[jobs[i].Message.ID] = from
		}
		p.handle(t, jobs)
	}
	p.eventually(t, byState, map[string]int64{"accepted": int64(len(names))})
	for channel, want := range own {
		seen := map[string]bool{}
		for _, s := range p.channels[channel].submits() {
			from := names[s.ID]
			seen[from] = true
			if s.OwnSender != want[from] {
				t.Errorf("a message from %q left on %s as %q: own %t", from, channel, s.From,
					s.OwnSender)
			}
		}
		if channel == "b" && len(seen) != len(want) {
			t.Errorf("%d of %d kinds went to b", len(seen), len(want))
		}
	}
	if len(p.channels["a"].submits()) == 0 {
		t.Error("nothing went to a")
	}
}
