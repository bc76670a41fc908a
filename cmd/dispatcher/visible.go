package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Providers, authors and producers write text that commands print. A control character in it could
// move the cursor of a terminal, or hide and reorder what stands there. All output of commands goes
// through a visibleWriter, which shows such characters escaped. What the program itself writes with
// control characters (colours of tables, the progress bar, console logs) goes to direct.

// hidden reports whether a character acts on a terminal, or cannot be seen: control and format
// characters (the bidirectional and zero-width ones among them), and the separators of lines and
// paragraphs. Line ends and tabs are layout.
func hidden(r rune) bool {
	switch r {
	case '\n', '\t':
		return false
	case '\u2028', '\u2029':
		return true
	}
	return unicode.In(r, unicode.Cc, unicode.Cf)
}

// visible shows hidden characters of a text as JSON escapes, so that JSON stays what it is. What is
// not UTF-8 becomes U+FFFD.
func visible(text string) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, hidden) {
		return text
	}
	return string(appendVisible(nil, text))
}

func appendVisible[T string | []byte](dst []byte, text T) []byte {
	for _, r := range string(text) {
		switch {
		case !hidden(r):
			dst = utf8.AppendRune(dst, r)
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			dst = fmt.Appendf(dst, "\\u%04x\\u%04x", high, low)
		default:
			dst = fmt.Appendf(dst, "\\u%04x", r)
		}
	}
	return dst
}

// visibleWriter writes text with hidden characters escaped. It is safe for concurrent use.
type visibleWriter struct {
	raw io.Writer

	mu   sync.Mutex
	rest []byte // guarded by mu; the beginning of a character whose end is to come
}

// showing is a visibleWriter to out.
func showing(out io.Writer) *visibleWriter {
	if v, ok := out.(*visibleWriter); ok {
		return v
	}
	return &visibleWriter{raw: out}
}

// direct is what a visibleWriter writes to: for text that is escaped already, or that is the
// program's own.
func direct(out io.Writer) io.Writer {
	if v, ok := out.(*visibleWriter); ok {
		return v.raw
	}
	return out
}

// Write implements io.Writer. A character may come in two pieces.
func (v *visibleWriter) Write(text []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := append(v.rest, text...)
	whole := len(all) - unfinished(all)
	v.rest = append([]byte(nil), all[whole:]...)
	if _, err := v.raw.Write(appendVisible(make([]byte, 0, whole), all[:whole])); err != nil {
		return 0, err
	}
	return len(text), nil
}

// finish writes what is left of a character that never ended.
func (v *visibleWriter) finish() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.rest) > 0 {
		_, _ = v.raw.Write(appendVisible(nil, v.rest)) // nobody is left to be told
		v.rest = nil
	}
}

// unfinished is how many bytes at the end of a text begin a character that is not whole.
func unfinished(text []byte) int {
	for n := 1; n <= min(utf8.UTFMax-1, len(text)); n++ {
		if last := text[len(text)-n:]; utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				return 0
			}
			return n
		}
	}
	return 0
}
