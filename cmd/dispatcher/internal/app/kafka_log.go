package app

import (
	"fmt"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"
)

// kafkaLog takes what a Kafka client says of itself into the log, at debug level whatever the client
// thinks of it: what an operator must know is told as an outage. It holds addresses, topics and
// offsets, and nothing of a record.
type kafkaLog struct{ log zerolog.Logger }

var _ kgo.Logger = kafkaLog{}

// Level keeps a client from making sentences that nobody gets.
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
