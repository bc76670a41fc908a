package steer

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/provider"
	"dispatcher/selector"
)

// delivering returns figures of channels in both periods: pairs of accepted and of delivered in
// time.
func delivering(by map[string][2]int64) Faults {
	var f []ledger.Timely
	for channel, n := range by {
		f = append(f, ledger.Timely{Channel: channel, Accepted: n[0], Delivered: n[1]})
	}
	return Faults{WindowTimely: f, QuietTimely: f}
}

// also adds errors in both periods.
func (f Faults) also(errors map[string]int64) Faults {
	f.Window, f.Quiet = failing(errors).Window, failing(errors).Quiet
	return f
}

func TestReceiptsWeighLikeErrors(t *testing.T) {
	t.Parallel()
	type counts = map[string][2]int64
	for name, tc := range map[string]struct {
		effective map[string]string
		off       bool
		faults    Faults
		last      time.Time
		want      string
	}{
		"all deliver": {faults: delivering(counts{"a": {500, 450}, "c": {500, 400}})},
		"one delivers too little": {
			faults: delivering(counts{"a": {500, 450}, "c": {500, 310}}),
			want: "default: c 60 -> 45: 310 of 500 messages in 10m0s delivered within " +
				"2m0s",
		},
		"receipts do not weigh": {
			off: true, faults: delivering(counts{"a": {500, 450}, "c": {500, 310}}),
		},
		"no receipt at all": {
			faults: delivering(counts{"c": {100, 0}}),
			want:   "default: c 60 -> 45: 0 of 100 messages in 10m0s delivered within 2m0s",
		},
		"too few to tell":     {faults: delivering(counts{"c": {99, 0}})},
		"no more than chance": {faults: delivering(counts{"c": {100, 64}})},
		"more than chance": {
			faults: delivering(counts{"c": {100, 63}}),
			want:   "default: c 60 -> 45: 63 of 100 messages in 10m0s delivered within 2m0s",
		},
		"within the interval": {
			faults: delivering(counts{"c": {100, 0}}),
			last:   midnight.Add(-59 * time.Second),
		},
		"the smallest part goes down": {
			faults: delivering(counts{"a": {500, 250}, "c": {500, 200}}),
			want:   "default: c 60 -> 45: 200 of 500 messages in 10m0s delivered within 2m0s",
		},
		"errors go first": {
			faults: delivering(counts{"a": {500, 200}}).also(map[string]int64{"c": 20}),
			want:   "default: c 60 -> 45: 20 errors in 1m0s",
		},
		"all are bad, one for errors": {
			faults: delivering(counts{"a": {500, 200}, "b": {500, 200}}).also(
				map[string]int64{"c": 20}),
		},
		"not below the floor": {
			effective: m("c", "6"), faults: delivering(counts{"c": {100, 0}}),
		},
		"not up while it delivers too little": {
			effective: m("c", "30"),
			faults:    Faults{QuietTimely: delivering(counts{"c": {500, 310}}).QuietTimely},
		},
		"up when it delivers": {
			effective: m("c", "30"), faults: delivering(counts{"c": {500, 420}}),
			want: "default: c 30 -> 45: 0 errors in 10m0s, 420 of 500 messages delivered within " +
				"2m0s",
		},
		"up when there are too few to tell": {
			effective: m("c", "30"), faults: delivering(counts{"c": {20, 0}}),
			want: "default: c 30 -> 45: 0 errors in 10m0s, 0 of 20 messages delivered within 2m0s",
		},
		"one that is lowered for receipts can take nothing over": {
			effective: m("a", "6.25", "b", "3.75"),
			faults: Faults{
				Window: failing(map[string]int64{"c": 20}).Window,
				QuietTimely: delivering(
					counts{"a": {500, 200}, "b": {500, 200}},
				).QuietTimely,
			},
		},
	} {
		r := watched("a", "25", "b", "15", "c", "60", "d", "0")
		h := r.Routes[0].Health
		h.Quiet = 10 * time.Minute
		if !tc.off {
			h.Receipts = &config.HealthReceipts{
				Delivered: 80, Within: 2 * time.Minute, Window: 10 * time.Minute, Least: 100,
			}
		}
		for i := range r.Routes[0].Weights {
			if w, ok := tc.effective[r.Routes[0].Weights[i].Channel]; ok {
				r.Routes[0].Weights[i].Weight = selector.MustWeight(w)
			}
		}
		got, ok := NextHealthMove(r, &r.Routes[0], tc.faults, tc.last, midnight)
		if got.Reason != tc.want || ok != (tc.want != "") {
			t.Errorf("%s: %q, want %q", name, got.Reason, tc.want)
		}
	}
}

// timelyDocument has a channel without receipts.
var timelyDocument = strings.NewReplacer("b: {provider: sandbox}",
	"b: {provider: sandbox, receipts: none}", "quiet: 2m}",
	"quiet: 10m, receipts: {delivered: 80, within: 2m, least: 20}}").Replace(document)

// TestReceiptsMakeAVersionAsErrorsDo: for channels with receipts.
func TestReceiptsMakeAVersionAsErrorsDo(t *testing.T) {
	t.Parallel()
	r := emptyRig(t)
	r.apply(timelyDocument)
	for _, channel := range []string{"a", "b", "c"} {
		r.carry(channel, provider.Accepted, 20)
	}
	r.exec(`update dispatcher.attempts set receipt_state = 'delivered',
		receipt_at = settled_at + case when channel = 'a' then interval '1 minute'
		  else interval '3 minutes' end,
		delivered_at = settled_at + case when channel = 'a' then interval '1 minute'
		  else interval '3 minutes' end where channel <> 'b'`)
	s := r.steerer()
	r.round(s)
	if v, _ := r.current(); v.Version != 1 {
		t.Errorf("version %d (%s) before any receipt had its time", v.Version, v.Reason)
	}
	r.age(4 * time.Minute)
	r.round(r.steerer())
	v, doc := r.current()
	if diff := cmp.Diff(m("a", "25", "b", "15", "c", "45"), effective(doc)); diff != "" {
		t.Error(diff)
	}
	if v.Version != 2 || v.Base != 1 || v.Author != "health" || v.Document != timelyDocument ||
		v.Reason != "default: c 60 -> 45: 0 of 20 messages in 10m0s delivered within 2m0s" {
		t.Errorf("version %d on %d by %s: %s", v.Version, v.Base, v.Author, v.Reason)
	}
	r.age(time.Hour) // and no further message was sent
	r.round(r.steerer())
	if _, doc := r.current(); effective(doc)["c"] != "60" {
		t.Errorf("c at %s after an hour", effective(doc)["c"])
	}
}
