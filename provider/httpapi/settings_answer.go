package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"dispatcher/provider"
	"dispatcher/provider/settings"
)

// readAnswer reads how an answer is read.
func (c *Config) readAnswer(p parser, r *settings.Reader) {
	c.answer = answer{
		id: readPlace(r, "id", inAnswers), code: readPlace(r, "code", inAnswers), retryAfter: readPlace(r, "retry_after", inAnswers),
	}
	value, _ := r.Take("outcomes")
	list, ok := value.([]any)
	if !ok || len(list) == 0 {
		r.Failf("outcomes", "is no list of {status, code, outcome}")
		return
	}
	accepts := false
	for i, entry := range list {
		rule, err := p.rule(entry)
		if err != nil {
			r.Failf("outcomes", "%d: %w", i+1, err)
			continue
		}
		if rule.codes != nil && c.answer.code == nil {
			r.Failf("outcomes", "%d: names a code, but answer has no place for one", i+1)
		}
		accepts = accepts || rule.outcome == provider.Accepted
		c.answer.rules = append(c.answer.rules, rule)
	}
	if !accepts {
		r.Failf("outcomes", "none of them is accepted")
	}
}

// rule reads one entry of outcomes.
func (p parser) rule(entry any) (rule, error) {
	members, ok := settings.Map(entry)
	if !ok {
		return rule{}, errors.New("is no map")
	}
	r := settings.New(members, p.readFile)
	var out rule
	var err error
	if out.low, out.high, err = statuses(r.Text("status")); err != nil {
		r.Fail("status", err)
	}
	out.codes = texts(r, "code")
	if out.outcome, err = provider.ParseOutcome(r.Text("outcome")); err != nil {
		r.Fail("outcome", err)
	}
	if out.outcome == provider.Accepted && out.high >= http.StatusMultipleChoices {
		r.Failf("outcome", "only a 2xx can be accepted")
	}
	r.RefuseUnknown()
	return out, r.Err()
}

// statuses reads 202 or 4xx.
func statuses(text string) (low, high int, err error) {
	if len(text) == len("4xx") && text[1:] == "xx" && text[0] >= '2' && text[0] <= '5' {
		low = int(text[0]-'0') * 100
		return low, low + 99, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 200 || n > 599 {
		return 0, 0, errors.New("is no status such as 202 or 4xx")
	}
	return n, n, nil
}

// texts reads a text or a list of them; numbers need no quotes.
func texts(r *settings.Reader, key string) []string {
	value, ok := r.Take(key)
	if !ok {
		return nil
	}
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	out := make([]string, 0, len(list))
	for _, entry := range list {
		switch v := entry.(type) {
		case string, int, int64, uint64, bool:
			out = append(out, fmt.Sprint(v))
		default:
			r.Failf(key, "is neither a text nor a list of texts")
		}
	}
	return out
}

func readPlace(r *settings.Reader, key string, kinds []string) *place {
	text := r.Text(key)
	if text == "" {
		return nil
	}
	p, err := parsePlace(text, kinds)
	if err != nil {
		r.Fail(key, err)
		return nil
	}
	return p
}
