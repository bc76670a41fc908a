package simulate

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// problems collects the problems of one document.
type problems struct {
	name string // of the file
	list []string
}

// Error has one line per problem.
func (p *problems) Error() string { return strings.Join(p.list, "\n") }

// value is one value of a JSON document, with its position for error messages: its path, such as
// arrivals[2].count, and the line on which it ends.
type value struct {
	path string
	line int
	all  *problems
	// kind is { for an object, which has members in document order, and [ for a list, which has items.
	// Anything else is plain: a string, json.Number or bool, or nil for null.
	kind    json.Delim
	members []member
	items   []value
	plain   any
}

type member struct {
	key string
	value
}

// fail reports a problem of the value.
func (v value) fail(format string, args ...any) {
	where := v.all.name
	if v.line > 0 {
		where += ":" + strconv.Itoa(v.line)
	}
	if v.path != "" {
		where += ": " + v.path
	}
	v.all.list = append(v.all.list, where+": "+fmt.Sprintf(format, args...))
}

// fields are the members of an object. Only known keys are allowed; all when none is named.
func (v value) fields(known ...string) map[string]value {
	if v.kind != '{' {
		v.fail("this is not an object: write {...}")
		return nil
	}
	out := make(map[string]value, len(v.members))
	for _, m := range v.members {
		if len(known) > 0 && !slices.Contains(known, m.key) {
			m.fail("unknown key; %s", suggest(m.key, known))
			continue
		}
		out[m.key] = m.value
	}
	return out
}

// list are the items of a list.
func (v value) list() []value {
	if v.kind != '[' {
		v.fail("this is not a list: write [...]")
	}
	return v.items
}

// whole reads an integer within bounds. After a problem it returns the lower bound.
func (v value) whole(least, most int64) int64 {
	number, ok := v.plain.(json.Number)
	n, err := strconv.ParseInt(number.String(), 10, 64)
	if !ok || err != nil || n < least || n > most {
		v.fail("write a whole number from %d to %d", least, most)
		return least
	}
	return n
}

// fraction reads a number within bounds. After a problem it returns the lower bound.
func (v value) fraction(least, most float64) float64 {
	f, ok := v.number()
	if !ok || f < least || f > most {
		v.fail("write a number from %g to %g", least, most)
		return least
	}
	return f
}

// number reads any number; false, without reporting a problem, if the value is none.
func (v value) number() (float64, bool) {
	number, ok := v.plain.(json.Number)
	f, err := strconv.ParseFloat(number.String(), 64)
	return f, ok && err == nil && !math.IsNaN(f)
}

// text reads a string.
func (v value) text() string {
	s, ok := v.plain.(string)
	if !ok {
		v.fail("write a text in quotes")
	}
	return s
}

// flag reads true or false.
func (v value) flag() bool {
	b, ok := v.plain.(bool)
	if !ok {
		v.fail("write true or false")
	}
	return b
}

// duration reads a time such as "10s" within bounds.
func (v value) duration(least, most time.Duration) time.Duration {
	s, _ := v.plain.(string)
	d, err := time.ParseDuration(s)
	if err != nil || d < least || d > most {
		v.fail(`write a time from %s to %s, such as "2s"`, least, most)
		return least
	}
	return d
}
