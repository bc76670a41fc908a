package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/config"
)

// publisher publishes events to sms.status as a dispatcher would.
type publisher struct {
	t      *testing.T
	client *kgo.Client
}

func newPublisher(t *testing.T, address string) *publisher {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(address),
		kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return &publisher{t: t, client: client}
}

// event publishes one event; more are further members of its JSON.
func (p *publisher) event(id string, seq int, state, more string) {
	p.t.Helper()
	if more != "" {
		more = "," + more
	}
	name := fmt.Sprintf(`"id":%q,`, id)
	if strings.Contains(more, "conflicting_id") {
		name = ""
	}
	value := fmt.Sprintf(`{%s"state":%q,"seq":%d,"at":"2026-11-21T10:00:00.%06dZ","lane":"otp"%s}`,
		name, state, seq, seq, more)
	p.raw(id, value)
}

func (p *publisher) raw(id, value string) {
	p.t.Helper()
	r := &kgo.Record{Topic: "sms.status", Key: []byte(id), Value: []byte(value)}
	if err := p.client.ProduceSync(p.t.Context(), r).FirstErr(); err != nil {
		p.t.Fatal(err)
	}
}

// threeMessages publishes the events of three messages, one event twice.
func (p *publisher) threeMessages() {
	p.t.Helper()
	p.event("one", 1, "sending", `"channel":"a","attempt":1,"reason":"first_choice"`)
	p.event("two", 1, "sending", `"channel":"b","attempt":1`)
	p.raw("none", `not an event`)
	p.event("one", 2, "accepted", `"channel":"a","attempt":1`)
	p.event("one", 1, "sending", `"channel":"a","attempt":1,"reason":"first_choice"`)
	p.event("one", 2, "accepted", `"channel":"a","attempt":1`)
	p.event("two", 2, "failed",
		`"channel":"b","attempt":1,"reason":"expired","code":"bad\u001b[31m code"`)
	p.event("three", 1, "dead", `"reason":"bad_field","detail":"labels is not an object"`)
	p.raw("sms.otp/3/17",
		`{"state":"dead","at":"2026-11-21T10:00:01.000000Z","lane":"otp","reason":"conflict",`+
			`"conflicting_id":"four","topic":"sms.otp","partition":3,"offset":17}`)
	p.event("four", 1, "rejected", "")
}

// seen lists id, seq and state of each line of JSON.
func seen(t *testing.T, out string) (all []string) {
	t.Helper()
	for line := range strings.Lines(out) {
		var e statusEvent
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: got %s", err, line)
		}
		all = append(all, fmt.Sprintf("%s %d %s", e.ID, e.Seq, e.State))
	}
	slices.Sort(all)
	return all
}

func TestTailUntilFinalShowsEachEventOnceAndEndsWithTheMessage(t *testing.T) {
	t.Parallel()
	setting, address := broker(t, "sms.status")
	newPublisher(t, address).threeMessages()
	for _, c := range []struct {
		args []string
		want []string
		code int
	}{
		{[]string{"--id", "one"}, []string{"one 1 sending", "one 2 accepted"}, exitOK},
		{[]string{"--id", "two"}, []string{"two 1 sending", "two 2 failed"}, exitFailed},
		{
			[]string{"--id", "one", "--id", "two"},
			[]string{"one 1 sending", "one 2 accepted", "two 1 sending", "two 2 failed"},
			exitFailed,
		},
		{
			[]string{
				"--id", "one", "--id", "two", "--state", "failed", "--state", "sending",
				"--channel", "b",
			},
			[]string{"two 1 sending", "two 2 failed"},
			exitFailed,
		},
		{[]string{"--id", "three", "--lane", "bulk"}, nil, exitFailed},
		{[]string{"--id", "four", "--state", "rejected"}, []string{"four 1 rejected"}, exitFailed},
	} {
		got := dispatcher(t, "", []string{setting},
			append([]string{"tail", "--until-final", "--format", "json"}, c.args...)...)
		if events := seen(t, got.out); !slices.Equal(events, c.want) || got.code != c.code {
			t.Errorf("%v: %v, code %d %s; want %v, code %d", c.args, events, got.code, got.err,
				c.want, c.code)
		}
	}
	got := dispatcher(t, "", []string{setting}, "tail", "--until-final", "--id", "two",
		"--id", "three", "--since", "1h")
	for _, want := range []string{
		"two  failed ", "reason=expired", `code="bad\x1b[31m code"`, "lane=otp", "channel=b",
		`detail="labels is not an object"`,
	} {
		if !strings.Contains(got.out, want) {
			t.Errorf("%q is missing in\n%s", want, got.out)
		}
	}
	if strings.Contains(got.out, "\x1b") {
		t.Error("a control character reaches the terminal")
	}
	rows := dispatcher(t, "", []string{setting}, "tail", "--until-final", "--id", "one",
		"--format", "csv")
	lines := strings.Split(strings.TrimSpace(rows.out), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[0], "at,id,seq,state,lane,") ||
		!strings.Contains(lines[2], ",one,2,accepted,otp,") {
		t.Errorf("got %q", lines)
	}
}

// The channel sends receipts, so accepted is not final.
func TestTailWaitsForTheReceiptWhereOneIsExpected(t *testing.T) {
	t.Parallel()
	setting, address := broker(t, "sms.status")
	routing := strings.Replace(testRouting, "provider: sandbox",
		"provider: sandbox, receipts: {within: 1h}", 1)
	p := newPublisher(t, address)
	p.threeMessages()
	p.event("one", 3, "delivered", `"channel":"a","attempt":1`)
	got := dispatcher(t, "",
		[]string{setting, "DISPATCHER_ROUTING_FILE=" + write(t, "routing.yaml", routing)}, "tail",
		"--until-final", "--id", "one", "--format", "json")
	events := seen(t, got.out)
	if !slices.Equal(events, []string{"one 1 sending", "one 2 accepted", "one 3 delivered"}) ||
		got.code != exitOK {
		t.Errorf("%v: got %+v", events, got)
	}
}

// syncWriter signals each write on a channel.
type syncWriter struct {
	mu    sync.Mutex
	buf   bytes.Buffer // guarded by mu
	wrote chan string
}

func (w *syncWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrote <- string(p)
	return w.buf.Write(p)
}

// TestTailShowsEventsUntilItIsStopped: tail shows events from now on, not earlier ones, until it is
// stopped.
func TestTailShowsEventsUntilItIsStopped(t *testing.T) {
	t.Parallel()
	_, address := broker(t, "sms.status")
	p := newPublisher(t, address)
	p.event("old", 1, "sending", "")
	ctx, interrupt := context.WithCancel(t.Context())
	s := settingsFor(address)
	from, err := follow(ctx, s, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	defer from.close()
	out := &syncWriter{wrote: make(chan string, 10)}
	tail := &tailer{flags: &tailFlags{}, events: newEventPrinter(out, formatTable)}
	done := make(chan error, 1)
	go func() { done <- from.each(ctx, tail.take) }()
	p.event("new", 1, "sending", "")
	if line := <-out.wrote; !strings.Contains(line, "new  sending") {
		t.Errorf("shown: %s", line)
	}
	interrupt()
	if err := <-done; err == nil {
		t.Error("tail ended without being stopped")
	}
}

// TestTailThatIsStoppedBeforeTheEndHasNotSucceeded, as a script would believe after exit code 0.
func TestTailThatIsStoppedBeforeTheEndHasNotSucceeded(t *testing.T) {
	t.Parallel()
	setting, address := broker(t, "sms.status")
	newPublisher(t, address).event("one", 1, "sending", "")
	ctx, stop := context.WithCancel(t.Context())
	var errs bytes.Buffer
	code := execute(ctx, &cli{
		out: &firstWrite{then: stop}, err: &errs, env: []string{setting},
		load: settingsOf(t, []string{setting}),
	}, []string{"tail", "--until-final", "--id", "one"})
	if code != exitInterrupted {
		t.Errorf("got exit code %d, %s", code, &errs)
	}
}

func TestTailRefusesWhatHasNoEnd(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"--until-final needs --id":      {"--until-final"},
		`--state "sent" is none of`:     {"--state", "sent"},
		"--since must not be negative":  {"--since", "-1s"},
		"--wait follows one message":    nil,
		"--timeout must be above 0":     nil,
		"the brokers have no topic sms": nil,
	} {
		var got result
		switch want {
		case "--wait follows one message":
			got = dispatcher(t, "", nil, "send", "--wait", "--file", "x.csv")
		case "--timeout must be above 0":
			got = dispatcher(t, "", nil, "send", "--wait", "--to", "+447700900123", "--text", "x",
				"--timeout", "0s")
		case "the brokers have no topic sms":
			setting, _ := broker(t)
			got = dispatcher(t, "", []string{setting}, "tail")
		default:
			got = dispatcher(t, "", nil, append([]string{"tail"}, args...)...)
		}
		if got.code != exitUsage || !strings.Contains(got.err, want) {
			t.Errorf("want %q: %+v", want, got)
		}
	}
}

// answer reads the message that send publishes, and publishes events for it as a dispatcher would.
func answer(t *testing.T, address, topic string, events ...[2]string) {
	t.Helper()
	p := newPublisher(t, address)
	reader, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.ConsumeTopics(topic),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { reader.Close(); <-done })
	go func() {
		defer close(done)
		records := reader.PollFetches(t.Context()).Records()
		if len(records) == 0 {
			return // the test is over
		}
		for i, e := range events {
			p.event(string(records[0].Key), i+1, e[0], e[1])
		}
	}()
}

func TestSendWaitEndsWithTheMessage(t *testing.T) {
	t.Parallel()
	const receipts = "receipts"
	for name, c := range map[string]struct {
		events  [][2]string
		routing string
		code    int
		want    string
	}{
		"delivered": {
			[][2]string{
				{"sending", ""}, {"accepted", `"channel":"a"`}, {"delivered", `"channel":"a"`},
			},
			receipts, exitOK, "was delivered by channel a",
		},
		"accepted, no receipt to come": {
			[][2]string{{"sending", ""}, {"accepted", `"channel":"b"`}},
			receipts, exitOK,
			"was accepted by channel b, whose receipts are not expected",
		},
		"accepted, nothing is known": {
			[][2]string{{"accepted", `"channel":"a"`}},
			"", exitOK,
			"whether a receipt follows is not known here",
		},
		"undelivered": {
			[][2]string{
				{"accepted", `"channel":"a"`}, {"undelivered", `"channel":"a","cause":"absent"`},
			},
			receipts, exitFailed, "was undelivered: absent",
		},
		"no receipt": {
			[][2]string{{"no_receipt", `"channel":"a"`}},
			receipts, exitFailed,
			"was accepted by channel a, and no receipt came",
		},
		"rejected": {
			[][2]string{{"rejected", `"reason":"opted_out"`}},
			"", exitFailed,
			"was rejected: opted_out",
		},
		"failed": {
			[][2]string{{"waiting", `"reason":"no_slot"`}, {"failed", `"reason":"expired"`}},
			"",
			exitFailed, "failed: expired",
		},
		"dead": {
			[][2]string{{"dead", `"reason":"no_route","detail":"no route matches"`}},
			"",
			exitFailed, "is dead: no_route: no route matches",
		},
		"an id of another message": {
			[][2]string{
				{
					"dead", `"reason":"conflict","conflicting_id":"m-1",` +
						`"topic":"sms.transactional","partition":0,"offset":0`,
				},
			},
			"", exitFailed, "m-1 is dead: conflict",
		},
		"unknown for good": {
			[][2]string{{"unknown", ""}, {"unknown", `"reason":"ambiguous_final"`}},
			"", exitFailed,
			"is unknown: ambiguous_final",
		},
		"still under way": {
			[][2]string{{"sending", ""}}, "", exitFailed, "is still sending after",
		},
		"no dispatcher": {nil, "", exitFailed, `no event came within`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			setting, address := broker(t, "orders", "sms.transactional", "sms.status")
			env, topic, timeout := []string{setting}, "sms.transactional", "1m"
			if c.routing != "" {
				routing := strings.Replace(testRouting, "provider: sandbox",
					"provider: sandbox, receipts: {within: 1h}", 1)
				env = append(env, "DISPATCHER_ROUTING_FILE="+write(t, "routing.yaml", routing))
				topic = "orders"
			}
			switch {
			case strings.Contains(c.want, "is still"): // the event comes before, on a busy machine too
				timeout = "15s"
			case strings.Contains(c.want, "no event"):
				timeout = "3s"
			}
			answer(t, address, topic, c.events...)
			args := []string{
				"send", "--to", "+447700900123", "--text", "hush", "--id", "m-1", "--wait",
				"--timeout", timeout,
			}
			got := dispatcher(t, "", env, args...)
			if got.code != c.code || !strings.Contains(got.out+got.err, c.want) ||
				strings.Contains(got.out+got.err, "0900123") ||
				strings.Contains(got.out+got.err, "hush") {
				t.Errorf("%+v; want %q", got, c.want)
			}
		})
	}
}

func TestSendWaitAsJSONIsOneObject(t *testing.T) {
	t.Parallel()
	setting, address := broker(t, "sms.otp", "sms.status")
	answer(t, address, "sms.otp", [2]string{"sending", ""},
		[2]string{"dead", `"reason":"conflict"`})
	got := dispatcher(t, "", []string{setting}, "send", "--to", "+447700900123", "--text", "x",
		"--lane", "otp", "--wait", "--format", "json")
	var printed struct {
		Sent     int64        `json:"sent"`
		LastID   string       `json:"last_id"`
		Final    *statusEvent `json:"final"`
		TimedOut bool         `json:"timed_out"`
	}
	d := json.NewDecoder(strings.NewReader(got.out))
	if err := d.Decode(&printed); err != nil {
		t.Fatalf("%v: got %+v", err, got)
	}
	if _, err := d.Token(); err != io.EOF {
		t.Error("there is more than one object")
	}
	if printed.Sent != 1 || printed.Final == nil || printed.Final.ID != printed.LastID ||
		printed.Final.Reason != "conflict" || printed.TimedOut || got.code != exitFailed {
		t.Errorf("%+v %+v", printed, got)
	}
}

// The lines cannot show a number or a text: statusEvent has no field for them.
func TestEventsOfTheSchemaAreShownWhole(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	raw := envelope.AppendStatus(nil, envelope.Status{
		ID: "i", State: "undelivered", At: at, Lane: "otp", Tenant: "shop", Route: "r",
		Channel: "a", Attempt: 2,
		Reason: "re", Cause: "ca", Code: "co", Reference: "ref", Segments: 3,
		PossibleDuplicate: true,
	})
	var e statusEvent
	if err := json.Unmarshal(raw, &e); err != nil {
		t.Fatal(err)
	}
	const want = "2026-11-21T10:00:00.000000Z  i  undelivered  lane=otp  tenant=shop  route=r  " +
		"channel=a  attempt=2  reason=re  cause=ca  code=co  segments=3  possible_duplicate"
	if got := e.line(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func settingsFor(address string) *config.Settings {
	return &config.Settings{KafkaBrokers: []string{address}, StatusTopic: "sms.status"}
}
