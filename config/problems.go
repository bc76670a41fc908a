package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"dispatcher/provider/settings"
)

// Problem is one thing that is wrong in a document.
type Problem struct {
	File string
	Line int    // from 1; 0 for the whole document
	Key  string // position in the document, such as routes[0].weights.a; may be empty
	Text string // what is wrong and what to do
}

// Error is the problem in one line.
func (p *Problem) Error() string {
	var s strings.Builder
	s.WriteString(p.File)
	if p.Line > 0 {
		s.WriteString(":" + strconv.Itoa(p.Line))
	}
	s.WriteString(": ")
	if p.Key != "" {
		s.WriteString(p.Key + ": ")
	}
	s.WriteString(p.Text)
	return oneLine(s.String())
}

// oneLine replaces unprintable characters, so that a line break in a name does not break the
// report.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
}

// maxProblems bounds a report; the rest is reported once these are fixed.
const maxProblems = 20

// report collects the problems of one document.
type report struct {
	file     string
	problems []*Problem
	// countryGroups are the document's groups of countries, once they are read.
	countryGroups map[string][]string
}

func (r *report) fail(line int, key, format string, args ...any) {
	r.problems = append(r.problems, &Problem{
		File: r.file, Line: line, Key: key,
		Text: fmt.Sprintf(format, args...),
	})
}

// suggest calls the function suggest. Once the report is full it returns otherwise, to save the
// search over all known words.
func (r *report) suggest(word string, known []string, otherwise string) string {
	if len(r.problems) > maxProblems {
		return otherwise
	}
	return suggest(word, known, otherwise+few(known))
}

// nameCheck reports a name that does not exist, and says whether it exists.
type nameCheck func(v value, name string) bool

// oneOf checks names of a kind, such as "lane", against those that the document has.
func oneOf(kind string, known []string, otherwise string) nameCheck {
	has := make(map[string]bool, len(known))
	for _, name := range known {
		has[name] = true
	}
	return func(v value, name string) bool {
		if !has[name] {
			v.fail("there is no %s %q; %s", kind, name, v.r.suggest(name, known, otherwise))
		}
		return has[name]
	}
}

// few lists known words if there are few of them.
func few(words []string) string {
	if len(words) == 0 || len(words) > 10 {
		return ""
	}
	return " or use " + strings.Join(words, ", ")
}

// err joins the problems in the order of their lines; nil when there are none. errors.As finds each
// as a *Problem.
func (r *report) err() error {
	slices.SortStableFunc(r.problems, func(a, b *Problem) int {
		return cmp.Compare(a.Line, b.Line)
	})
	var list []error
	for i, p := range r.problems {
		if i == maxProblems {
			list = append(list, fmt.Errorf("%s: and %d more problems; fix these first", r.file,
				len(r.problems)-i))
			break
		}
		list = append(list, p)
	}
	return errors.Join(list...)
}

// suggest says "did you mean" with the known word nearest to a misspelt one, else the advice in
// otherwise.
func suggest(word string, known []string, otherwise string) string {
	if near := settings.Nearest(word, known); near != "" {
		return fmt.Sprintf("did you mean %s?", near)
	}
	return otherwise
}
