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
// move the cursor of a terminal, or hide and reorder text. All output of commands goes through a
// visibleWriter, which escapes such characters. Output of the program itself that needs control
// characters (colours of tables, the progress bar, console logs) goes to direct.

// hidden reports whether a character acts on a terminal or cannot be seen: control and format
// characters (including bidirectional and zero-width ones), and line and paragraph separators. Line
// ends and tabs are allowed, as layout.
func hidden(r rune) bool {
	switch r {
	case '\n', '\t':
		return false
	case '\u2028', '\u2029':
		return true
	}
	return unicode.In(r, unicode.Cc, unicode.Cf)
}

// visible replaces hidden characters of a text by JSON escapes, so that JSON stays equivalent.
// Invalid UTF-8 becomes U+FFFD.
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
	rest []byte // guarded by mu; the beginning of an incomplete character
}

// showing is a visibleWriter for out.
func showing(out io.Writer) *visibleWriter {
	if v, ok := out.(*visibleWriter); ok {
		return v
	}
	return &visibleWriter{raw: out}
}

// direct is the writer behind a visibleWriter: for text that is escaped already, or that the
// program itself has made.
func direct(out io.Writer) io.Writer {
	if v, ok := out.(*visibleWriter); ok {
		return v.raw
	}
	return out
}

// Write implements io.Writer. A character may arrive in two pieces.
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

// finish writes the rest of an incomplete character.
func (v *visibleWriter) finish() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.rest) > 0 {
		_, _ = v.raw.Write(appendVisible(nil, v.rest)) // an error can no longer be reported
		v.rest = nil
	}
}

// unfinished is how many bytes at the end of a text are an incomplete character.
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
