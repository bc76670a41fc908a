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
