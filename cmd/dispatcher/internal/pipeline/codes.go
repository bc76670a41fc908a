package pipeline

import (
	"sync"

	"dispatcher/provider"
)

// mostCodes is how many codes of one channel become label values. mostCodeBytes bounds their
// length, and mostDigits a run of digits in them, so that no subscriber's number can be one.
const (
	mostCodes     = 40
	mostCodeBytes = 32
	mostDigits    = 6
)

// otherCode stands for every code that is not a label value.
const otherCode = "other"

// codeLabels bound the label values for codes of providers, who may send new codes at any time.
type codeLabels struct {
	mu   sync.Mutex
	seen map[codeLabel]struct{} // guarded by mu
	many map[string]int         // guarded by mu: codes by channel
}

type codeLabel struct{ channel, code string }

func newCodeLabels() *codeLabels {
	return &codeLabels{seen: map[codeLabel]struct{}{}, many: map[string]int{}}
}

// label is the code itself if it is one of the first mostCodes of its channel, else otherCode.
func (l *codeLabels) label(channel, code string) string {
	if !plainCode(code) {
		return otherCode
	}
	key := codeLabel{channel, code}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.seen[key]; ok {
		return code
	}
	if l.many[channel] == mostCodes {
		return otherCode
	}
	l.seen[key] = struct{}{}
	l.many[channel]++
	return code
}

// plainCode reports whether a code may be a label value: a short word such as "0x00000058",
// "429/20003" or "timeout", and nothing that could be a number.
func plainCode(code string) bool {
	if code == "" || len(code) > mostCodeBytes {
		return false
	}
	digits := 0
	for i := range len(code) {
		switch c := code[i]; {
		case c >= '1' && c <= '9', c == '0' && digits > 0: // leading zeros are padding
			if digits++; digits > mostDigits {
				return false
			}
		case c == '0', c == '_', c == '-', c == '.', c == '/', c == ':',
			c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
			digits = 0
		default:
			return false
		}
	}
	return true
}

// coded counts the code of an answer that is not accepted.
func (m *Metrics) coded(channel string, result *provider.Result) {
	if result.Outcome != provider.Accepted {
		m.codes.WithLabelValues(channel, result.Outcome.String(),
			m.codeLabels.label(channel, result.Code)).Inc()
	}
}
