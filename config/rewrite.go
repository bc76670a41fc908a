package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// byHand is the advice for a document that no command can edit.
const byHand = `edit the file and use "dispatcher routing apply"`

// section is the part of a text that an edit rewrites: the lines of one entry of a mapping, or of
// one item of a list, in block style.
type section struct {
	from, to int      // lines, from 0, end excluded
	indent   int      // characters before it in its first line: spaces and dashes of lists
	path     []string // from the entry or item to the changed value
}

// rewrite returns the text with a change of the entry at a path. Steps of a path are keys of
// mappings and names of routes. change gets the mapping that holds the last key, and the index of
// the key in its content.
//
// The YAML library rewrites the lines of the smallest entry or item in block style around the
// change; it keeps comments, order and quotes. All other lines stay as they are. JSON is rewritten
// as a whole.
func rewrite(text []byte, root *yaml.Node, path []string, change func(mapping *yaml.Node,
	at int) error,
) ([]byte, error) {
	if json.Valid(text) {
		return rewriteJSON(text, path, change)
	}
	mark, body := cutByteOrderMark(string(text))
	lines := splitLines(body)
	s, err := locate(root, path, lines)
	if err != nil {
		return nil, err
	}
	part, err := s.dedent(lines)
	if err != nil {
		return nil, err
	}
	var node yaml.Node
	if err := yaml.Unmarshal([]byte(part), &node); err != nil {
		return nil, fmt.Errorf("line %d: what stands here cannot be changed without the rest of "+
			"the document; %s", s.from+1, byHand)
	}
	width, compact := indentation(node.Content[0])
	unfold(&node)
	written, err := encode(&node, width, compact)
	if err != nil {
		return nil, err
	}
	if strings.Count(written, "#") < strings.Count(part, "#") {
		return nil, fmt.Errorf("line %d: a comment in this entry would be lost; %s", s.from+1,
			byHand)
	}
	if err := changeAt(node.Content[0], s.path, change); err != nil {
		return nil, err
	}
	if written, err = encode(&node, width, compact); err != nil {
		return nil, err
	}
	lines = slices.Replace(lines, s.from, s.to, s.restore(lines, written))
	return []byte(mark + strings.Join(lines, "")), nil
}

// changeAt walks a path and calls change.
func changeAt(node *yaml.Node, path []string, change func(mapping *yaml.Node, at int) error) error {
	for _, step := range path[:len(path)-1] {
		at := indexOf(node, step)
		if at < 0 {
			return missing(node, step)
		}
		node = valueAt(node, at)
	}
	at := indexOf(node, path[len(path)-1])
	if at < 0 {
		return missing(node, path[len(path)-1])
	}
	return change(node, at)
}

// locate finds the smallest section that contains a path.
func locate(root *yaml.Node, path, lines []string) (section, error) {
	s := section{to: len(lines), path: path}
	node, end := root, len(lines)
	for i, step := range path {
		at := indexOf(node, step)
		if at < 0 {
			return s, missing(node, step)
		}
		head, value := node.Content[at], valueAt(node, at)
		if next := at + stride(node); next < len(node.Content) {
			end = node.Content[next].Line - 1
		}
		if node.Style&yaml.FlowStyle == 0 {
			s = section{from: head.Line - 1, to: end, indent: head.Column - 1, path: path[i:]}
			if node.Kind == yaml.SequenceNode { // the position of an item is after its dash
				s.indent = strings.LastIndexByte(lines[s.from][:s.indent], '-')
			}
		}
		if value.Kind == yaml.AliasNode || value.Anchor != "" {
			return s, fmt.Errorf("line %d: %s is shared by an anchor; %s", value.Line, step, byHand)
		}
		node = value
	}
	for s.to > s.from+1 && isBlank(lines[s.to-1]) { // a comment at the end may belong to what follows
		s.to--
	}
	return s, nil
}

// indexOf finds a key of a mapping, or the item of a list with this name; -1 if absent.
func indexOf(node *yaml.Node, step string) int {
	for at := 0; at < len(node.Content); at += stride(node) {
		head := resolve(node.Content[at])
		if node.Kind == yaml.SequenceNode {
			name := indexOf(head, "name")
			if name < 0 {
				continue
			}
			head = resolve(head.Content[name+1])
		}
		if head.Kind == yaml.ScalarNode && head.Value == step {
			return at
		}
	}
	return -1
}

// stride is how many nodes an entry or item has in the content of its mapping or list.
func stride(node *yaml.Node) int {
	if node.Kind == yaml.MappingNode {
		return 2
	}
	return 1
}

func valueAt(node *yaml.Node, at int) *yaml.Node { return node.Content[at+stride(node)-1] }

func missing(node *yaml.Node, step string) error {
	return fmt.Errorf("line %d: there is no %s here; %s", node.Line, step, byHand)
}

// lineBreaks are the line breaks of YAML 1.1, by which the library counts lines.
var lineBreaks = regexp.MustCompile("\r\n|[\r\n\u0085\u2028\u2029]")

// splitLines splits a text into lines, each with its line break.
func splitLines(text string) []string {
	var lines []string
	at := 0
	for _, br := range lineBreaks.FindAllStringIndex(text, -1) {
		lines = append(lines, text[at:br[1]])
		at = br[1]
	}
	return append(lines, text[at:])
}

// lineBreak is the first line break in some lines.
func lineBreak(lines ...string) string {
	for _, line := range lines {
		if br := lineBreaks.FindString(line); br != "" {
			return br
		}
	}
	return "\n"
}

func cutByteOrderMark(text string) (mark, rest string) {
	if rest, ok := strings.CutPrefix(text, "\uFEFF"); ok {
		return "\uFEFF", rest
	}
	return "", text
}

// isBlank reports whether a line is empty, a comment, or the end of the document.
func isBlank(line string) bool {
	line = strings.TrimSpace(line)
	return line == "" || line[0] == '#' || line == "..."
}

// dedent is the text of a section as a separate document.
func (s *section) dedent(lines []string) (string, error) {
	var out strings.Builder
	for i, line := range lines[s.from:s.to] {
		head := line[:min(s.indent, len(line))]
		if i == 0 && strings.Trim(head, " -") != "" {
			return "", fmt.Errorf("line %d: this is written in a way that cannot be edited; %s",
				s.from+1, byHand)
		}
		if i > 0 {
			head = head[:len(head)-len(strings.TrimLeft(head, " "))]
		}
		out.WriteString(line[len(head):])
	}
	return out.String(), nil
}

// restore gives a rewritten section its indentation and the line breaks of the document.
func (s *section) restore(lines []string, written string) string {
	br := lineBreak(lines[s.from], lines[0])
	first := lines[s.from][:s.indent]
	written = strings.TrimSuffix(written, "\n")
	written = first + strings.ReplaceAll(written, "\n", br+strings.Repeat(" ", s.indent))
	if last := lines[s.to-1]; lineBreaks.MatchString(last) {
		written += br
	}
	return written
}

// unfold turns lists and mappings in brackets that span several lines into block style. Otherwise
// the library would put them on one line, with comments between them in wrong places.
func unfold(node *yaml.Node) {
	for _, child := range node.Content {
		unfold(child)
	}
	if lastLine(node) > node.Line {
		node.Style &^= yaml.FlowStyle
	}
}

func lastLine(node *yaml.Node) int {
	last := node.Line
	for _, child := range node.Content {
		last = max(last, lastLine(child))
	}
	return last
}

// moveComments moves the comments after lists and mappings to where the library writes them.
// Otherwise the library would drop a comment after a block, and one after a key whose value begins
// with a bracket.
func moveComments(node *yaml.Node) {
	for at := 0; at < len(node.Content); at += stride(node) {
		head, value := node.Content[at], valueAt(node, at)
		flow := value.Style&yaml.FlowStyle != 0
		switch {
		case value.Kind != yaml.MappingNode && value.Kind != yaml.SequenceNode:
		case head == value && !flow:
			value.HeadComment = joinComments(value.HeadComment, value.LineComment)
			value.LineComment = ""
		case head != value && flow:
			value.LineComment = joinComments(value.LineComment, head.LineComment)
			head.LineComment = ""
		case head != value:
			head.LineComment = joinComments(head.LineComment, value.LineComment)
			value.LineComment = ""
		}
		moveComments(value)
	}
}

func joinComments(a, b string) string { return strings.TrimSpace(a + "\n" + b) }

// encode writes a document with an indentation; see indentation.
func encode(node *yaml.Node, width int, compact bool) (string, error) {
	moveComments(node)
	var out strings.Builder
	e := yaml.NewEncoder(&out)
	e.SetIndent(width)
	if compact {
		e.CompactSeqIndent()
	}
	if err := e.Encode(node); err != nil {
		return "", err
	}
	return out.String(), e.Close()
}

// indentation is how far the entries of the first block below a node are indented, and whether the
// dashes of its lists are directly below their key.
func indentation(node *yaml.Node) (width int, compact bool) {
	for at := 0; at < len(node.Content); at += stride(node) {
		value := valueAt(node, at)
		if len(value.Content) == 0 || value.Style&yaml.FlowStyle != 0 {
			continue
		}
		width = value.Content[0].Column - node.Content[at].Column
		if value.Kind == yaml.SequenceNode && node.Kind == yaml.MappingNode {
			width -= len("- ")
			compact = width == 0
		}
		if width > 1 {
			return width, compact
		}
	}
	return 2, compact
}

// rewriteJSON is rewrite for JSON. It keeps one line or the indentation, whichever the text has.
func rewriteJSON(
	text []byte, path []string, change func(mapping *yaml.Node, at int) error,
) ([]byte, error) {
	var node yaml.Node
	if err := yaml.Unmarshal(text, &node); err != nil {
		return nil, err
	}
	if err := changeAt(node.Content[0], path, change); err != nil {
		return nil, err
	}
	written, err := encode(&node, 2, false)
	if err != nil {
		return nil, err
	}
	if !json.Valid([]byte(written)) {
		return nil, fmt.Errorf("the document would not be JSON any more; %s", byHand)
	}
	var out bytes.Buffer
	body := bytes.TrimRight(text, "\r\n")
	if _, line, lines := bytes.Cut(body, []byte("\n")); lines {
		err = json.Indent(&out, []byte(written), "", string(line[:len(line)-len(bytes.TrimLeft(line,
			" \t"))]))
	} else {
		err = json.Compact(&out, []byte(written))
	}
	return append(bytes.TrimRight(out.Bytes(), "\n"), text[len(body):]...), err
}
