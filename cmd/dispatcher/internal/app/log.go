package app

import (
	"fmt"
	"io"
	"time"

	"github.com/rs/zerolog"
)

// NewLogger writes to out as JSON lines, or as readable lines when console is set.
// Nothing that is logged holds a phone number or a text: every error that reaches a
// log was redacted by the package that knew them.
func NewLogger(out io.Writer, level string, console bool) (zerolog.Logger, error) {
	l, err := zerolog.ParseLevel(level)
	if err != nil || l == zerolog.NoLevel {
		return zerolog.Nop(), fmt.Errorf("DISPATCHER_LOG_LEVEL %q is none of trace, debug, info, warn, error", level)
	}
	if console {
		out = zerolog.ConsoleWriter{Out: out, TimeFormat: time.TimeOnly}
	}
	return zerolog.New(out).Level(l).With().Timestamp().Logger(), nil
}

// repeats keeps an error that comes again and again from filling the log: the same
// sentence is written once per interval with the number of times it was left out.
// It is used by one goroutine at a time.
type repeats struct {
	last    string
	at      time.Time
	skipped int
}

// repeatInterval is how often one and the same sentence is written.
const repeatInterval = 10 * time.Second

// admit reports whether the sentence is to be written now, and how many were left out before.
func (r *repeats) admit(sentence string, now time.Time) (skipped int, ok bool) {
	if sentence == r.last && now.Sub(r.at) < repeatInterval {
		r.skipped++
		return 0, false
	}
	skipped, r.skipped = r.skipped, 0
	r.last, r.at = sentence, now
	return skipped, true
}
