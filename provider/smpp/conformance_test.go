package smpp

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/breaker"
	"dispatcher/provider/providertest"
	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/smpp/smpptest"
)

// conformancePassword must not appear in any result of the suite.
const conformancePassword = "hunter2x"

func TestClientConforms(t *testing.T) {
	t.Parallel()
	for name, adjust := range map[string]func(*Config){
		"transceiver": func(*Config) {},
		"pairs":       func(c *Config) { c.Bind, c.Binds = TransmitterReceiver, 2 },
		"window of 1": func(c *Config) { c.Window, c.Binds = 1, 3 },
		"sar":         func(c *Config) { c.LongMessages = SAR },
		"udh16":       func(c *Config) { c.LongMessages = UDH16 },
		"parameters": func(c *Config) {
			c.KeyTLV = 0x1400
			c.TLVs = pdu.TLVs{pdu.Uint8(0x1401, 7)}
		},
		"two hosts": func(c *Config) {
			c.Binds, c.Addresses, c.HonorCongestion = 2, append(c.Addresses, c.Addresses...), true
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			providertest.Run(t, providertest.Harness{
				Segments: true,
				Secrets:  []string{conformancePassword},
				Deadline: 400 * time.Millisecond,
				Start: func(t testing.TB, script providertest.Script) providertest.Instance {
					return startConforming(t, script, adjust)
				},
			})
		})
	}
}

func startConforming(
	t testing.TB, script providertest.Script, adjust func(*Config),
) providertest.Instance {
	srv := startServer(t, smpptest.Config{
		Log: -1, SystemID: "acme", Password: conformancePassword,
		Behaviour: conformingBehaviour(script),
	})
	cfg := fastConfig(srv.Addr())
	if script == nil {
		cfg.Addresses = []string{providertest.NoListener}
	}
	cfg.Password, cfg.ResponseTimeout = conformancePassword, time.Minute
	adjust(&cfg)
	return providertest.Instance{
		Channel: startUnready(t, cfg),
		Submits: func() []providertest.Submit {
			var list []providertest.Submit
			for _, s := range srv.Submits() {
				list = append(list, suiteSubmit(s))
			}
			return list
		},
	}
}

func suiteSubmit(s smpptest.Submit) providertest.Submit {
	return providertest.Submit{
		To: "+" + s.To, Part: s.Part - 1, Group: s.Reference, Reference: s.MessageID,
	}
}

// conformingBehaviour answers as the script of the suite says.
func conformingBehaviour(script providertest.Script) smpptest.Behaviour {
	var count atomic.Int64
	return smpptest.Behaviour{Decide: func(s smpptest.Submit) smpptest.Answer {
		a := script(int(count.Add(1)-1), suiteSubmit(s))
		answer := smpptest.Answer{Hold: a.Hold, MessageID: a.Reference}
		switch a.Reply {
		case providertest.Accept:
		case providertest.Reject:
			answer.Status = pdu.StatusInvDstAdr
		case providertest.Refuse:
			answer.Status = pdu.StatusSysErr
		case providertest.Throttle:
			answer.Status = pdu.StatusThrottled
		case providertest.Lose:
			answer.State = smpptest.Dropped
		case providertest.Cut:
			answer.State = smpptest.Cut
		}
		return answer
	}}
}

// TestOnlyAMessagesOwnSenderLeavesTheBreakerClosed: a refused sender of one message does not stop
// messages with other senders, whether the text has one part or several of which some are skipped.
// A refused sender of the channel (from the routing document, a rule or the settings) opens the
// breaker.
func TestOnlyAMessagesOwnSenderLeavesTheBreakerClosed(t *testing.T) {
	t.Parallel()
	const vendors = pdu.Status(0x410)
	for _, c := range []struct {
		name   string
		status pdu.Status
		own    bool
		change func(*Config)
		want   breaker.State
	}{
		{"the message's own", pdu.StatusInvSrcAdr, true, nil, breaker.Closed},
		{"one of the routing document", pdu.StatusInvSrcAdr, false, nil, breaker.Open},
		{
			"what a rule makes of it", pdu.StatusInvSrcAdr, true,
			func(c *Config) { c.SourceRules = []SourceRule{{From: "Other"}} }, breaker.Open,
		},
		{
			"the same as the channel's", pdu.StatusInvSrcAdr, true,
			func(c *Config) { c.From = "ACME" }, breaker.Open,
		},
		{"its type", pdu.StatusInvSrcTON, true, nil, breaker.Closed},
		{
			"its type, of the channel", pdu.StatusInvSrcTON, true,
			func(c *Config) { c.SourceTON = new(byte(5)) }, breaker.Open,
		},
		{"its plan", pdu.StatusInvSrcNPI, true, nil, breaker.Closed},
		{
			"its plan, of the channel", pdu.StatusInvSrcNPI, true,
			func(c *Config) { c.SourceNPI = new(byte(0)) }, breaker.Open,
		},
		{"system", pdu.StatusSysErr, true, nil, breaker.Open},
		{"password", pdu.StatusInvPaswd, true, nil, breaker.Open},
		{"the vendor's own", vendors, true, nil, breaker.Open},
		{
			"the vendor's own, known", vendors, false,
			func(c *Config) { c.Outcomes = map[pdu.Status]StatusMeaning{vendors: unfit} },
			breaker.Closed,
		},
	} {
		for parts, text := range map[string]string{
			"one part": "Hello", "many parts": strings.Repeat("Hello ", 200),
		} {
			t.Run(c.name+", "+parts, func(t *testing.T) {
				t.Parallel()
				srv := startServer(t,
					smpptest.Config{
						Behaviour: smpptest.Behaviour{ErrorEvery: 1, ErrorStatus: c.status},
					})
				cfg := fastConfig(srv.Addr())
				cfg.Window = 4
				if c.change != nil {
					c.change(&cfg)
				}
				b := breaker.New(startClient(t, cfg), breaker.Config{Name: "smpp", Failures: 5})
				for i := range 5 {
					s := submission(i)
					s.Text, s.OwnSender = text, c.own
					r := b.Send(t.Context(), s)
					if r.Outcome != provider.Refused || r.Code != c.status.Code() ||
						r.Unfit != (c.want == breaker.Closed) {
						t.Fatalf("%+v", r)
					}
				}
				if got := b.State(); got != c.want {
					t.Errorf("after five messages the breaker is %v, want %v", got, c.want)
				}
			})
		}
	}
}

// TestAMessageIsUnfitOnlyWhenNothingElseRefusedAPart: if the SMSC refuses one part for its own
// reasons and another for its sender, the SMSC is at fault.
func TestAMessageIsUnfitOnlyWhenNothingElseRefusedAPart(t *testing.T) {
	t.Parallel()
	c := &Client{cfg: Config{Outcomes: map[pdu.Status]StatusMeaning{}}}
	part := func(s pdu.Status) *call {
		return &call{
			outcome: answered, status: s, source: messageAddress{sender: true},
		}
	}
	skipped, unbound := &call{outcome: unsent, why: whySkipped},
		&call{outcome: unsent, why: whyUnbound}
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
	c.cfg.Outcomes[pdu.StatusInvSrcAdr] = StatusMeaning{Outcome: provider.Rejected}
	if sender.unfit(&c.cfg) {
		t.Error("a status that the settings list as rejected is unfit")
	}
}
