package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// value is one node of the document with its path. Its methods read it as a type, and report a
// problem when it is of another.
type value struct {
	r    *report
	node *yaml.Node
	key  string
}

// yamlLine finds the position in an error message of the YAML library.
var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// parseYAML reads exactly one document. JSON is YAML.
func parseYAML(r *report, doc []byte) (value, bool) {
	if len(doc) > maxDocument {
		r.fail(0, "", "the document is larger than %d bytes; it cannot be the right file",
			maxDocument)
		return value{}, false
	}
	var root yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(doc))
	if err := decoder.Decode(&root); err != nil || len(root.Content) == 0 {
		if err == nil || errors.Is(err, io.EOF) {
			r.fail(0, "", "the document is empty; it needs channels and routes")
			return value{}, false
		}
		r.notYAML(doc, err)
		return value{}, false
	}
	var second yaml.Node
	if err := decoder.Decode(&second); err == nil {
		r.fail(second.Line, "", "a second document begins here; keep one and remove the --- line")
		return value{}, false
	} else if !errors.Is(err, io.EOF) {
		r.notYAML(doc, err)
		return value{}, false
	}
	if budget := maxValues; !expands(&root, &budget) {
		r.fail(0, "", "the document has more than %d values or an anchor that contains itself; "+
			"write aliases out", maxValues)
		return value{}, false
	}
	return value{r: r, node: resolve(root.Content[0])}, true
}

// maxValues bounds what aliases may expand to; otherwise a few lines could mean billions of values.
// A thousand channels need a third of it.
const maxValues = 200_000

// expands counts every value as often as aliases repeat it and reports whether the budget is
// enough.
func expands(n *yaml.Node, budget *int) bool {
	if *budget--; *budget < 0 {
		return false
	}
	for _, c := range resolve(n).Content {
		if !expands(c, budget) {
			return false
		}
	}
	return true
}

// notYAML reports a document that the YAML library cannot read; at the unclosed bracket, if there
// is one.
func (r *report) notYAML(doc []byte, err error) {
	if bracket, line := unclosed(doc); bracket != 0 {
		r.fail(line, "", "not valid YAML: the %c that opens here is not closed; close it, or "+
			"correct what stands in it", bracket)
		return
	}
	text := err.Error()
	line := 1 // the library does not say it
	if at := yamlLine.FindStringSubmatch(text); at != nil {
		if n, err := strconv.Atoi(at[1]); err == nil {
			line = n
		}
		text = text[len(at[0]):]
	}
	if strings.HasPrefix(text, "did not find expected") { // here the library counts from 0
		r.fail(line+1, "", "not valid YAML: %s in the block that begins here; correct the "+
			"indentation below", text)
		return
	}
	r.fail(line, "", "not valid YAML: %s; correct the line or the one before it", text)
}

// resolve follows an alias to its anchor.
func resolve(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

func (v value) fail(format string, args ...any) { v.r.fail(v.node.Line, v.key, format, args...) }

// child is the value under a key of v.
func (v value) child(name string, n *yaml.Node) value {
	path := name
	if v.key != "" {
		path = v.key + "." + name
	}
	return value{r: v.r, node: resolve(n), key: path}
}

// entry is one key of a mapping with its value.
type entry struct {
	name  string
	line  int // of the key, which may be above that of its value
	value value
}

// entries reads a mapping in its order. A repeated key is reported and left out.
func (v value) entries() ([]entry, bool) {
	if v.node.Kind != yaml.MappingNode {
		v.fail("is %s; write a mapping, key: value", v.kind())
		return nil, false
	}
	var out []entry
	seen := make(map[string]bool, len(v.node.Content)/2)
	for i := 0; i+1 < len(v.node.Content); i += 2 {
		key := resolve(v.node.Content[i])
		switch {
		case key.Tag == "!!merge":
			v.r.fail(key.Line, v.key, "merge keys (<<) are not supported; write the keys out")
		case key.Kind != yaml.ScalarNode:
			v.r.fail(key.Line, v.key, "a key is not a plain word; write key: value")
		case seen[key.Value]:
			v.r.fail(key.Line, v.child(key.Value, key).key, "is listed twice; remove one of "+
				"the two")
		default:
			seen[key.Value] = true
			child := v.child(key.Value, v.node.Content[i+1])
			out = append(out, entry{name: key.Value, line: key.Line, value: child})
		}
	}
	return out, true
}

// fields is a mapping whose keys are known.
type fields struct {
	of      value
	entries []entry
}

// fields reads a mapping and reports keys that its part does not have.
func (v value) fields(part *Part) (fields, bool) {
	known := part.names()
	entries, ok := v.entries()
	if !ok {
		return fields{}, false
	}
	f := fields{of: v}
	for _, e := range entries {
		switch {
		case slices.Contains(known, e.name):
			f.entries = append(f.entries, e)
		default:
			v.r.fail(e.line, e.value.key, "there is no such key; %s", suggest(e.name, known,
				"known are "+strings.Join(known, ", ")))
		}
	}
	return f, true
}

// get returns the value of a key; a key without a value counts as absent.
func (f fields) get(name string) (value, bool) {
	for _, e := range f.entries {
		if e.name == name {
			return e.value, e.value.node.Tag != "!!null"
		}
	}
	return value{}, false
}

// need is get for a required key.
func (f fields) need(name, example string) (value, bool) {
	v, ok := f.get(name)
	if !ok {
		f.of.fail("%s is missing; write for example %s", name, example)
	}
	return v, ok
}

// isList reports whether the node is a list.
func (v value) isList() bool { return v.node.Kind == yaml.SequenceNode }

// items reads a list; a single scalar counts as a list of one.
func (v value) items() []value {
	switch v.node.Kind {
	case yaml.SequenceNode:
	case yaml.ScalarNode:
		if v.node.Tag != "!!null" {
			return []value{v}
		}
		return nil
	default:
		v.fail("is %s; write a list, [one, two]", v.kind())
		return nil
	}
	out := make([]value, len(v.node.Content))
	for i, n := range v.node.Content {
		out[i] = value{r: v.r, node: resolve(n), key: fmt.Sprintf("%s[%d]", v.key, i)}
	}
	return out
}

// kind names what the node is, for sentences.
func (v value) kind() string {
	switch {
	case v.node.Kind == yaml.MappingNode:
		return "a mapping"
	case v.node.Kind == yaml.SequenceNode:
		return "a list"
	case v.node.Tag == "!!null":
		return "empty"
	}
	return "a single value"
}

// unclosed finds the bracket or quote that an invalid YAML document leaves open, or closes with the
// wrong one: its character and line, or 0 if all are closed. The YAML library names the place where
// it stopped, which may be far below. Quoted texts and comments are skipped.
func unclosed(doc []byte) (bracket byte, line int) {
	type opening struct {
		bracket byte
		line    int
	}
	var open []opening
	line = 1
	for i := 0; i < len(doc); i++ {
		switch c := doc[i]; c {
		case '\n':
			line++
		case '#':
			if i == 0 || strings.IndexByte(" \t\n", doc[i-1]) >= 0 {
				i = endOfLine(doc, i) - 1
			}
		case '"', '\'':
			if beginsValue(doc, i) {
				end, closed := endOfQuote(doc, i)
				if !closed {
					return c, line
				}
				line += strings.Count(string(doc[i:end]), "\n")
				i = end - 1
			}
		case '{', '[':
			if len(open) > 0 || beginsValue(doc, i) {
				open = append(open, opening{c, line})
			}
		case '}', ']':
			if len(open) == 0 {
				continue
			}
			last := open[len(open)-1]
			if last.bracket != c-2 { // in ASCII two before its closing one
				return last.bracket, last.line
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) == 0 {
		return 0, 0
	}
	return open[0].bracket, open[0].line
}

// endOfLine is the position of the line break after i, or the end.
func endOfLine(doc []byte, i int) int {
	for i < len(doc) && doc[i] != '\n' {
		i++
	}
	return i
}

// endOfQuote is the position after the quoted text that begins at i, and whether it is closed. A
// backslash escapes in double quotes; in single quotes a single quote is written twice.
func endOfQuote(doc []byte, i int) (end int, closed bool) {
	quote := doc[i]
	for i++; i < len(doc); i++ {
		switch {
		case doc[i] == '\\' && quote == '"':
			i++
		case doc[i] == quote && quote == '\'' && i+1 < len(doc) && doc[i+1] == quote:
			i++
		case doc[i] == quote:
			return i + 1, true
		}
	}
	return len(doc), false
}

// beginsValue reports whether a quote or a bracket at i begins a value. Inside a plain text it is
// an ordinary character.
func beginsValue(doc []byte, i int) bool {
	at := i - 1
	for at >= 0 && (doc[at] == ' ' || doc[at] == '\t') {
		at--
	}
	if at < 0 {
		return true
	}
	return strings.IndexByte("\n{[,", doc[at]) >= 0 || at < i-1 && strings.IndexByte(":-",
		doc[at]) >= 0
}
