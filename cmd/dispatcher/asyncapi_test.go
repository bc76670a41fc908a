package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/cmd/dispatcher/internal/kafka"
	"dispatcher/config"
)

const docsFolder = "../../docs/"

// asyncAPI holds the parts of docs/asyncapi.yaml that the test reads.
type asyncAPI struct {
	Channels map[string]struct {
		Address  string
		Messages map[string]reference
	}
	Operations map[string]struct {
		Action, Summary string
		Channel         reference
	}
	Components struct {
		Messages map[string]struct {
			Payload, Headers reference
			Examples         []struct {
				Name    string
				Payload any
				Headers map[string]string
			}
		}
		SecuritySchemes map[string]struct{ Type string } `yaml:"securitySchemes"`
	}
}

type reference struct {
	Ref string `yaml:"$ref"`
}

func (r reference) name() string { return path.Base(r.Ref) }

// compiledSchema compiles a schema of docs. It checks formats, too.
func compiledSchema(t testing.TB, file string) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	schema, err := c.Compile(docsFolder + file)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// asJSON converts a value to the types that the validator expects.
func asJSON(value any) any {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	return document
}

func readAsyncAPI(t *testing.T) (doc asyncAPI) {
	t.Helper()
	raw, err := os.ReadFile(docsFolder + "asyncapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// TestTheAsyncAPIDocumentHasTheTopicsOfTheCode: it names the default topics with their direction
// and message, and the consumer groups of the lanes.
func TestTheAsyncAPIDocumentHasTheTopicsOfTheCode(t *testing.T) {
	t.Parallel()
	doc := readAsyncAPI(t)
	s, err := settingsOf(t, nil)()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"sms.status": "send status", "sms.dead": "send dead", "sms.inbound": "send inbound",
		"sms.control": "receive control",
	}
	if s.StatusTopic != "sms.status" || s.DeadTopic != "sms.dead" || s.InboundTopic != "sms.inbound" {
		t.Errorf("unexpected default topics %s, %s and %s", s.StatusTopic, s.DeadTopic, s.InboundTopic)
	}
	for _, lane := range config.StandardLanes() {
		want[lane.Topics[0]] = "receive envelope"
	}
	got := map[string]string{}
	for name, operation := range doc.Operations {
		channel := doc.Channels[operation.Channel.name()]
		for _, message := range channel.Messages {
			got[channel.Address] = operation.Action + " " + message.name()
		}
		lane := operation.Channel.name()
		if lane == "control" {
			lane = kafka.ControlGroup
		}
		if group := kafka.Group(s.KafkaGroup, lane); operation.Action == "receive" && !strings.Contains(operation.Summary, "group "+group+".") {
			t.Errorf("operation %s does not name its group %s", name, group)
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	var mechanisms []string
	for _, scheme := range doc.Components.SecuritySchemes {
		mechanisms = append(mechanisms, scheme.Type)
	}
	slices.Sort(mechanisms)
	if !slices.Equal(mechanisms, []string{"plain", "scramSha256", "scramSha512"}) {
		t.Errorf("security schemes: %v", mechanisms)
	}
}

// TestTheExamplesOfTheAsyncAPIDocumentKeepTheirSchemas: the examples are valid, and the code
// accepts the envelopes. The tests of package envelope validate what the code writes against the
// same schemas, and TestPoisonRecordsBecomeDeadLetters validates dead letters.
func TestTheExamplesOfTheAsyncAPIDocumentKeepTheirSchemas(t *testing.T) {
	t.Parallel()
	for name, message := range readAsyncAPI(t).Components.Messages {
		if len(message.Examples) == 0 {
			t.Errorf("message %s has no example", name)
		}
		for _, example := range message.Examples {
			if file := message.Payload.Ref; file != "" {
				if err := compiledSchema(t, file).Validate(asJSON(example.Payload)); err != nil {
					t.Errorf("%s, example %s: %v", name, example.Name, err)
				}
			}
			if file := message.Headers.Ref; file != "" {
				if err := compiledSchema(t, file).Validate(asJSON(example.Headers)); err != nil {
					t.Errorf("%s, headers of example %s: %v", name, example.Name, err)
				}
			}
			raw, err := json.Marshal(example.Payload)
			if text, ok := example.Payload.(string); ok {
				raw = []byte(text)
			}
			if err != nil {
				t.Fatal(err)
			}
			_, problem := envelope.Decode(raw, false)
			switch {
			case name == "envelope" && problem != nil:
				t.Errorf("example %s: %v", example.Name, problem)
			case name == "dead" && (problem == nil ||
				string(problem.Code) != example.Headers["reason"] ||
				problem.Detail != example.Headers["detail"]):
				t.Errorf("example %s: %v", example.Name, problem)
			}
		}
	}
}
