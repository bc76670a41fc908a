package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/cmd/dispatcher/internal/numbers"
	"dispatcher/selector"
)

func TestSendPublishesTheMessageOfItsFlags(t *testing.T) {
	t.Parallel()
	setting, address := broker(t, "sms.otp")
	got := dispatcher(t, "", []string{setting}, "send", "--lane", "otp", "--to", "07700 900123",
		"--default-region", "gb",
		"--text", `Your "code" is <123456>`, "--from", "ACME", "--id", "order-7731-otp",
		"--tenant", "shop",
		"--label", "language=en", "--label", "rank=7", "--label", `zip="123"`,
		"--label", "code=007", "--selector", "quality greaterThanEqual 5",
		"--send-at", "2026-11-21T10:00:00Z", "--expires-at", "2026-11-21T10:10:00Z",
		"--max-price", "0.05", "--metadata", "order=7731")
	if got.code != exitOK || !strings.Contains(got.out, "explain order-7731-otp") {
		t.Fatalf("got %+v, want exit code %d and %q in the output", got, exitOK, "explain order-7731-otp")
	}
	record := published(t, address, "sms.otp", 1)[0]
	message, problem := envelope.Decode(record.Value, false)
	if problem != nil {
		t.Fatal(problem)
	}
	want := envelope.Message{
		ID: "order-7731-otp", To: "+447700900123", From: "ACME", Text: `Your "code" is <123456>`,
		Tenant: "shop",
		Labels: map[string]envelope.Value{
			"language": selector.TextValue("en"), "rank": selector.NumberValue(7),
			"zip": selector.TextValue("123"), "code": selector.TextValue("007"),
		},
		Selectors: []envelope.Selector{
			{Key: "quality", Operator: selector.GreaterThanEqual, Value: selector.NumberValue(5)},
		},
		SendAt: time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC), ExpiresAt: time.Date(2026, 11,
			21, 10, 10, 0, 0, time.UTC),
		MaxPrice: new(int64(50_000)), Metadata: map[string]string{"order": "7731"},
	}
	if !cmp.Equal(message, want) || string(record.Key) != want.ID {
		t.Errorf("key %s %s", record.Key, cmp.Diff(want, message))
	}
}

// TestSendBeginsATrace: the collector gets the trace, and the record refers to it. Without a
// collector the message is sent, too.
func TestSendBeginsATrace(t *testing.T) {
	t.Parallel()
	var traced bytes.Buffer // read after the command has ended
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = traced.ReadFrom(r.Body)
	}))
	t.Cleanup(collector.Close)
	away := httptest.NewServer(http.NotFoundHandler())
	away.Close()
	for name, c := range map[string]struct {
		endpoint, wantErr string
	}{"there": {collector.URL, ""}, "away": {away.URL, "traces are not exported"}} {
		setting, address := broker(t, "sms.otp")
		got := dispatcher(t, "", []string{setting, "OTEL_EXPORTER_OTLP_ENDPOINT=" + c.endpoint}, "send",
			"--lane", "otp", "--to", "+447700900123", "--text", "Hello", "--id", "order-7731")
		if got.code != exitOK || c.wantErr == "" && got.err != "" ||
			!strings.Contains(got.err, c.wantErr) {
			t.Errorf("%s: got %+v", name, got)
		}
		record := published(t, address, "sms.otp", 1)[0]
		if len(record.Headers) != 1 || record.Headers[0].Key != "traceparent" {
			t.Errorf("%s: got %v", name, record.Headers)
		}
	}
	if text := traced.String(); !strings.Contains(text, "sms.otp publish") ||
		strings.Contains(text, "7700900123") || strings.Contains(text, "order-7731") {
		t.Errorf("the collector got %q", text)
	}
}

func TestSendMakesAnIDAndTakesTheLanesFirstTopic(t *testing.T) {
	t.Parallel()
	setting, address := broker(t, "orders")
	env := []string{setting, "DISPATCHER_ROUTING_FILE=" + write(t, "routing.yaml", testRouting)}
	got := dispatcher(t, "", env, "send", "--to", "+447700900123", "--text", "x",
		"--format", "json")
	var printed sendResult
	if err := json.Unmarshal([]byte(got.out), &printed); err != nil || got.code != exitOK {
		t.Fatalf("%v: got %+v", err, got)
	}
	record := published(t, address, "orders", 1)[0]
	if printed.Topic != "orders" || printed.Sent != 1 || string(record.Key) != printed.LastID ||
		len(printed.LastID) < 20 {
		t.Errorf("%+v, key %s", printed, record.Key)
	}
}

func TestSendTakesTheTopicAndTheKindOfInputThatFlagsName(t *testing.T) {
	t.Parallel()
	setting, address := broker(t, "sms.extra")
	got := dispatcher(t, "id,to,text\none,+447700900001,x\n", []string{setting}, "send",
		"--file", "-", "--input", "csv", "--topic", "sms.extra")
	if got.code != exitOK {
		t.Fatalf("got %+v, want exit code %d", got, exitOK)
	}
	if record := published(t, address, "sms.extra", 1)[0]; string(record.Key) != "one" {
		t.Errorf("key %s", record.Key)
	}
}

// badFile has three good lines. Lines 3, 4, 6 and 7 are bad.
const badFile = "\xef\xbb\xbfid,to,text,label.rank\n" +
	"one,+447700900001,\"two\nlines\",1\n" +
	"two,nobody,x,\n" +
	"three,+447700900003,x\n" +
	"four,+447700900004,Grüße,high\n" +
	",+447700900005,x,\n" +
	"six,+447700900006,caf\xe9,\n" +
	"seven,+447700900007,x,\n"

func TestSendSendsNothingOfAFileWithABadLine(t *testing.T) {
	t.Parallel()
	setting, address := broker(t, "sms.bulk")
	file := write(t, "batch.csv", badFile)
	got := dispatcher(t, "", []string{setting}, "send", "--file", file, "--lane", "bulk")
	if got.code != exitFailed || strings.Contains(got.err, "+4477") ||
		strings.Contains(got.err, "nobody") {
		t.Errorf("got %+v, want exit code %d, no %q in the error and no %q in the error",
			got, exitFailed, "+4477", "nobody")
	}
	for _, want := range []string{
		file + ":4: to is not an E.164 number",
		file + ":5: the row is not CSV: wrong number of fields",
		file + ":7: the field id is missing", file + ":8: text is not UTF-8",
		"4 of 7 lines cannot be sent, so nothing was",
	} {
		if !strings.Contains(got.err, want) {
			t.Errorf("%q is missing in %s", want, got.err)
		}
	}
	skipped := dispatcher(t, "", []string{setting}, "send", "--file", file, "--lane", "bulk",
		"--skip-bad")
	if skipped.code != exitFailed || !strings.Contains(skipped.out, "explain seven") {
		t.Errorf("got %+v, want exit code %d and %q in the output", skipped, exitFailed, "explain seven")
	}
	var ids []string
	for _, r := range published(t, address, "sms.bulk", 3) {
		ids = append(ids, string(r.Key))
	}
	if slices.Sort(ids); !slices.Equal(ids, []string{"four", "one", "seven"}) {
		t.Errorf("published %v", ids)
	}
}

func TestSendReadsALongStandardInput(t *testing.T) {
	t.Parallel()
	const n = 25_000 // more than the producer buffers
	setting, address := broker(t, "sms.transactional")
	var in strings.Builder
	for i := range n {
		number := "+447700900123" // stays as it is
		if i%50 == 0 {
			number = "07700900123"
		}
		fmt.Fprintf(&in, `{"id":"m-%d","to":%q,"text":"x"}`+"\n", i, number)
	}
	got := dispatcher(t, in.String(), []string{setting}, "send", "--file", "-",
		"--default-region", "GB", "--format", "json")
	var printed sendResult
	err := json.Unmarshal([]byte(got.out), &printed)
	if err != nil || got.code != exitOK || printed.Sent != n || printed.LastID != "m-24999" {
		t.Fatalf("%v: got %+v", err, got)
	}
	seen := map[string]bool{}
	for _, r := range published(t, address, "sms.transactional", n) {
		seen[string(r.Key)] = true
		message, problem := envelope.Decode(r.Value, false)
		if problem != nil || message.ID != string(r.Key) || message.To != "+447700900123" {
			t.Fatalf("%v %+v under key %s", problem, message, r.Key)
		}
	}
	if len(seen) != n {
		t.Errorf("%d distinct messages", len(seen))
	}
}

func TestSendSaysWhatIsWrongWithItsArguments(t *testing.T) {
	t.Parallel()
	setting, _ := broker(t, "sms.otp")
	for name, tc := range map[string]struct {
		env  []string
		args []string
		want string
	}{
		"nothing": {[]string{setting}, nil, "name --to and --text"},
		"both": {
			[]string{setting},
			[]string{"--file", "x.csv", "--to", "+1"},
			"--file and --to exclude each other",
		},
		"no file": {
			[]string{setting},
			[]string{"--file", "gone.csv"},
			"open gone.csv: no such file or directory; correct the path",
		},
		"a folder": {[]string{setting}, []string{"--file", "."}, "is a folder"},
		"bad number": {
			[]string{setting}, []string{"--to", "12", "--text", "x"}, "to is not an E.164 number",
		},
		"bad label": {
			[]string{setting},
			[]string{"--to", "+447700900123", "--text", "x", "--label", "rank"},
			"--label is not key=value",
		},
		"bad selector": {
			[]string{setting},
			[]string{"--to", "+447700900123", "--text", "x", "--selector", "a above 3"},
			"greaterThanEqual",
		},
		"unknown lane": {
			[]string{setting},
			[]string{"--to", "+447700900123", "--text", "x", "--lane", "otq"},
			`there is no lane "otq"; choose one of otp,`,
		},
		"unknown topic": {
			[]string{setting},
			[]string{"--to", "+447700900123", "--text", "x", "--topic", "nope"},
			"the brokers have no topic nope: create it",
		},
		"unknown country": {
			[]string{setting},
			[]string{"--to", "+447700900123", "--text", "x", "--default-region", "XQ"},
			"not a country code",
		},
		"no brokers": {
			[]string{"A=b"},
			[]string{"--to", "+447700900123", "--text", "x"},
			"DISPATCHER_KAFKA_BROKERS is missing",
		},
		"no broker there": {
			[]string{"DISPATCHER_KAFKA_BROKERS=127.0.0.1:1"},
			[]string{"--to", "+447700900123", "--text", "x"},
			"(127.0.0.1:1) answers (connection refused): check",
		},
		"no database there": {
			[]string{setting, "DISPATCHER_POSTGRES_URL=postgres://u@127.0.0.1:1/x"},
			[]string{"--to", "+447700900123", "--text", "x"},
			"the lane's topic stands in the routing, and PostgreSQL at 127.0.0.1:1",
		},
		"misspelt": {
			[]string{"DISPATCHER_KAFKA_BROKER=x"},
			[]string{"--to", "+447700900123", "--text", "x"},
			"DISPATCHER_KAFKA_BROKER is not a setting",
		},
	} {
		got := dispatcher(t, "", tc.env, append([]string{"send"}, tc.args...)...)
		if got.code != exitUsage || !strings.Contains(got.err, tc.want) ||
			strings.Contains(got.err, "447700900123") || got.out != "" {
			t.Errorf("%s: %+v, want %q", name, got, tc.want)
		}
	}
}

func TestRegionRewritesOnlyTheRecipient(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ in, want string }{
		{`{"to":"07700 900123","text":"to"}`, `{"to":"+447700900123","text":"to"}`},
		{
			`{"metadata":{"to":"0770"},"to" : "07700900123" }`,
			`{"metadata":{"to":"0770"},"to" : "+447700900123" }`,
		},
		{`{"to":"+4915112345678"}`, `{"to":"+4915112345678"}`},
		{`{"to":"0033612345678"}`, `{"to":"+33612345678"}`},
		{`{"to":"hello"}`, `{"to":"hello"}`},
		{`{"to":7700900123}`, `{"to":7700900123}`},
		{`{"to":"07700900123"`, `{"to":"+447700900123"`},
		{`["to"]`, `["to"]`},
		{`{"id":"1"}`, `{"id":"1"}`},
		{
			`{"unknown":1,"to":"07700900123","to":"0770090012"}`,
			`{"unknown":1,"to":"+447700900123","to":"0770090012"}`,
		},
	} {
		if got := string(numbers.Region("GB").Rewrite([]byte(tc.in))); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.in, got, tc.want)
		}
		if got := string(numbers.Region("").Rewrite([]byte(tc.in))); got != tc.in {
			t.Errorf("without a region %s: got %s", tc.in, got)
		}
	}
}

func TestHeadersThatAreNoFieldsAreRefused(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                       "1: the file is empty",
		"id,to,tekst\n":          "1: column 3 is not a field of a message",
		"id,to,to\n":             "1: column 3 has the same name",
		"id,\"to\n":              "1: the header cannot be read as CSV",
		"id, to ,text,label.a\n": "",
	} {
		m := messageReader{csv: true}
		err := m.each(strings.NewReader(in), func(candidate) error { return nil })
		if got := fmt.Sprint(err); (want == "" && err != nil) || !strings.Contains(got, want) {
			t.Errorf("%q: %v, want %q", in, err, want)
		}
	}
}

func TestQuotedWordsCanBeCopiedIntoAShell(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"order-7731": "order-7731", "a b": "'a b'", "it's": `'it'\''s'`, "": "''", "$x": "'$x'",
	} {
		if got := quoted(in); got != want {
			t.Errorf("%q is quoted %s, want %s", in, got, want)
		}
	}
}
