package sandbox

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"dispatcher/provider/settings"
)

// ParsePlan reads a plan. A value that is missing in a carrier's profile comes from the plan's
// profile, else from usual. The error joins all faults, each with its key.
func ParsePlan(text []byte, usual Profile) (Plan, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return Plan{}, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	r := &planReader{}
	var plan Plan
	if len(document.Content) > 0 {
		r.plan(document.Content[0], usual, &plan)
	}
	if len(r.faults) > 0 {
		return plan, errors.Join(r.faults...)
	}
	return plan, plan.Validate()
}

// planReader reads a plan and collects its faults.
type planReader struct{ faults []error }

func (r *planReader) fail(at string, node *yaml.Node, format string, args ...any) {
	r.faults = append(r.faults,
		fmt.Errorf("line %d: %s: %s", node.Line, at, fmt.Sprintf(format, args...)))
}

// entries reads a mapping: into has a function for each known key.
func (r *planReader) entries(
	at string, node *yaml.Node, into map[string]func(at string, value *yaml.Node), known []string,
) {
	if node.Kind != yaml.MappingNode {
		r.fail(orPlan(at), node, "is not a mapping of keys and values")
		return
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		read := into[key.Value]
		if read == nil {
			r.fail(below(at, key.Value), key, "there is no such key; known are %s%s",
				strings.Join(known, ", "), meant(key.Value, known))
			continue
		}
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		read(below(at, key.Value), value)
	}
}

func (r *planReader) plan(node *yaml.Node, usual Profile, plan *Plan) {
	shared := usual
	var carriers *yaml.Node
	r.entries("", node, map[string]func(string, *yaml.Node){
		"profile":  func(at string, value *yaml.Node) { r.profile(at, value, &shared) },
		"carriers": func(_ string, value *yaml.Node) { carriers = value },
	}, []string{"carriers", "profile"})
	if carriers == nil {
		return
	}
	if carriers.Kind != yaml.SequenceNode {
		r.fail("carriers", carriers, "is not a list; write for example - {provider: smpp}")
		return
	}
	for i, one := range carriers.Content {
		c := Carrier{Profile: shared}
		r.carrier(fmt.Sprintf("carriers[%d]", i), one, &c)
		if c.Name == "" {
			c.Name = c.Provider
		}
		plan.Carriers = append(plan.Carriers, c)
	}
}

func (r *planReader) carrier(at string, node *yaml.Node, c *Carrier) {
	text := func(into *string) func(string, *yaml.Node) {
		return func(at string, value *yaml.Node) {
			if value.Kind != yaml.ScalarNode {
				r.fail(at, value, "is not text")
				return
			}
			*into = value.Value
		}
	}
	r.entries(at, node, map[string]func(string, *yaml.Node){
		"name": text(
			&c.Name,
		), "provider": text(&c.Provider), "address": text(&c.Address), "weight": text(&c.Weight),
		"profile": func(at string, value *yaml.Node) { r.profile(at, value, &c.Profile) },
	}, []string{"address", "name", "profile", "provider", "weight"})
}

// profile reads the values of a profile into p; missing ones stay.
func (r *planReader) profile(at string, node *yaml.Node, p *Profile) {
	into, known := map[string]func(string, *yaml.Node){}, []string{}
	for _, field := range p.fields() {
		known = append(known, field.key)
		into[field.key] = func(at string, value *yaml.Node) { r.field(at, value, field.value) }
	}
	r.entries(at, node, into, known)
}

// field reads one value of a profile.
func (r *planReader) field(at string, node *yaml.Node, into any) {
	wanted := "is not a number such as 0.05"
	var err error
	switch v := into.(type) {
	case *time.Duration:
		wanted = "is not a duration such as 20ms"
		*v, err = time.ParseDuration(node.Value)
	case *int:
		wanted = "is not a whole number"
		*v, err = strconv.Atoi(node.Value)
	default:
		err = node.Decode(v)
	}
	if err != nil || node.Kind != yaml.ScalarNode || node.Tag == "!!null" {
		r.fail(at, node, "%q %s", node.Value, wanted)
	}
}

// profileField is a value of a profile and its key.
type profileField struct {
	key   string
	value any // *time.Duration, *int or *float64
}

// fields are all values of a profile.
func (p *Profile) fields() []profileField {
	return []profileField{
		{"latency", &p.Latency},
		{"jitter", &p.Jitter},
		{"rate", &p.Rate},
		{"reject", &p.Reject},
		{"refuse", &p.Refuse},
		{"throttle", &p.Throttle},
		{"lose", &p.Lose},
		{"cut", &p.Cut},
		{"receipts", &p.Receipts},
		{"receipt_delay", &p.ReceiptDelay},
		{"delivered", &p.Delivered},
		{"early", &p.Early},
		{"duplicates", &p.Duplicates},
	}
}

// meant suggests the known word nearest to a misspelt one; empty when none is near.
func meant(word string, known []string) string {
	best := settings.Nearest(word, known)
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// prefixed adds a position to each fault of a joined error.
func prefixed(at string, err error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		if err == nil {
			return nil
		}
		return fmt.Errorf("%s.%w", at, err)
	}
	var out []error
	for _, one := range joined.Unwrap() {
		out = append(out, prefixed(at, one))
	}
	return errors.Join(out...)
}

// below is a key within a position of the plan.
func below(at, key string) string {
	if at == "" {
		return key
	}
	return at + "." + key
}

func orPlan(at string) string {
	if at == "" {
		return "the plan"
	}
	return at
}
