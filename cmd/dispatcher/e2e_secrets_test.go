package main

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/config/tier"
	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/smpp/smpptest"
)

// The numbers, texts and secrets of the story. No other string of the program contains any of them.
const (
	secretText     = "Zanzibar-4711"
	secretPassword = "quokka42" // an SMPP password has at most 8 characters
	falsePassword  = "narwhal-17"
	numberStart    = "9996500312" // too long to occur by chance
)

// TestNothingPrintedShowsANumberOrAText: whatever happens to messages, and at every log level, no
// number, text or secret appears in output, metrics, status events or commands.
func TestNothingPrintedShowsANumberOrAText(t *testing.T) {
	t.Parallel()
	s := newStage(t, stageConfig{
		channels: []channel{
			{name: "good", weight: "40", behaviour: quick()},
			{name: "failing", weight: "15", behaviour: smpptest.Behaviour{ErrorEvery: 2}},
			{
				name: "rejecting", weight: "15",
				behaviour: smpptest.Behaviour{ErrorEvery: 2, ErrorStatus: pdu.StatusInvDstAdr},
			},
			{name: "throttling", weight: "10", behaviour: smpptest.Behaviour{Throttle: true}},
			{name: "silent", weight: "10", behaviour: smpptest.Behaviour{DropEvery: 2}},
			{name: "cutting", weight: "10", behaviour: smpptest.Behaviour{CutAfter: 2}},
		},
		lanes:    "  otp: {topics: [%s.otp]}\n  bulk: {topics: [%s.bulk], ttl: 24h}\n",
		settings: map[string]string{"LOG_LEVEL": "trace", "SEND_TIMEOUT": "1s"},
	})
	s.write("carrier.secret", secretPassword)
	s.write("routing.yaml",
		strings.ReplaceAll(s.read("routing.yaml"), "system_id: e2e",
			"system_id: e2e, password_file: carrier.secret"))
	all := secretMessages(tier.Size(120, 1_000))
	p := s.run("dispatcher")
	s.publish("bulk", all[len(all)/4:])
	s.publish("otp", all[:len(all)/4])
	s.publishUnusable(all[0])
	s.settled(len(all) + 5)

	printed := map[string]string{}
	_, printed["/metrics"] = p.get(t, "/metrics")
	_, printed["/readyz"] = p.get(t, "/readyz")
	commands := s.wrongPasswords()
	for _, command := range []string{
		"config", "config --format json", "explain " + all[0].ID, "report daily", "doctor",
	} {
		commands[command] = s.settings
	}
	maps.Copy(printed, s.printedBy(commands))
	printed["status topic"] = s.everyStatus()
	p.stop(t)
	printed["dispatcher"] = p.out.String()
	for where, text := range printed {
		checkNoSecrets(t, where, text, s.secrets())
	}
}

// secretMessages have recognisable numbers and texts.
func secretMessages(n int) []envelope.Message {
	all := messages("secrets", n)
	for i := range all {
		all[i].To = fmt.Sprintf("+%s%03d", numberStart, i)
		// One part, so that no receipt of another part is awaited.
		all[i].Text = secretText + " [" + all[i].ID + "] Your parcel arrives tomorrow."
		all[i].From = fmt.Sprintf("+%s7%03d", numberStart, i)
	}
	return all
}

// publishUnusable publishes five unusable records, with numbers and texts in the wrong places, and
// one whose id is taken.
func (s *stage) publishUnusable(taken envelope.Message) {
	s.t.Helper()
	const number, text = "+" + numberStart + "9999", secretText
	values := []string{
		`{"id":"odd-1","to":"` + number + `x","text":"` + text + `"}`,
		`{"id":"odd-2","to":"` + number + `","text":"` + text + `","` + text + `":1}`,
		`{"id":"odd-3","to":"` + number + `","text":"` + text,
		`{"id":"odd-4","to":["` + number + `"],"text":"` + text + `"}`,
		`{"id":"odd-5","to":"` + number + `","text":"` + text + `","send_at":"` + text +
			`","metadata":{"` + number + `":7}}`,
	}
	records := []*kgo.Record{}
	for i, value := range values {
		records = append(records, record(s.topic("bulk"), fmt.Sprint("odd-", i), []byte(value)))
	}
	taken.Text += " Once more."
	records = append(records, record(s.topic("bulk"), taken.ID, taken.Append(nil)))
	if err := s.client.ProduceSync(s.t.Context(), records...).FirstErr(); err != nil {
		s.t.Fatal(err)
	}
}

// wrongPasswords returns commands with settings that the database or the broker refuses.
func (s *stage) wrongPasswords() map[string]map[string]string {
	s.t.Helper()
	s.write("wrong.secret", falsePassword)
	database, broker, unreadable := maps.Clone(s.settings), maps.Clone(s.settings),
		maps.Clone(s.settings)
	database["POSTGRES_URL"] = withPassword(s.t, s.postgres, falsePassword)
	broker["KAFKA_SASL_MECHANISM"], broker["KAFKA_SASL_USER"],
		broker["KAFKA_SASL_PASSWORD_FILE"] = "PLAIN", "dispatcher", "wrong.secret"
	unreadable["POSTGRES_URL"] = "postgres://dispatcher:" + falsePassword +
		"@127.0.0.1:not-a-port/dispatcher"
	return map[string]map[string]string{
		"run": database, "config --format table": database, "doctor --format json": database,
		"doctor --format table": broker, "run --embedded=false": unreadable,
		"config --format csv": unreadable,
	}
}

// printedBy runs commands in parallel and returns their output.
func (s *stage) printedBy(commands map[string]map[string]string) map[string]string {
	s.t.Helper()
	var running []*process
	for command, settings := range commands {
		running = append(running,
			launch(s.t, command, s.folder, settings, strings.Fields(command)...))
	}
	printed := map[string]string{}
	for _, p := range running {
		p.wait(s.t, stepTimeout)
		printed[p.name] = p.out.String()
	}
	return printed
}

// everyStatus returns the content of the status topic.
func (s *stage) everyStatus() string {
	s.t.Helper()
	want := s.states()
	for id, state := range want {
		if len(id) > 64 { // a record without an id has no events
			delete(want, id)
		} else if state == "" {
			s.t.Errorf("%s has no state", id)
		}
	}
	var all strings.Builder
	for id, events := range s.statuses(want) {
		fmt.Fprintf(&all, "%s %v\n", id, events)
	}
	return all.String()
}

// secrets are the strings that nothing may show.
func (s *stage) secrets() []string {
	password, _ := parseURL(s.t, s.postgres).User.Password()
	return []string{
		numberStart, secretText, secretPassword, falsePassword, "parcel", password, stageKey,
	}
}

func checkNoSecrets(t *testing.T, where, printed string, secrets []string) {
	t.Helper()
	t.Logf("%s: %d bytes", where, len(printed))
	if printed == "" {
		t.Error("there is no output to check")
	}
	for _, secret := range secrets {
		if at := strings.Index(printed, secret); at >= 0 {
			t.Errorf("%s shows %q: %s", where, secret,
				printed[max(0, at-200):min(len(printed), at+100)])
		}
	}
}
