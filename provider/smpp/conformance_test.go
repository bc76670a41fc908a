package smpp

import (
	"sync/atomic"
	"testing"
	"time"

	"dispatcher/provider/providertest"
	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/smpp/smpptest"
)

// conformancePassword is looked for in every result of the suite.
const conformancePassword = "hunter2x"

func TestClientConforms(t *testing.T) {
	t.Parallel()
	for name, adjust := range map[string]func(*Config){
		"transceiver": func(*Config) {},
		"pairs":       func(c *Config) { c.Bind, c.Binds = TransmitterReceiver, 2 },
		"window of 1": func(c *Config) { c.Window, c.Binds = 1, 3 },
		"sar":         func(c *Config) { c.LongMessages = SAR },
		"udh16":       func(c *Config) { c.LongMessages = UDH16 },
		"parameters":  func(c *Config) { c.KeyTLV, c.TLVs = 0x1400, pdu.TLVs{pdu.Uint8(0x1401, 7)} },
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

func startConforming(t testing.TB, script providertest.Script, adjust func(*Config)) providertest.Instance {
	srv := startServer(t, smpptest.Config{
		Log: -1, SystemID: "acme", Password: conformancePassword, Behaviour: conformingBehaviour(script),
	})
	if script == nil {
		srv.Close()
	}
	cfg := fastConfig(srv.Addr())
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
	return providertest.Submit{To: "+" + s.To, Part: s.Part - 1, Group: s.Reference, Reference: s.MessageID}
}

// conformingBehaviour answers as the suite's script says.
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
