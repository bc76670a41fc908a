package app

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"dispatcher/cmd/dispatcher/internal/outage"
	"dispatcher/provider/breaker"
	"dispatcher/provider/smpp"
	"dispatcher/provider/smpp/pdu"
)

// TestTheLogOfAChannel checks the lines of level info and above.
func TestTheLogOfAChannel(t *testing.T) {
	t.Parallel()
	opened := breaker.Change{
		From:  breaker.Closed,
		To:    breaker.Open,
		Stats: breaker.Stats{Failures: 40, Submits: 60, Code: "0x00000008", Coded: 30},
	}
	probing := breaker.Change{From: breaker.Open, To: breaker.HalfOpen}
	failed := breaker.Change{
		From:  breaker.HalfOpen,
		To:    breaker.Open,
		Stats: breaker.Stats{Failures: 1, Submits: 1, Code: "timeout", Coded: 1},
	}
	closed := breaker.Change{
		From:  breaker.HalfOpen,
		To:    breaker.Closed,
		Stats: breaker.Stats{Submits: 1},
	}
	bind := func(number int, phase smpp.Phase, err error) smpp.BindState {
		return smpp.BindState{Bind: number, Role: pdu.CommandBindTransceiver, Phase: phase, Err: err}
	}
	gone := errors.New("connection reset")
	const openLine = `"channel":"a","from":"closed","to":"open","failures":40,` +
		`"submits":60,"failure_share":0.667,"code":"0x00000008",` +
		`"with_code":30,"message":"breaker changed"`
	for name, c := range map[string]struct {
		received []any
		want     []string // level and a part of each line
	}{
		"the breaker opens and closes": {[]any{opened, probing, failed, probing, closed}, []string{
			`warn ` + openLine,
			`info "channel":"a","from":"half_open","to":"closed","failures":0,` +
				`"submits":1,"failure_share":0,"message":"breaker changed"`,
			`info channel a is back after`,
		}},
		"the only bind is lost, and the breaker opens": {
			[]any{
				bind(0, smpp.Bound, nil), bind(0, smpp.Lost, gone), opened,
				bind(0, smpp.Connecting, nil), bind(0, smpp.Failed, gone), probing,
				bind(0, smpp.Bound, nil), closed,
			},
			[]string{
				`info "phase":"bound"`,
				`warn channel a has no SMPP bind that takes messages (connection reset): it is ` +
					`tried again by itself; check address and account`,
				`info ` + openLine,
				`info "phase":"bound"`,
				`info "to":"closed"`,
				`info channel a is back after`,
			},
		},
		"the breaker opens, and the bind is lost": {
			[]any{
				bind(0, smpp.Bound, nil), opened, bind(0, smpp.Lost, gone),
				bind(0, smpp.Bound, nil), closed,
			},
			[]string{
				`info "phase":"bound"`, `warn "code":"0x00000008"`, `info "phase":"bound"`,
				`info "to":"closed"`, `info channel a is back`,
			},
		},
		"the only bind takes nothing": {
			[]any{
				bind(0, smpp.Bound, nil), bind(0, smpp.Bound, smpp.ErrUnhealthy), opened,
				bind(0, smpp.Bound, nil), closed,
			},
			[]string{
				`info "phase":"bound"`, `warn bound, but takes no messages`,
				`info "to":"open"`, `info "phase":"bound"`, `info "to":"closed"`,
				`info channel a is back`,
			},
		},
		"one of two binds is lost for a moment": {
			[]any{
				bind(0, smpp.Bound, nil), bind(1, smpp.Bound, nil), bind(1, smpp.Lost, gone),
				bind(1, smpp.Connecting, nil), bind(1, smpp.Bound, nil),
			},
			[]string{
				`info "bind":0`, `info "bind":1`,
				`info "cause":"connection reset","bind":1,"phase":"lost"`, `info "bind":1`,
			},
		},
		"one of two binds cannot be made again": {
			[]any{
				bind(0, smpp.Bound, nil), bind(1, smpp.Bound, nil), bind(1, smpp.Lost, gone),
				bind(1, smpp.Failed, gone), bind(1, smpp.Failed, gone), bind(1, smpp.Bound, nil),
			},
			[]string{
				`info "bind":0`, `info "bind":1`, `info "phase":"lost"`,
				`warn bind 1 of channel a takes no messages (connection reset)`,
				`info bind 1 of channel a is back after`, `info "bind":1`,
			},
		},
		"the carrier of two binds is away": {
			[]any{
				bind(0, smpp.Bound, nil), bind(1, smpp.Bound, nil), bind(1, smpp.Lost, gone),
				bind(0, smpp.Lost, gone), bind(0, smpp.Failed, gone), bind(1, smpp.Failed, gone),
				bind(1, smpp.Bound, nil), bind(0, smpp.Bound, nil),
			},
			[]string{
				`info "bind":0`, `info "bind":1`, `info "phase":"lost"`,
				`warn channel a has no SMPP bind`,
				`info channel a is back after`, `info "bind":1`, `info "bind":0`,
			},
		},
		"closed on purpose": {
			[]any{
				bind(0, smpp.Bound, nil), bind(0, smpp.Failed, gone), bind(0, smpp.Closed, nil),
				bind(0, smpp.Failed, gone),
			},
			[]string{
				`info "phase":"bound"`, `warn channel a has no SMPP bind`,
				`warn channel a has no SMPP bind`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			log := zerolog.New(&out).Level(zerolog.InfoLevel)
			h := newChannelHealth("a", log, outage.NewLog(log))
			for _, received := range c.received {
				switch received := received.(type) {
				case breaker.Change:
					h.breakerChanged(received)
				case smpp.BindState:
					h.bindChanged(received)
				}
			}
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if len(lines) != len(c.want) {
				t.Fatalf("got %d lines, want %d:\n%s", len(lines), len(c.want), &out)
			}
			for i, want := range c.want {
				level, text, _ := strings.Cut(want, " ")
				if !strings.Contains(lines[i], `"level":"`+level+`"`) ||
					!strings.Contains(lines[i], text) {
					t.Errorf("line %d: got\n%s\nwant %s", i, lines[i], want)
				}
			}
		})
	}
}
