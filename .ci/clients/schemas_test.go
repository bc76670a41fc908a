package clients

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// question is one document for a validator.
type question struct {
	Schema string `json:"schema"`
	Text   string `json:"text"`
	name   string
	valid  bool // the answer that is expected
}

// TestValidatorsOfOtherLanguagesAgreeWithTheDecoder asks Python's jsonschema and ajv, in strict
// mode, about the documents that the decoder's tests have, and about the examples of the
// documentation.
func TestValidatorsOfOtherLanguagesAgreeWithTheDecoder(t *testing.T) {
	questions := append(documents(t), examples(t)...)
	for name, command := range map[string][]string{
		"jsonschema": {python(t), absolute(t, "validate.py")},
		"ajv":        {"node", absolute(t, "validate.js")},
	} {
		t.Run(name, func(t *testing.T) {
			var in bytes.Buffer
			e := json.NewEncoder(&in)
			for _, q := range questions {
				if err := e.Encode(q); err != nil {
					t.Fatal(err)
				}
			}
			file := filepath.Join(t.TempDir(), "questions.jsonl")
			write(t, file, in.String())
			script := `exec "$@" <` + file
			out, err := try(t, timeout, []string{"NODE_PATH=" + filepath.Join(node(t), "node_modules")}, "bash", append([]string{"-c", script, "bash"}, command...)...)
			if err != nil {
				t.Fatal(err)
			}
			answers := strings.Fields(out)
			if len(answers) != len(questions) {
				t.Fatalf("%d answers to %d questions", len(answers), len(questions))
			}
			for i, q := range questions {
				if valid := answers[i] == "true"; valid != q.valid {
					t.Errorf("%s: valid is %v for %s\n%s", q.name, valid, filepath.Base(q.Schema), q.Text)
				}
			}
		})
	}
}

// documents are those of the decoder's tests.
func documents(t *testing.T) (all []question) {
	t.Helper()
	raw, err := os.ReadFile(root + "/cmd/dispatcher/internal/envelope/testdata/documents.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		var d struct {
			Name, Text string
			Valid      bool
		}
		if err := json.Unmarshal([]byte(line), &d); err != nil {
			t.Fatal(err)
		}
		all = append(all, question{Schema: schema(t, "envelope"), Text: d.Text, name: d.Name, valid: d.Valid})
	}
	if len(all) < 50 {
		t.Fatalf("only %d documents", len(all))
	}
	return all
}

// pages have examples that readers copy.
var pages = []string{"README.md", "docs/kafka.md", "docs/clients.md", "docs/inbound.md", "docs/ambiguous.md", "docs/receipts.md", "docs/commands.md"}

// examples are the envelopes, events and inbound messages of the documentation, in blocks of JSON
// and on lines of their own in other blocks.
func examples(t *testing.T) (all []question) {
	t.Helper()
	kinds := map[string]int{}
	for _, page := range pages {
		for _, b := range blocks(t, page) {
			texts := []string{b.text}
			if !json.Valid([]byte(b.text)) {
				texts = strings.Split(b.text, "\n")
			}
			for _, text := range texts {
				if kind := kindOf(text); kind != "" {
					kinds[kind]++
					all = append(all, question{Schema: schema(t, kind), Text: text, name: page, valid: true})
				}
			}
		}
	}
	if kinds["envelope"] < 2 || kinds["status"] < 1 || kinds["inbound"] < 1 {
		t.Fatalf("examples found: %v", kinds)
	}
	return all
}

// kindOf tells by its fields what an example is; "" for something else.
func kindOf(text string) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &fields) != nil || fields["id"] == nil {
		return ""
	}
	switch {
	case fields["received_at"] != nil:
		return "inbound"
	case fields["state"] != nil && fields["lane"] != nil:
		return "status"
	case fields["to"] != nil && fields["text"] != nil:
		return "envelope"
	}
	return ""
}

func schema(t *testing.T, kind string) string {
	t.Helper()
	return absolute(t, root+"/docs/schema/"+kind+".schema.json")
}
