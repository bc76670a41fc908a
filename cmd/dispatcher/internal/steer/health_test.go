package steer

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"dispatcher/config"
	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// watched is a routing whose route has health weighting: 20 errors a minute, 25 % a step, floor 10
// %.
func watched(pairs ...string) *config.Routing {
	r := routed(pairs...)
	r.Routes[0].Health = &config.Health{
		Errors: 20, Window: time.Minute, Step: 25, Floor: 10,
		Interval: time.Minute, Quiet: 5 * time.Minute,
	}
	return r
}

// failing returns figures with this many errors of channels, in both windows.
func failing(errors map[string]int64) Faults {
	var f []ledger.Fault
	for channel, n := range errors {
		f = append(f, ledger.Fault{Channel: channel, Attempts: n, Errors: n})
	}
	return Faults{Window: f, Quiet: f}
}

func TestHealthMakesTheOneMoveThatIsDue(t *testing.T) {
	t.Parallel()
	long := midnight.Add(-time.Hour)
	for name, tc := range map[string]struct {
		effective map[string]string // if not the configured one
		state     map[string]config.ChannelState
		faults    Faults
		last      time.Time
		want      string // the reason; empty for no move
	}{
		"nothing is wrong": {last: long},
		"the worst goes down": {
			faults: failing(map[string]int64{"a": 21, "c": 23}), last: long,
			want: "default: c 60 -> 45: 23 errors in 1m0s",
		},
		"the first of equals": {
			faults: failing(map[string]int64{"b": 23, "c": 23}), last: long,
			want: "default: b 15 -> 11.25: 23 errors in 1m0s",
		},
		"one error too few": {faults: failing(map[string]int64{"c": 19}), last: long},
		"never moved before": {
			faults: failing(map[string]int64{"c": 20}),
			want:   "default: c 60 -> 45: 20 errors in 1m0s",
		},
		"within the interval": {
			faults: failing(map[string]int64{"c": 23}),
			last:   midnight.Add(-59 * time.Second),
		},
		"the interval is over": {
			faults: failing(map[string]int64{"c": 23}),
			last:   midnight.Add(-time.Minute), want: "default: c 60 -> 45: 23 errors in 1m0s",
		},
		"further down": {
			effective: m("c", "45"),
			faults:    failing(map[string]int64{"c": 23}), last: long,
			want: "default: c 45 -> 30: 23 errors in 1m0s",
		},
		"down to the floor": {
			effective: m("c", "15"),
			faults:    failing(map[string]int64{"c": 23}), last: long,
			want: "default: c 15 -> 6: 23 errors in 1m0s",
		},
		"not below the floor": {
			effective: m("c", "6"), faults: failing(map[string]int64{"c": 23}),
			last: long,
		},
		"then the next worst": {effective: m("c", "6"), faults: failing(map[string]int64{
			"c": 23,
			"a": 22,
		}), last: long, want: "default: a 25 -> 18.75: 22 errors in 1m0s"},
		"all are bad": {
			faults: failing(map[string]int64{"a": 20, "b": 20, "c": 20}),
			last:   long,
		},
		"all but a disabled one": {
			state:  map[string]config.ChannelState{"b": config.Disabled},
			faults: failing(map[string]int64{"a": 20, "c": 20}), last: long,
		},
		"a disabled one has nothing to lose": {
			state:  map[string]config.ChannelState{"c": config.Disabled},
			faults: failing(map[string]int64{"c": 20}), last: long,
		},
		"others are lowered and not yet quiet": {
			effective: m("a", "6.25", "b", "3.75"), last: long,
			faults: Faults{
				Window: failing(map[string]int64{"c": 20}).Window,
				Quiet:  failing(map[string]int64{"a": 30, "b": 20, "c": 20}).Quiet,
			},
		},
		"up after the quiet time": {
			effective: m("c", "30"),
			faults:    failing(map[string]int64{"c": 19}), last: long,
			want: "default: c 30 -> 45: 19 errors in 5m0s",
		},
		"up to rest": {
			effective: m("c", "50"), last: long,
			want: "default: c 50 -> 60: 0 errors in 5m0s",
		},
		"the lowest goes up": {
			effective: m("a", "12.5", "c", "45"), last: long,
			want: "default: a 12.5 -> 18.75: 0 errors in 5m0s",
		},
		"not quiet yet": {
			effective: m("c", "30"),
			faults:    Faults{Quiet: failing(map[string]int64{"c": 20}).Quiet}, last: long,
		},
		"up keeps the interval": {effective: m("c", "30"), last: midnight.Add(-time.Second)},
		"up even if disabled": {
			effective: m("c", "30"),
			state:     map[string]config.ChannelState{"c": config.Draining}, last: long,
			want: "default: c 30 -> 45: 0 errors in 5m0s",
		},
	} {
		r := watched("a", "25", "b", "15", "c", "60", "d", "0")
		for i := range r.Routes[0].Weights {
			if w, ok := tc.effective[r.Routes[0].Weights[i].Channel]; ok {
				r.Routes[0].Weights[i].Weight = selector.MustWeight(w)
			}
		}
		for i := range r.Channels {
			if s, ok := tc.state[r.Channels[i].Name]; ok {
				r.Channels[i].State = s
			}
		}
		got, ok := NextHealthMove(r, &r.Routes[0], tc.faults, tc.last, midnight)
		if got.Reason != tc.want || ok != (tc.want != "") {
			t.Errorf("%s: %q, want %q", name, got.Reason, tc.want)
		}
	}
}

func TestARouteWithoutHealthNeverMoves(t *testing.T) {
	t.Parallel()
	r := routed("a", "1", "b", "1")
	if move, ok := NextHealthMove(r, &r.Routes[0], failing(map[string]int64{"a": 1e6}), time.Time{},
		midnight); ok {
		t.Errorf("got %+v", move)
	}
}

func TestOneChannelIsAllChannels(t *testing.T) {
	t.Parallel()
	r := watched("a", "1", "b", "0")
	if move, ok := NextHealthMove(r, &r.Routes[0], failing(map[string]int64{"a": 1e6}), time.Time{},
		midnight); ok {
		t.Errorf("got %+v", move)
	}
}

// TestHealthWeightingKeepsItsRules runs any route through any errors and then without errors,
// several times in each interval.
func TestHealthWeightingKeepsItsRules(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		r := watched()
		channels := rapid.IntRange(2, 4).Draw(t, "channels")
		weights := ends(t, channels, "weight")
		var pairs []string
		for i := range channels {
			pairs = append(pairs, name(i), weights[name(i)])
		}
		h := &config.Health{
			Errors: 5, Window: time.Minute, Quiet: 2 * time.Minute,
			Step:     rapid.IntRange(5, 99).Draw(t, "step"),
			Floor:    rapid.IntRange(1, 99).Draw(t, "floor"),
			Interval: time.Duration(rapid.IntRange(1, 90).Draw(t, "interval")) * time.Second,
		}
		*r = *routed(pairs...)
		r.Routes[0].Health = h
		var last time.Time
		now := midnight
		pause := h.Interval/3 + time.Second
		step := func(faults Faults) {
			now = now.Add(pause)
			move, ok := NextHealthMove(r, &r.Routes[0], faults, last, now)
			if !ok {
				return
			}
			if !last.IsZero() && now.Sub(last) < h.Interval {
				t.Fatalf("a move %s after the last", now.Sub(last))
			}
			last = now
			check(t, r, faults, move)
		}
		for range rapid.IntRange(0, 60).Draw(t, "looks in trouble") {
			errors := map[string]int64{}
			for i := range channels {
				errors[name(i)] = rapid.Int64Range(0, 8).Draw(t, "errors")
			}
			step(failing(errors))
		}
		steps := (100/h.Step + 2) * channels // each a move up
		for range 3 * steps {
			step(Faults{})
		}
		for _, w := range r.Routes[0].Weights {
			if w.Weight != w.Configured {
				t.Fatalf("the weight of %s is still lowered: %s of %s", w.Channel, w.Weight, w.Configured)
			}
		}
	})
}

// check makes a move and checks its rules.
func check(t *rapid.T, r *config.Routing, faults Faults, move HealthMove) {
	h := r.Routes[0].Health
	bad, weighted := 0, 0
	errors := errorsOf(faults.Window)
	for i := range r.Routes[0].Weights {
		w := &r.Routes[0].Weights[i]
		if w.Configured.IsZero() {
			continue
		}
		weighted++
		if errors[w.Channel] >= h.Errors {
			bad++
		}
		if w.Channel != move.Channel {
			continue
		}
		if w.Weight != move.From || move.From == move.To {
			t.Fatalf("%s while it is at %s", move.Reason, w.Weight)
		}
		w.Weight = move.To
		if floor := share(w.Configured, h.Floor); w.Weight.Rat().Cmp(floor) < 0 ||
			w.Weight.Rat().Cmp(w.Configured.Rat()) > 0 {
			t.Fatalf("%s, which is not between %s and %s", move.Reason, floor.FloatString(12),
				w.Configured)
		}
		if up := move.To.Rat().Cmp(move.From.Rat()) > 0; up != (move.Kind == HealthUp) || up &&
			errors[w.Channel] >= h.Errors {
			t.Fatalf("%s: %s with %d errors", move.Kind, move.Reason, errors[w.Channel])
		}
	}
	if move.Kind == HealthDown && bad == weighted {
		t.Fatalf("%s, although all channels are bad", move.Reason)
	}
	if _, err := selector.NewTable(r.Routes[0].Entries()); err != nil {
		t.Fatalf("%s: got error %v", move.Reason, err)
	}
}

// TestWeightsMoveAsFarAsATableHasRoom: the decimals or the size of the weights leave no room for a
// percentage of them.
func TestWeightsMoveAsFarAsATableHasRoom(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		a, b string
		want []string // effective weights of a on the way down
	}{
		{
			"1", "1099511627775",
			nil,
		}, // 2^40 together: no decimal fits, and the floor is rounded up
		{"3", "1099511627773", []string{"2", "1"}}, // 2.25 and 1.5, of which the first rounds down
		{"0.000000001", "1", nil},
		{"0.000000004", "1", []string{"0.000000003", "0.000000002", "0.000000001"}},
		{"0.00000001", "1", []string{
			"0.000000008", "0.000000006", "0.000000004", "0.000000002",
			"0.000000001",
		}},
	} {
		r := watched("a", tc.a, "b", tc.b)
		r.Routes[0].Health.Interval = 0
		var got []string
		for {
			move, ok := NextHealthMove(r, &r.Routes[0], failing(map[string]int64{"a": 20}),
				time.Time{}, midnight)
			if !ok {
				break
			}
			r.Routes[0].Weights[0].Weight = move.To
			got = append(got, move.To.String())
			if _, err := selector.NewTable(r.Routes[0].Entries()); err != nil {
				t.Errorf("%s: got error %v", move.Reason, err)
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s beside %s: %s", tc.a, tc.b, diff)
		}
	}
}

func TestEffectsAreWhatDiffersFromTheDocument(t *testing.T) {
	t.Parallel()
	r := watched("a", "25", "b", "15", "c", "60")
	r.Routes[0].Weights[1].Weight = selector.MustWeight("7.5")
	for name, tc := range map[string]struct {
		move HealthMove
		want string
	}{
		"one more": {
			HealthMove{Route: "default", Channel: "c", To: selector.MustWeight("45")},
			`{"weights":{"default":{"b":"7.5","c":"45"}}}`,
		},
		"moved": {
			HealthMove{Route: "default", Channel: "b", To: selector.MustWeight("11.25")},
			`{"weights":{"default":{"b":"11.25"}}}`,
		},
		"at rest": {HealthMove{Route: "default", Channel: "b", To: selector.MustWeight("15")}, ""},
	} {
		if diff := cmp.Diff(tc.want, string(effectsAfter(r, tc.move).Encode())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAVersionMovedTheRoutesWhoseEffectsItChanged(t *testing.T) {
	t.Parallel()
	document := &ledger.RoutingVersion{Version: 7, Base: 7}
	first := &ledger.RoutingVersion{
		Version: 8, Base: 7,
		Effects: []byte(`{"weights":{"x":{"a":"1"}}}`),
	}
	second := &ledger.RoutingVersion{
		Version: 9, Base: 7,
		Effects: []byte(`{"weights": {"x": {"a": "1"}, "y": {"b": "2"}}}`),
	}
	rest := &ledger.RoutingVersion{Version: 10, Base: 7}
	for _, tc := range []struct {
		version, before *ledger.RoutingVersion
		want            []string
	}{
		{first, document, []string{"x"}},
		{second, first, []string{"y"}},
		{rest, second, []string{"x", "y"}},
		{&ledger.RoutingVersion{Version: 10, Base: 10}, second, nil},
	} {
		got, err := movedBy(tc.version, tc.before)
		if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
			t.Errorf("version %d: %v %s", tc.version.Version, err, diff)
		}
	}
	if _, err := movedBy(&ledger.RoutingVersion{Version: 8, Base: 7, Effects: []byte(`{`)},
		document); err == nil {
		t.Error("invalid effects were accepted")
	}
	if _, err := movedBy(first, &ledger.RoutingVersion{Effects: []byte(`{`)}); err == nil {
		t.Error("invalid effects were accepted")
	}
}
