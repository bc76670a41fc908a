package config

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"dispatcher/selector"
	"dispatcher/selector/score"
)

// Scoring is how a ranking by best worker scores the members of a route: by an expression, by a
// function or, when both are nil, by the default rule. The highest score comes first.
type Scoring struct {
	Expression *score.Expression
	Function   *Function
	Ascending  bool // the lowest score comes first
}

// defaultScoring is the word of the document for scoring by the default rule.
const defaultScoring = "default"

// Kind is the word for the rule: default, expression or function.
func (s *Scoring) Kind() string {
	switch {
	case s.Function != nil:
		return "function"
	case s.Expression != nil:
		return "expression"
	}
	return defaultScoring
}

// Function is an HTTP endpoint that scores candidates.
type Function struct {
	URL string
	// TokenFile holds a secret that is sent as a bearer token; none when empty.
	TokenFile string
	// Token is the content of TokenFile. It is never part of the document: it is read when the
	// document takes effect.
	Token string
	// AllowPrivate lets calls go to addresses of private networks and to this machine.
	AllowPrivate bool
	// Parameters are sent with every call.
	Parameters map[string]selector.Value
	// Batch sends up to BatchSize candidates in one call; otherwise one.
	Batch     bool
	BatchSize int
	Deadline  time.Duration // for all calls about one message together
	Cache     time.Duration // how long an answer is used for an equal question
}

// readScoring reads how a route scores its members: the word default, a mapping with an
// expression, or a mapping with a function.
func readScoring(f fields, r Route) Scoring {
	s := r.Scoring
	v, ok := f.get("scoring")
	if !ok {
		return s
	}
	if r.Mode != BestWorkerMode && r.Fallback != BestWorker && r.Mode != "" && r.Fallback != "" {
		v.fail("nothing on this route is ranked by best_worker, so nothing is scored; set mode " +
			"or fallback to best_worker or remove scoring")
	}
	if v.node.Kind == yaml.ScalarNode {
		readScoringWord(v)
		return s
	}
	part := expressionPart
	if v.has("function") {
		part = functionPart
	}
	keys, ok := v.fields(part)
	if !ok {
		return s
	}
	if d, ok := keys.get("descending"); ok {
		s.Ascending = !d.flag()
	}
	expression, hasExpression := keys.get("expression")
	function, hasFunction := keys.get("function")
	switch {
	case hasFunction:
		s.Function = readFunction(keys, function)
	case hasExpression:
		s.Expression = readExpression(expression)
	default:
		v.fail(`names neither an expression nor a function; write default, {expression: "1 - ` +
			`load_ratio"} or {function: "https://..."}`)
	}
	return s
}

func readScoringWord(v value) {
	const want = `default, {expression: "..."} or {function: "https://..."}`
	if s, ok := v.raw(want); ok && s != defaultScoring {
		v.fail("scoring %q is unknown; write %s", s, want)
	}
}

// has reports whether a mapping has a key, with or without a value.
func (v value) has(name string) bool {
	for i := 0; v.node.Kind == yaml.MappingNode && i+1 < len(v.node.Content); i += 2 {
		if v.node.Content[i].Value == name {
			return true
		}
	}
	return false
}

// readExpression compiles an expression. Problems are reported with their position in the
// expression, because a long one is often folded over several lines.
func readExpression(v value) *score.Expression {
	text, ok := v.text()
	if !ok {
		return nil
	}
	e, err := score.Compile(text)
	if err == nil {
		return e
	}
	if syntax, ok := errors.AsType[*score.SyntaxError](err); ok {
		v.fail("line %d, column %d of the expression: %s", syntax.Line, syntax.Column,
			syntax.Message)
	} else {
		v.fail("is not an expression: %v", err)
	}
	return nil
}

// Bounds of a scoring function. A plan waits for its answer, so the deadline is short.
const (
	defaultBatchSize = 20
	maxBatchSize     = 1000
	defaultDeadline  = 200 * time.Millisecond
	minDeadline      = 10 * time.Millisecond
	maxDeadline      = 5 * time.Second
	defaultCache     = 10 * time.Second
)

func readFunction(f fields, address value) *Function {
	out := &Function{BatchSize: defaultBatchSize, Deadline: defaultDeadline, Cache: defaultCache}
	if s, ok := address.text(); ok {
		if why := functionProblem(s); why != "" {
			address.fail("%s", why)
		}
		out.URL = s
	}
	if v, ok := f.get("token_file"); ok {
		out.TokenFile, _ = v.text()
	}
	if v, ok := f.get("allow_private"); ok {
		out.AllowPrivate = v.flag()
	}
	if v, ok := f.get("parameters"); ok {
		out.Parameters = readParameters(v)
	}
	if v, ok := f.get("deadline"); ok {
		out.Deadline, _ = v.duration(minDeadline, maxDeadline)
	}
	if v, ok := f.get("cache"); ok {
		out.Cache, _ = v.duration(0, day)
	}
	readBatch(f, out)
	return out
}

// readParameters reads what is sent with every call. A secret belongs in the token file, because
// the document is stored with every version and shown.
func readParameters(v value) map[string]selector.Value {
	out := v.labels()
	for _, name := range slices.Sorted(maps.Keys(out)) {
		if secretKey.MatchString(name) {
			v.child(name, v.node).fail("looks like a secret, which every version would keep; " +
				"write it into a file and its path as token_file")
		}
	}
	return out
}

func readBatch(f fields, out *Function) {
	batch, hasBatch := f.get("batch")
	if hasBatch {
		out.Batch = batch.flag()
	}
	size, hasSize := f.get("batch_size")
	if !hasSize {
		return
	}
	n := size.integer(1, maxBatchSize)
	out.BatchSize = int(n)
	if !hasBatch {
		size.fail("has no effect without batch: true; add it or remove batch_size")
	}
}

// secretQuery finds parameters of a URL that usually carry a secret.
var secretQuery = regexp.MustCompile(`(?i)(key|code|sig|signature|auth|authorization|credentials?` +
	`|pass|pwd|password|passphrase|secret|token|jwt|session)$`)

// functionProblem says why an address cannot be that of a function; "" when it can. It does not
// show the address, which may contain a secret.
func functionProblem(s string) string {
	const example = "write for example https://scores.example.com/v1"
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Hostname() == "" || (u.Scheme != "http" && u.Scheme != "https"):
		return "is not an http or https URL; " + example
	case u.Port() != "" && !isPort(u.Port()):
		return "has a port that does not exist; " + example
	case u.User != nil:
		return "holds a user or a password, which every version would keep; write the token " +
			"into a file and its path as token_file"
	case u.Fragment != "" || strings.HasSuffix(s, "#"):
		return "has a part behind #, which is never sent; remove it"
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return "has a query that cannot be read; " + example
	}
	for name := range query {
		if secretQuery.MatchString(name) {
			return fmt.Sprintf("parameter %s looks like a secret, which every version would "+
				"keep; write the token into a file and its path as token_file", name)
		}
	}
	return ""
}

func isPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n > 0
}
