package ledger_test

import (
	"testing"
	"time"

	"dispatcher/ledger"
	"dispatcher/provider"
)

// TestWhatTheMessageIsAtFaultForIsMarked, beside others in one batch. The mark goes when the
// message turns out to have been taken.
func TestWhatTheMessageIsAtFaultForIsMarked(t *testing.T) {
	t.Parallel()
	refusal := func(s *ledger.Settlement) {
		s.Outcome, s.State, s.Unfit = provider.Refused, ledger.Retry, true
	}
	silence := func(s *ledger.Settlement) {
		s.Outcome, s.State, s.Unfit = provider.Unknown, ledger.Unknown, true
	}
	known := func(s *ledger.Settlement) { refusal(s); s.Unfit = false }
	answer := func(*ledger.Settlement) {}
	for name, test := range map[string]struct {
		say  []func(*ledger.Settlement) // one after the other
		want string
	}{
		"refused": {[]func(*ledger.Settlement){refusal}, "refused t"},
		"refused, twice": {
			[]func(*ledger.Settlement){refusal, refusal},
			"refused t",
		},
		"refused for another reason": {[]func(*ledger.Settlement){refusal, known}, "refused t"},
		"repeated, and refused":      {[]func(*ledger.Settlement){silence}, "unknown t"},
		"unknown, then refused": {[]func(*ledger.Settlement){func(s *ledger.Settlement) {
			silence(s)
			s.Unfit = false
		}, refusal}, "refused t"},
		"repeated, and then not taken": {[]func(*ledger.Settlement){silence, known}, "refused t"},
		"repeated, not taken, slot held": {[]func(*ledger.Settlement){
			silence,
			func(s *ledger.Settlement) {
				known(s)
				s.Hold = time.Hour
			},
		}, "refused t"},
		"repeated, and then taken": {
			[]func(*ledger.Settlement){silence, answer},
			"accepted f",
		},
		"repeated, taken, slot held": {[]func(*ledger.Settlement){
			silence,
			func(s *ledger.Settlement) {
				s.Hold = time.Hour
			},
		}, "accepted f"},
		"taken":                          {[]func(*ledger.Settlement){answer}, "accepted f"},
		"refused for a channel's reason": {[]func(*ledger.Settlement){known}, "refused f"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, m, see := one(t)
			other := claimAll(t, l, []ledger.Message{message("other")}, "a").Messages[0]
			for i, say := range test.say {
				s := accepted([]ledger.Message{m, other})
				say(&s[0])
				s[0].Notice = nil
				settleAll(t, l, s[:2-i]) // the other one in the first batch
			}
			if got := see(`select concat_ws(' ', outcome, unfit) from audit.attempts
				where message_id = 'm'`); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if got := see(`select concat_ws(' ', outcome, unfit) from audit.attempts
				where message_id = 'other'`); got != "accepted f" {
				t.Errorf("the other one is %s", got)
			}
			r, err := l.Messages.Record(t.Context(), m.ID)
			if err != nil || r.Attempts[0].Unfit != (test.want[len(test.want)-1] == 't') {
				t.Errorf("the record says %t, %v", r.Attempts[0].Unfit, err)
			}
		})
	}
}
