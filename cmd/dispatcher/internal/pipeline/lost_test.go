package pipeline

import (
	"testing"
	"time"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/config"
	"dispatcher/ledger/ledgertest"
	"dispatcher/provider"
	"dispatcher/selector"
)

// loseAttempts stores an attempt of three segments on each channel, from an instance that is gone.
// keyID is that of its first draw key.
func (p *pipeline) loseAttempts(t *testing.T, keyID string, channels ...string) {
	t.Helper()
	if _, err := p.sql.Exec(t.Context(), `
		with busy as (update dispatcher.channels set active = active + 1 where channel = any($1)),
		-- others had time to be heard of
		heard as (update dispatcher.instances set beating_since = now() - interval '1 hour'),
		gone as (insert into dispatcher.instances (region, host, key_id, last_seen)
		  values ('test', 'gone', nullif($2, ''), now() - interval '1 hour') returning id),
		m as (insert into dispatcher.messages
		    (seq, id, lane, state, attempts, expires_at)
		  select `+ledgertest.NewSeq+`, name, 'bulk', 'sending', 1, now() + interval '1 hour'
		  from unnest($1::text[]) name returning seq, id),
		p as (insert into dispatcher.payloads (seq, digest, envelope) select seq, 1, '{}' from m)
		insert into dispatcher.attempts (message_seq, attempt, channel, reason, segments,
		  price_micros, currency, claimed_at, instance)
		select m.seq, 1, m.id, 'first_choice', 3, 0, 'GBP', now() - interval '1 hour', gone.id
		from m, gone`, channels, keyID); err != nil {
		t.Fatal(err)
	}
}

// TestALostAttemptOfAnUnknownChannelMayHaveReceiptsToCome: one for each part. The recovering
// process does not have the channel, or cannot use its settings, and must not treat it as a channel
// without receipts.
func TestALostAttemptOfAnUnknownChannelMayHaveReceiptsToCome(t *testing.T) {
	t.Parallel()
	p := setup(t, func(r *decide.Routing) {
		for i := range r.Channels {
			r.Channels[i].AwaitReceipts = time.Hour
		}
	})
	next := *p.routing
	next.Version = p.applyRouting(t, nil)
	// a cannot be used here, so its capabilities are not known
	if err := p.Apply(&next, map[string]provider.Channel{
		"b": &lookupChannel{scriptedChannel: p.channels["b"]},
		"c": &lookupChannel{
			scriptedChannel: p.channels["c"],
			can:             provider.Capabilities{Receipts: true},
		},
	}); err != nil {
		t.Fatal(err)
	}
	p.loseAttempts(t, testKeys[0].ID(), "a", "b", "c", "gone")
	p.eventually(t, byState, map[string]int64{"unknown": 4})
	p.eventually(t,
		`select concat_ws(' ', channel, 'owes', receipts_owed, 'within',
		  coalesce(receipts_within::text, 'nothing')), count(*)
		from dispatcher.all_attempts group by 1`, map[string]int64{
			"a owes 3 within 01:00:00": 1, "b owes 1 within nothing": 1,
			"c owes 1 within 01:00:00":    1,
			"gone owes 3 within 72:00:00": 1,
		})
}

// TestALostAttemptIsKnownUnderTheKeyOfItsInstance: during a change of keys the recovering process
// may have another first key. Without the key of the lost one it cannot tell under which key the
// provider knows the submission, and neither asks about it nor repeats it.
func TestALostAttemptIsKnownUnderTheKeyOfItsInstance(t *testing.T) {
	t.Parallel()
	channel := &lookupChannel{can: provider.Capabilities{LookupFor: time.Hour}}
	channel.find = func(string) provider.LookupResult { return provider.LookupResult{} }
	p := clarifying(t, channel, decide.Lane{Lane: config.Lane{ClarifyFor: time.Hour}})
	p.loseAttempts(t, testKeys[0].ID(), "a")
	p.loseAttempts(t, selector.Key{7}.ID(), "b")
	p.loseAttempts(t, "", "c")
	p.eventually(t, `select m.id || coalesce(' asks ' || nullif(d.account, ''), ''), count(*)
		from dispatcher.ambiguous d join dispatcher.messages m on m.seq = d.message_seq group by 1`,
		map[string]int64{"a asks a": 1, "b": 1, "c": 1})
}

func TestAKeyIsMadeUnderTheDrawKeyThatIsNamed(t *testing.T) {
	t.Parallel()
	before, after := references(t, 1), references(t, 2, 1)
	for id, want := range map[string]string{
		selector.Key{1}.ID(): before.Key(7, 3), selector.Key{2}.ID(): after.Key(7, 3),
	} {
		if got, known := after.KeyUnder(id, 7, 3); got != want || !known {
			t.Errorf("under %s: %s, known %t, want %s", id, got, known, want)
		}
	}
	if got, known := after.KeyUnder("other", 7, 3); known || got != after.Key(7, 3) {
		t.Errorf("under a key that is not there: %s, known %t", got, known)
	}
}
