package httpapi

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// template is a text with placeholders: {name} or {secret:name}. Double braces are literal braces.
type template struct{ parts []part }

// part is a literal, or a placeholder when name is set.
type part struct{ literal, name, arg string }

// errBrace says that braces do not match.
var errBrace = errors.New("has a brace without its partner; write {{ or }} for a brace of its own")

// parseTemplate reads a template; allowed are the names of its placeholders.
func parseTemplate(text string, allowed []string) (template, error) {
	var t template
	for text != "" {
		i := strings.IndexAny(text, "{}")
		if i < 0 {
			t.literal(text)
			break
		}
		t.literal(text[:i])
		if strings.HasPrefix(text[i:], "{{") || strings.HasPrefix(text[i:], "}}") {
			t.literal(text[i : i+1])
			text = text[i+2:]
			continue
		}
		end := strings.IndexByte(text[i:], '}')
		if text[i] == '}' || end < 0 {
			return template{}, errBrace
		}
		p, err := parsePlaceholder(text[i+1:i+end], allowed)
		if err != nil {
			return template{}, err
		}
		t.parts = append(t.parts, p)
		text = text[i+end+1:]
	}
	return t, nil
}

func parsePlaceholder(text string, allowed []string) (part, error) {
	name, arg, hasArg := strings.Cut(text, ":")
	switch {
	case !slices.Contains(allowed, name):
		return part{}, fmt.Errorf("{%s} is none of those that may stand here: {%s}", text,
			strings.Join(allowed, "} {"))
	case (name == secretName) != hasArg, hasArg && !secretNames.MatchString(arg):
		return part{}, fmt.Errorf("{%s} is not written as {%s:NAME}", text, secretName)
	}
	return part{name: name, arg: arg}, nil
}

// literal adds text and merges adjacent literals.
func (t *template) literal(text string) {
	if text == "" {
		return
	}
	if n := len(t.parts); n > 0 && t.parts[n-1].name == "" {
		t.parts[n-1].literal += text
		return
	}
	t.parts = append(t.parts, part{literal: text})
}

// expand replaces the placeholders; escape is applied to each value, not to literals. If a
// placeholder has no value, the result is incomplete and the field is left out.
func (t template) expand(
	value func(part) string, escape func(string) string,
) (text string, complete bool) {
	var b strings.Builder
	complete = true
	for _, p := range t.parts {
		if p.name == "" {
			b.WriteString(p.literal)
			continue
		}
		v := value(p)
		complete = complete && v != ""
		if escape != nil {
			v = escape(v)
		}
		b.WriteString(v)
	}
	return b.String(), complete
}

// has reports whether the template contains a placeholder with one of the names.
func (t template) has(names ...string) bool {
	return slices.ContainsFunc(t.parts,
		func(p part) bool { return p.name != "" && slices.Contains(names, p.name) })
}

// follows reports whether one placeholder directly follows another.
func (t template) follows(before, behind string) bool {
	for i := range len(t.parts) - 1 {
		if t.parts[i].name == before && t.parts[i+1].name == behind {
			return true
		}
	}
	return false
}

// between is the text between two placeholders; false if they do not follow each other.
func (t template) between(before, behind string) (string, bool) {
	for i := range len(t.parts) - 2 {
		if t.parts[i].name == before && t.parts[i+1].name == "" && t.parts[i+2].name == behind {
			return t.parts[i+1].literal, true
		}
	}
	return "", t.follows(before, behind)
}

// secrets adds the names of the template's secrets.
func (t template) secrets(names map[string]bool) {
	for _, p := range t.parts {
		if p.name == secretName {
			names[p.arg] = true
		}
	}
}
