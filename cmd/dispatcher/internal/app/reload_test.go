package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/embedded"
	"dispatcher/config"
	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
	"dispatcher/provider"
	"dispatcher/provider/smpp/smpptest"
)

// reloadRig is a reloader with a real database and a pipeline that only records its calls.
type reloadRig struct {
	*reloader
	t       *testing.T
	carrier *smpptest.Server
	out     *bytes.Buffer
	applied []applied
	refuse  error // the pipeline's next answer
}

// applied are the arguments of a call of the pipeline.
type applied struct {
	Version int64
	Opened  []string
	routing *decide.Routing
	opened  map[string]provider.Channel
}

func newReloadRig(t *testing.T) *reloadRig {
	t.Helper()
	l, err := ledger.Connect(t.Context(),
		ledger.Config{URL: ledgertest.URL(t), Region: "test", Host: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	s := &reloadRig{t: t, out: &bytes.Buffer{}}
	if s.carrier, err = smpptest.Start(smpptest.Config{
		SystemID: "me",
		Password: "right",
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.carrier.Close)
	log := zerolog.New(s.out)
	s.reloader = &reloader{
		versions: l.Routing, log: log, apply: s.take,
		connections: connections{connector: connector{
			secrets: config.NewSecretsFolder(
				t.TempDir(),
			), log: zerolog.Nop(), breakers: newBreakerMetrics(prometheus.NewRegistry()),
			sandbox: &embedded.Carriers{},
		}},
	}
	t.Cleanup(s.connections.connector.sandbox.Close)
	t.Cleanup(s.closeAll)
	return s
}

func (s *reloadRig) take(routing *decide.Routing, opened map[string]provider.Channel) error {
	if s.refuse != nil {
		return s.refuse
	}
	s.applied = append(s.applied,
		applied{routing.Version, slices.Sorted(maps.Keys(opened)), routing, opened})
	return nil
}

func (s *reloadRig) closeAll() {
	// t.Context has ended when cleanups run.
	ctx, cancel := context.WithTimeout(context.Background(), tier.LongestWait)
	defer cancel()
	for _, a := range s.applied {
		for name, channel := range a.opened {
			if err := channel.Close(ctx); err != nil {
				s.t.Errorf("close %s of version %d: %v", name, a.Version, err)
			}
		}
	}
}

// put applies a document and reloads.
func (s *reloadRig) put(document string) error {
	s.t.Helper()
	document = strings.ReplaceAll(document, "CARRIER", s.carrier.Addr())
	doc, err := config.ParseDocument("test", []byte(document))
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.versions.Apply(s.t.Context(),
		NewRouting(doc, nil, "alice", "because", nil)); err != nil {
		s.t.Fatal(err)
	}
	return s.reload(s.t.Context())
}

// write writes a file into the folder of the settings.
func (s *reloadRig) write(name, content string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.connections.connector.secrets.Path(), name),
		[]byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// last returns the latest call of the pipeline.
func (s *reloadRig) last() applied {
	s.t.Helper()
	if len(s.applied) == 0 {
		s.t.Fatal("nothing was applied")
	}
	return s.applied[len(s.applied)-1]
}

func (s *reloadRig) expect(version int64, opened ...string) {
	s.t.Helper()
	got := s.last()
	if got.Version != version || !slices.Equal(got.Opened, opened) {
		s.t.Errorf("version %d with %v opened, want %d with %v", got.Version, got.Opened, version,
			opened)
	}
}

const plainDocument = `
channels:
  a: {provider: smpp, settings: {address: CARRIER, system_id: me, password_file: password},
    limits: [{window: 1s, max: 50}, {window: 1d, max: 1000}],
    price: {currency: GBP, default: "0.028"}, labels: {quality: 5}}
  b: {provider: smpp, settings: {address: CARRIER, system_id: me, password_file: password}}
routes: [{name: default, weights: {a: 25, b: 75}, health: {errors: 5}}]
`

func TestOnlyChangedConnectionsAreOpened(t *testing.T) {
	t.Parallel()
	s := newReloadRig(t)
	s.write("password", "right")
	for _, step := range []struct {
		name     string
		old, new string // a replacement in plainDocument
		opened   []string
	}{
		{"the first", "", "", []string{"a", "b"}},
		{"a weight", "a: 25", "a: 30", nil},
		{"a daily limit", "max: 1000", "max: 10", nil},
		{"a price", "0.028", "0.029", nil},
		{"a label", "quality: 5", "quality: 6", nil},
		{"the pace", "max: 50", "max: 60", nil},
		{
			"a setting", "password_file: password}}", "password_file: password, binds: 2}}",
			[]string{"b"},
		},
		{"a new channel", "\nroutes", "\n  c: {provider: smpp, settings: {address: CARRIER, " +
			"system_id: me, password_file: password}}\nroutes", []string{"b", "c"}},
		{"without it", "", "", nil},
	} {
		if err := s.put(strings.Replace(plainDocument, step.old, step.new, 1)); err != nil {
			t.Fatalf("%s: got error %v", step.name, err)
		}
		if got := s.last().Opened; !slices.Equal(got, step.opened) {
			t.Errorf("%s: opened %v, want %v", step.name, got, step.opened)
		}
	}
}

func TestEffectsComeIntoForceWithoutAConnection(t *testing.T) {
	t.Parallel()
	s := newReloadRig(t)
	s.write("password", "right")
	if err := s.put(plainDocument); err != nil {
		t.Fatal(err)
	}
	_, err := s.versions.ApplyEffects(t.Context(), ledger.NewEffects{
		Expect: 1, Author: "health", Reason: "default: b 75 -> 56.25: 6 errors in 1m0s",
		Overrides: []byte(`{"weights":{"default":{"b":"56.25"}}}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.expect(2)
	if size := s.last().routing.Routes[0].Table.Size(); size != 8125 {
		t.Errorf("size %d, want that of 25 and 56.25", size)
	}
	line := s.lines("routing in force")[1]
	if line["author"] != "health" || line["reason"] != "default: b 75 -> 56.25: 6 errors in 1m0s" {
		t.Errorf("got %v", line)
	}
}

// lines returns the log lines with a message.
func (s *reloadRig) lines(message string) []map[string]any {
	s.t.Helper()
	var out []map[string]any
	for line := range bytes.Lines(s.out.Bytes()) {
		var one map[string]any
		if err := json.Unmarshal(line, &one); err != nil {
			s.t.Fatal(err)
		}
		if text, _ := one["message"].(string); strings.Contains(text, message) {
			out = append(out, one)
		}
	}
	return out
}

func TestTheLogSaysWhatChangedAndWhoDidIt(t *testing.T) {
	t.Parallel()
	s := newReloadRig(t)
	s.write("password", "right")
	for _, text := range []string{
		plainDocument,
		strings.NewReplacer("a: 25", "a: 30.5", "max: 1000}", "max: 5}").Replace(plainDocument),
	} {
		if err := s.put(text); err != nil {
			t.Fatal(err)
		}
	}
	line := s.lines("routing in force")[1]
	want := map[string]any{
		"level": "info", "message": "routing in force", "version": 2.0, "author": "alice",
		"reason": "because", "channels": 2.0, "routes": 1.0,
		"changes": []any{
			"channels.a.limits.1d.messages: 1000 -> 5",
			"routes.default.weights.a: 25 -> 30.5",
		},
	}
	if diff := cmp.Diff(want, line); diff != "" {
		t.Error(diff)
	}
}

func TestALongChangeIsSummedUp(t *testing.T) {
	t.Parallel()
	var many strings.Builder
	many.WriteString("channels:\n")
	for name := range strings.SplitSeq("abcdefghijklmnopqrst", "") {
		many.WriteString("  " + name + ": {provider: sandbox}\n")
	}
	many.WriteString("routes: [{name: default, weights: {a: 1}}]\n")
	small := "channels: {a: {provider: sandbox}}\nroutes: [{name: default, weights: {a: 2}}]\n"
	before, after := versionOf(t, small, ""), versionOf(t, many.String(), "")
	got := summary(before, after)
	if len(got) != maxSummary+1 || !strings.HasSuffix(got[maxSummary], " more") {
		t.Errorf("got %q", got)
	}
	if back := summary(after, before); !slices.Contains(
		back,
		"channels.b.provider removed: sandbox",
	) {
		t.Errorf("got %q", back)
	}
}

// TestASecretOfAChannelIsExchangedUnderAnotherName, without a restart, as docs/deploy.md says. A
// file is read only when its channel is opened.
func TestASecretOfAChannelIsExchangedUnderAnotherName(t *testing.T) {
	t.Parallel()
	s := newReloadRig(t)
	s.write("password", "right")
	if err := s.put(plainDocument); err != nil {
		t.Fatal(err)
	}
	s.write("password", "rewritten")
	if err := s.put(strings.Replace(plainDocument, "a: 25", "a: 26", 1)); err != nil {
		t.Fatal(err)
	}
	s.expect(2)
	s.write("password-2", "another")
	if err := s.put(strings.Replace(plainDocument, "password_file: password}}",
		"password_file: password-2}}", 1)); err != nil {
		t.Fatal(err)
	}
	s.expect(3, "b")
}

// TestABadSecretAffectsOnlyItsChannel: a file that is missing on this machine does not keep the new
// routing from being used.
func TestABadSecretAffectsOnlyItsChannel(t *testing.T) {
	t.Parallel()
	s := newReloadRig(t)
	s.write("password", "right")
	if err := s.put(plainDocument); err != nil {
		t.Fatal(err)
	}
	// b gets another password and window, c is new with the same missing file, and a gets another
	// weight.
	changed := strings.NewReplacer(
		"a: 25",
		"a: 30",
		"password_file: password}}",
		"password_file: missing, window: 7}}",
		"\nroutes",
		"\n  c: {provider: smpp, settings: {address: CARRIER, system_id: me, password_file: "+
			"missing}}\nroutes",
	).Replace(plainDocument)
	if err := s.put(changed); err != nil {
		t.Fatal(err)
	}
	s.expect(2, "c")
	routing := s.last().routing
	if size := routing.Routes[0].Table.Size(); size != 105 {
		t.Errorf("the new weights are not in force: size %d", size)
	}
	// b submits to its former account, which is not that of the routing.
	if a, b := routing.Channels[0].Account, routing.Channels[1].Account; a == "" || b != "" {
		t.Errorf("the accounts are %q of a and %q of b", a, b)
	}
	if ok, why := s.last().opened["c"].Ready(); ok || why != misconfigured {
		t.Errorf("c is ready: %v %s", ok, why)
	}
	if r := s.last().opened["c"].Send(t.Context(),
		provider.Submission{}); r.Outcome != provider.Refused ||
		r.Code != misconfigured {
		t.Errorf("c answers %+v", r)
	}
	for message, channel := range map[string]string{
		"it stays connected with its former settings": "b", "it takes no message here": "c",
	} {
		if lines := s.lines(message); len(lines) != 1 || lines[0]["channel"] != channel ||
			lines[0]["level"] != "error" {
			t.Errorf("%s: got %v", message, lines)
		}
	}
	if got := slices.Sorted(maps.Keys(s.trouble())); !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("readiness shows %v", got)
	}

	// Without a change the pipeline is not called.
	if err := s.reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(s.applied) != 2 {
		t.Errorf("applied %d times", len(s.applied))
	}
	// After other changes b keeps its connection and c its placeholder.
	if err := s.put(strings.Replace(changed, "a: 30", "a: 31", 1)); err != nil {
		t.Fatal(err)
	}
	s.expect(3)

	s.write("missing", "right")
	if err := s.reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.expect(3, "b", "c")
	if got := s.last().routing.Channels[1].Concurrency; got != 7 || s.hasTroubles() {
		t.Errorf("corrected: %d submits at once, still troubles: %v", got, s.hasTroubles())
	}
	if s.last().routing.Channels[1].Account == "" {
		t.Error("corrected: the account is still uncertain")
	}
}

// TestAConnectionThatWouldBillDifferentlyIsNotKept: the audit derives stored choices from the
// current routing. So a connection with old settings is kept only if it splits texts in the same
// way and is of the same kind of provider.
func TestAConnectionThatWouldBillDifferentlyIsNotKept(t *testing.T) {
	t.Parallel()
	const former = "b: {provider: smpp, settings: {address: CARRIER, system_id: me, " +
		"password_file: password}}"
	for name, tc := range map[string]struct {
		former, changed string // of channel b
		kept            bool
	}{
		"another window": {former, "b: {provider: smpp, settings: {address: CARRIER, " +
			"system_id: me, password_file: missing, window: 7}}", true},
		"another alphabet": {former, "b: {provider: smpp, settings: {address: CARRIER, " +
			"system_id: me, password_file: missing, alphabet: latin1}}", false},
		"other long messages": {former, "b: {provider: smpp, settings: {address: CARRIER, " +
			"system_id: me, password_file: missing, long_messages: udh16}}", false},
		"no test any more": {
			strings.Replace(former, "}}", "}, test: true}", 1),
			strings.Replace(former, "password_file: password", "password_file: missing", 1), false,
		},
		"no sandbox any more": {
			"b: {provider: sandbox}",
			strings.Replace(former, "password_file: password", "password_file: missing", 1), false,
		},
		"a pace on top of all": {former, "b: {provider: smpp, settings: {address: CARRIER, " +
			"system_id: me, password_file: missing}, limits: [{window: 1s, max: 3}]}", true},
	} {
		s := newReloadRig(t)
		s.write("password", "right")
		if err := s.put(strings.Replace(plainDocument, former, tc.former, 1)); err != nil {
			t.Fatal(err)
		}
		changed := strings.Replace(plainDocument, former, tc.changed, 1)
		if err := s.put(changed); err != nil {
			t.Fatal(err)
		}
		if tc.kept {
			s.expect(2)
		} else {
			s.expect(2, "b")
			if ok, why := s.last().opened["b"].Ready(); ok || why != misconfigured {
				t.Errorf("%s: b is ready: %v %s", name, ok, why)
			}
		}
		if len(s.lines("it takes no message here")) == 0 == !tc.kept || s.trouble()["b"] == nil {
			t.Errorf("%s: the log says\n%s", name, s.out)
		}
		// Messages are planned as the document says.
		doc := versionOf(t, strings.ReplaceAll(changed, "CARRIER", s.carrier.Addr()), "")
		again, err := Compile(doc, 2)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Repeat("ü[", 60)
		live, audit := s.last().routing.Channels[1].Segments, again.Channels[1].Segments
		if (live == nil) != (audit == nil) || live != nil && live(text) != audit(text) {
			t.Errorf("%s: the plan and the audit split texts differently", name)
		}
		if err := s.put(strings.Replace(changed, "a: 25", "a: 26", 1)); err != nil {
			t.Fatal(err)
		}
		s.expect(3) // the placeholders are kept
		s.write("missing", "right")
		if err := s.reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.expect(3, "b")
		if s.hasTroubles() {
			t.Errorf("%s: b is connected and still has troubles", name)
		}
	}
}

func TestAChannelThatIsPutBackHasNoTroubles(t *testing.T) {
	t.Parallel()
	s := newReloadRig(t)
	s.write("password", "right")
	for _, text := range []string{
		plainDocument,
		strings.Replace(plainDocument, "password_file: password}}", "password_file: missing}}", 1),
		plainDocument,
	} {
		if err := s.put(text); err != nil {
			t.Fatal(err)
		}
	}
	s.expect(3)
	if s.hasTroubles() {
		t.Error("b uses the settings in force, want the old ones")
	}
}

func TestAtTheStartABadSecretIsAnError(t *testing.T) {
	t.Parallel()
	s := newReloadRig(t)
	err := s.put(plainDocument)
	if err == nil || !strings.Contains(err.Error(), "channel a: password_file: ") ||
		!strings.Contains(err.Error(), "channel b: ") ||
		len(s.applied) != 0 {
		t.Errorf("%v, applied %d times", err, len(s.applied))
	}
	s.write("password", "right")
	tokened := strings.Replace(plainDocument, "health: {errors: 5}",
		`fallback: best_worker, scoring: {function: "http://127.0.0.1:1/", token_file: token}`, 1)
	if err := s.put(tokened); err == nil ||
		!strings.Contains(err.Error(), "route default: scoring.token_file: ") {
		t.Errorf("got error %v", err)
	}
}

func TestAMissingTokenAffectsOnlyItsRoute(t *testing.T) {
	t.Parallel()
	s := newReloadRig(t)
	s.write("password", "right")
	tokened := strings.Replace(plainDocument, "health: {errors: 5}",
		`fallback: best_worker, scoring: {function: "http://127.0.0.1:1/", token_file: token}`, 1)
	for _, text := range []string{plainDocument, tokened} {
		if err := s.put(text); err != nil {
			t.Fatal(err)
		}
	}
	s.expect(2)
	if f := s.last().routing.Routes[0].Scoring.Function; f.Token != "" {
		t.Errorf("token %q", f.Token)
	}
	s.write("token", "s3cret\n")
	if err := s.reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if f := s.last().routing.Routes[0].Scoring.Function; f.Token != "s3cret" || s.hasTroubles() ||
		len(s.applied) != 3 {
		t.Errorf("token %q after it was written", f.Token)
	}
	if strings.Contains(s.out.String(), "s3cret") {
		t.Error("the log shows the token")
	}
}

func TestChannelsThatThePipelineRefusesAreClosed(t *testing.T) {
	t.Parallel()
	s := newReloadRig(t)
	s.write("password", "right")
	s.refuse = errors.New("stopped")
	if err := s.put(plainDocument); !errors.Is(err, s.refuse) {
		t.Errorf("got error %v", err)
	}
	// TestMain fails if connections are not closed, so they are opened again here.
	s.refuse = nil
	if err := s.reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.expect(1, "a", "b")
}

// TestAFileThatDiffersFromTheRoutingInForceIsNamed at the start; the document of embedded mode is
// no file.
func TestAFileThatDiffersFromTheRoutingInForceIsNamed(t *testing.T) {
	t.Parallel()
	s := newReloadRig(t)
	const document = "channels: {a: {provider: sandbox}}\nroutes: [{name: r, weights: {a: 1}}]\n"
	if err := s.put(document); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		file, content string
		warned        int
	}{
		{"", "other", 0}, {"/etc/routing.yaml", document, 0}, {"/etc/routing.yaml", "other", 1},
	} {
		s.file = c.file
		s.first = func() (string, []byte, error) { return "built in", []byte(c.content), nil }
		if err := s.begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := s.lines("the routing file differs from the routing in force")
		if len(got) != c.warned {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
