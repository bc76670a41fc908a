package smpp

import (
	"strings"
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/breaker"
	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/smpp/smpptest"
)

// TestASenderThatIsNotRegisteredLeavesTheBreakerClosed: messages of other senders go on over the channel, whether the text is
// one part, or some that leave together and some that are then skipped. Any other refusal opens the breaker.
func TestASenderThatIsNotRegisteredLeavesTheBreakerClosed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		status pdu.Status
		text   string
		want   breaker.State
	}{
		{"sender, one part", pdu.StatusInvSrcAdr, "Hello", breaker.Closed},
		{"sender, many parts", pdu.StatusInvSrcAdr, strings.Repeat("Hello ", 200), breaker.Closed},
		{"system, one part", pdu.StatusSysErr, "Hello", breaker.Open},
		{"system, many parts", pdu.StatusSysErr, strings.Repeat("Hello ", 200), breaker.Open},
		{"password, one part", pdu.StatusInvPaswd, "Hello", breaker.Open},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			srv := startServer(t, smpptest.Config{Behaviour: smpptest.Behaviour{ErrorEvery: 1, ErrorStatus: c.status}})
			cfg := fastConfig(srv.Addr())
			cfg.Window = 4
			b := breaker.New(startClient(t, cfg), breaker.Config{Name: "smpp", Failures: 5})
			for i := range 5 {
				s := submission(i)
				s.Text = c.text
				r := b.Send(t.Context(), s)
				if r.Outcome != provider.Refused || r.Code != c.status.Code() || r.Unfit != (c.want == breaker.Closed) {
					t.Fatalf("%+v", r)
				}
			}
			if got := b.State(); got != c.want {
				t.Errorf("after five it is %v, want %v", got, c.want)
			}
		})
	}
}

// TestAMessageIsUnfitOnlyWhenNothingElseRefusedAPart: a fault of the SMSC beside a fault of the sender is a fault of the SMSC.
func TestAMessageIsUnfitOnlyWhenNothingElseRefusedAPart(t *testing.T) {
	t.Parallel()
	c := &Client{cfg: Config{Outcomes: map[pdu.Status]provider.Outcome{}}}
	part := func(s pdu.Status) *call { return &call{fate: answered, status: s} }
	skipped, unbound := &call{fate: unsent, why: whySkipped}, &call{fate: unsent, why: whyUnbound}
	sender, taken, system := part(pdu.StatusInvSrcAdr), part(pdu.StatusOK), part(pdu.StatusSysErr)
	for name, one := range map[string]struct {
		calls []*call
		want  bool
	}{
		"the sender only":           {[]*call{sender, sender}, true},
		"the sender, rest skipped":  {[]*call{sender, skipped}, true},
		"taken, then the sender":    {[]*call{taken, sender, skipped}, true},
		"the sender and the system": {[]*call{sender, system}, false},
		"the bind went":             {[]*call{sender, unbound}, false},
		"nothing was refused":       {[]*call{taken, skipped}, false},
	} {
		if got := c.allUnfit(one.calls); got != one.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	c.cfg.Outcomes[pdu.StatusInvSrcAdr] = provider.Rejected
	if sender.unfit(&c.cfg) {
		t.Error("what the channel calls rejected is unfit")
	}
}
