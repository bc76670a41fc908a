package envelope_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/config/tier"
)

func TestInboundMessagesKeepTheirSchema(t *testing.T) {
	t.Parallel()
	schema := published(t, "inbound.schema.json")
	tier.Check(t, func(rt *rapid.T) {
		m := inbounds().Draw(rt, "inbound")
		raw := envelope.AppendInbound(nil, &m)
		if err := validate(schema, raw); err != nil {
			rt.Fatalf("%v\n%s", err, raw)
		}
	})
}

func TestAnInboundMessageShowsOnlyWhatIsOutOfTheOrdinary(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 10, 0, 0, 5000, time.UTC)
	m := envelope.Inbound{
		ID: "i", Channel: "a", From: "+447700900123", To: "12345", Text: "Hi \"you\"", ReceivedAt: at,
		Parts: 1,
	}
	want := `{"id":"i","channel":"a","from":"+447700900123","to":"12345","text":"Hi \"you\"","received_at":"2026-11-21T10:00:00.000005Z"}`
	if got := string(envelope.AppendInbound(nil, &m)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	m.Tenant, m.Parts, m.Missing, m.Keyword = "shop", 3, []int{0, 2}, "stop"
	want = `{"id":"i","channel":"a","from":"+447700900123","to":"12345","text":"Hi \"you\"","tenant":"shop",` +
		`"received_at":"2026-11-21T10:00:00.000005Z","parts":3,"incomplete":true,"missing":[1,3],"keyword":"stop"}`
	if got := string(envelope.AppendInbound(nil, &m)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestInboundSchemaRefusesWhatHasNoSense(t *testing.T) {
	t.Parallel()
	schema := published(t, "inbound.schema.json")
	const whole = `{"id":"i","channel":"a","from":"1","to":"2","text":"","received_at":"2026-11-21T10:00:00.000000Z"`
	if err := validate(schema, []byte(whole+"}")); err != nil {
		t.Fatal(err)
	}
	for _, raw := range []string{
		`{}`,
		whole + `,"parts":1}`,
		whole + `,"incomplete":false}`,
		whole + `,"incomplete":true}`,
		whole + `,"missing":[1]}`,
		whole + `,"incomplete":true,"missing":[0]}`,
		whole + `,"keyword":"help"}`,
	} {
		if validate(schema, []byte(raw)) == nil {
			t.Errorf("accepted: %s", raw)
		}
	}
}

func TestTheRecordOfTheGuideKeepsTheSchema(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../../../docs/inbound.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(guide), "```json\n")
	example, _, _ := strings.Cut(rest, "```")
	if err := validate(published(t, "inbound.schema.json"), []byte(example)); err != nil {
		t.Errorf("%v in %s", err, example)
	}
}

func inbounds() *rapid.Generator[envelope.Inbound] {
	return rapid.Custom(func(t *rapid.T) envelope.Inbound {
		m := envelope.Inbound{
			ID: printables(1, 64).Draw(t, "id"), Channel: printables(1, 64).Draw(t, "channel"),
			From: rapid.String().Draw(t, "from"), To: rapid.String().Draw(t, "to"),
			Text:       rapid.String().Draw(t, "text"),
			ReceivedAt: instants().Draw(t, "at"), Tenant: rapid.String().Draw(t, "tenant"),
			Parts:   rapid.IntRange(1, 255).Draw(t, "parts"),
			Keyword: rapid.SampledFrom([]string{"", "stop", "start"}).Draw(t, "keyword"),
		}
		for part := range m.Parts {
			if m.Parts > 1 && rapid.Bool().Draw(t, "missing") {
				m.Missing = append(m.Missing, part)
			}
		}
		return m
	})
}
