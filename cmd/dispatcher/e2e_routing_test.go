package main

import (
	"encoding/json"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/config/tier"
)

// command runs the program against the stage and returns its output.
func (s *stage) command(args ...string) string {
	s.t.Helper()
	got := s.ask(nil, args...)
	if got.code != exitOK {
		s.t.Fatalf("dispatcher %s: %+v", strings.Join(args, " "), got)
	}
	return got.out
}

// ask runs a command with the settings of the stage and further ones.
func (s *stage) ask(own map[string]string, args ...string) result {
	s.t.Helper()
	all := maps.Clone(s.settings)
	maps.Copy(all, own)
	var env []string
	for name, value := range all {
		env = append(env, "DISPATCHER_"+name+"="+value)
	}
	return dispatcher(s.t, "", env, args...)
}

// report returns today's report. The exit code is not checked: the report may contain findings.
func (s *stage) report() (day report.Daily) {
	s.t.Helper()
	got := s.ask(nil, "report", "daily", "--format", "json")
	err := json.Unmarshal([]byte(got.out), &day)
	if err != nil || got.code == exitUsage || (got.code == exitFailed) != day.Found() {
		s.t.Fatalf("%v: got %+v", err, got)
	}
	return day
}

// now returns the time of the database's clock.
func (s *stage) now() time.Time {
	s.t.Helper()
	return queryOne[time.Time](s.t, s.postgres, `select clock_timestamp()`)
}

// change runs a command that changes the routing. It returns the new version and the database's
// time after it: claims from then on must use that version.
func (s *stage) change(args ...string) (version int64, since time.Time) {
	s.t.Helper()
	out := s.command(append(args, "--reason", "the story wants it", "--author", "e2e",
		"--format", "json")...)
	var got struct {
		Version int64 `json:"version"`
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || got.Version == 0 {
		s.t.Fatalf("%s printed %s", strings.Join(args, " "), out)
	}
	return got.Version, s.now()
}

// stream publishes messages steadily until stop is closed, and then sends their number.
func (s *stage) stream(story string, stop <-chan struct{}) <-chan int {
	total := make(chan int, 1)
	go func() {
		all, n := messages(story, 100_000), 0
		defer func() { total <- n }()
		for n < len(all) {
			select {
			case <-stop:
				return
			case <-s.t.Context().Done():
				return
			case <-time.After(20 * time.Millisecond):
			}
			if s.publishWhenAble("bulk", all[n:n+10]) != nil {
				return // the test has ended
			}
			n += 10
		}
	}()
	return total
}

// TestRoutingChangesUnderTraffic: while two processes send a steady stream, weights are set, a
// channel is drained, one is added, one is removed, and all of it is rolled back. Each change holds
// for every claim after it, nothing is lost or sent twice, and every choice can be derived again.
func TestRoutingChangesUnderTraffic(t *testing.T) {
	t.Parallel()
	s := newStage(t, stageConfig{})
	added := s.carrier(&channel{name: "d", behaviour: quick()})
	s.runAll(2)
	s.joined(2)
	stop := make(chan struct{})
	total := s.stream("live", stop)
	// carries waits until a channel has accepted messages of a version.
	carries := func(version int64, channel string) {
		t.Helper()
		tier.Within(t, stepTimeout,
			"channel "+channel+" carries messages of version "+strconv.FormatInt(version, 10),
			func() bool {
				return s.count(`select count(*) from dispatcher.all_attempts a
					join dispatcher.messages m on m.seq = a.message_seq
					where a.channel = $1 and m.routing_version = $2 and a.outcome = 'accepted'`,
					channel, version) > 20
			})
	}
	// only reports first attempts between two times that went to other channels or were made under
	// another version.
	only := func(version int64, from, to time.Time, channels ...string) {
		t.Helper()
		for _, c := range query(t, s.postgres, pgx.RowToStructByPos[pair], `
			select distinct a.channel, m.routing_version::text from dispatcher.all_attempts a
			join dispatcher.messages m on m.seq = a.message_seq
			where a.attempt = 1 and a.claimed_at > $1 and a.claimed_at < $2`, from, to) {
			if !strings.Contains(strings.Join(channels, " "), c.Key) ||
				c.Value != strconv.FormatInt(version, 10) {
				t.Errorf("under version %d, which has channels %v, a message went to %s under "+
					"version %s",
					version, channels, c.Key, c.Value)
			}
		}
	}
	carries(1, "c")

	weights, since := s.change("weights", "set", "default", "a=50", "b=50", "c=0")
	carries(weights, "a")
	carries(weights, "b")
	only(weights, since, s.now(), "a", "b")

	drained, since := s.change("channel", "drain", "a")
	carries(drained, "b")
	only(drained, since, s.now(), "b", "c")

	document := s.command("routing", "show")
	grown := strings.Replace(document, "\nroutes:",
		"\n  d: {provider: smpp, settings: {address: \""+added+"\", system_id: e2e}}\nroutes:", 1)
	s.write("grown.yaml", strings.Replace(grown, "b: 50", "b: 20, d: 80", 1))
	wider, since := s.change("routing", "apply", s.path("grown.yaml"), "--expect-version",
		strconv.FormatInt(drained, 10))
	carries(wider, "d")
	only(wider, since, s.now(), "b", "c", "d")

	s.write("shrunk.yaml", without(s.read("grown.yaml"), "a"))
	smaller, since := s.change("routing", "apply", s.path("shrunk.yaml"))
	carries(smaller, "d")
	only(smaller, since, s.now(), "b", "c", "d")
	tier.Within(t, stepTimeout, "the connections to the removed channel are closed", func() bool {
		stats := s.carriers["a"].Stats()
		return stats.Unbinds == stats.Binds
	})

	back, since := s.change("routing", "rollback", "1")
	carries(back, "a")
	only(back, since, s.now(), "a", "b", "c")

	close(stop)
	n := <-total
	s.settled(n)
	s.checkNoneTwice()
	if got := s.tally()["accepted"]; got != n {
		t.Errorf("%d of %d messages are accepted: %v", got, n, s.tally())
	}
	s.checkVerified(n)
	history := s.command("routing", "history")
	for _, want := range []string{"the story wants it", "e2e"} {
		if strings.Count(history, want) < 5 {
			t.Errorf("the history does not have %q for each change:\n%s", want, history)
		}
	}
}

// without removes a channel and its weight from a document that has each channel on a line of its
// own.
func without(document, channel string) string {
	var kept []string
	for line := range strings.Lines(document) {
		if !strings.HasPrefix(strings.TrimSpace(line), channel+": {") {
			kept = append(kept, line)
		}
	}
	return strings.Replace(strings.Join(kept, ""), "weights: {"+channel+": 50, ", "weights: {", 1)
}

// TestWaitingMessagesOutliveTheirChannel: messages wait for a channel that is removed, and for a
// route that is deleted. They are planned again under the new routing, and none is lost.
func TestWaitingMessagesOutliveTheirChannel(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	s := newStage(t,
		stageConfig{
			channels: []channel{
				{
					name: "a", weight: "1", document: "limits: [{window: 1d, max: 5}]",
					behaviour: quick(),
				},
			},
		})
	other := s.carrier(&channel{name: "b", behaviour: quick()})
	s.runAll(1)
	s.publish("bulk", messages("outlive", 40))
	tier.Within(t, stepTimeout, "the rest waits for the channel at its limit", func() bool {
		return s.count(`
			select count(*) from dispatcher.message_states where state = 'waiting'
			and next_at is not null`) == 35
	})
	document := s.command("routing", "show")
	document = strings.Replace(document, "\nroutes:",
		"\n  b: {provider: smpp, settings: {address: \""+other+"\", system_id: e2e}}\nroutes:", 1)
	s.write("next.yaml",
		strings.Replace(without(document, "a"), "name: default, match: {}, weights: {a: 1}",
			"name: successor, weights: {b: 1}", 1))
	s.change("routing", "apply", s.path("next.yaml"))
	s.settled(40)
	got := s.count(`
		select count(*) from audit.attempts where channel = 'b' and outcome = 'accepted'`)
	if got != 35 {
		t.Errorf("got %d messages on the successor channel, want 35: %v", got, s.tally())
	}
	s.checkVerified(40)
}

// TestRotatedDrawKeysVerifyOldDays: a new draw key is put first in the file and the process
// restarted. The choices of both halves of the day can be derived again. Without the old key those
// of its half cannot, and the audit reports that.
func TestRotatedDrawKeysVerifyOldDays(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	const each = 50
	s := newStage(t, stageConfig{})
	var all []envelope.Message
	for i, story := range []string{"before", "after"} {
		p := s.runAll(1)[0]
		batch := messages(story, each)
		s.publish("bulk", batch)
		all = append(all, batch...)
		s.settled(len(all))
		p.stop(t)
		if i == 0 {
			s.command("keys", "rotate")
		}
	}
	if n := s.count(`select count(distinct draw_key_id) from audit.messages`); n != 2 {
		t.Fatalf("got draws under %d keys", n)
	}
	s.checkVerified(len(all))

	lines := strings.Split(s.read("draw.key"), "\n")
	var newest []string
	for _, line := range lines {
		if line == stageKey {
			continue
		}
		newest = append(newest, line)
	}
	s.write("draw.key", strings.Join(newest, "\n"))
	verified := s.ask(nil, "audit", "verify", "--format", "json")
	var got struct {
		ByKind map[string]int `json:"by_kind"`
	}
	err := json.Unmarshal([]byte(verified.out), &got)
	want := map[string]int{"draw_key": each, "number_hmac": each, "salt": each}
	if err != nil || verified.code != exitFailed || !maps.Equal(got.ByKind, want) {
		t.Errorf("without the old key: %+v", verified)
	}
}
