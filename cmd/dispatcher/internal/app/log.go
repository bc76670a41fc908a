package app

import (
	"fmt"
	"io"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"
)

// NewLogger writes to out as JSON lines, or as lines for people when console is set. The log
// contains no phone number and no text of a message, because the packages leave them out of their
// errors.
func NewLogger(out io.Writer, level string, console bool) (zerolog.Logger, error) {
	l, err := zerolog.ParseLevel(level)
	if err != nil || l == zerolog.NoLevel {
		return zerolog.Nop(), fmt.Errorf(
			"DISPATCHER_LOG_LEVEL %q is none of trace, debug, info, warn, error",
			level,
		)
	}
	if console {
		out = zerolog.ConsoleWriter{Out: out, TimeFormat: time.TimeOnly}
	}
	return zerolog.New(out).Level(l).With().Timestamp().Logger(), nil
}

// kafkaLog writes the log of a Kafka client at debug level, whatever level the client uses: what an
// operator must know is reported as an outage. It contains addresses, topics and offsets, and
// nothing of a record.
type kafkaLog struct{ log zerolog.Logger }

var _ kgo.Logger = kafkaLog{}

// Level lets the client skip lines that would not be written.
func (l kafkaLog) Level() kgo.LogLevel {
	if l.log.GetLevel() > zerolog.DebugLevel {
		return kgo.LogLevelNone
	}
	return kgo.LogLevelInfo
}

// Log writes one line.
func (l kafkaLog) Log(level kgo.LogLevel, message string, fields ...any) {
	event := l.log.Debug().Str("client", "kafka").Stringer("says", level)
	for i := 0; i+1 < len(fields); i += 2 {
		event = event.Str(fmt.Sprint(fields[i]), fmt.Sprint(fields[i+1]))
	}
	event.Msg(message)
}
