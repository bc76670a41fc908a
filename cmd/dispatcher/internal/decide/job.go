package decide

import (
	"time"

	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/ledger"
)

// Origin is a position in Kafka.
type Origin = ledger.Origin

// Job is one record of a lane's topic on its way into the ledger.
type Job struct {
	Lane   string
	Origin Origin
	// Produced is the record's timestamp.
	Produced time.Time
	// Raw is the record's value, untouched.
	Raw []byte
	// Rewritten is the value with its recipient in E.164, which is what is stored; nil when it was
	// so already.
	Rewritten []byte
	// Message is the decoded envelope; when Problem is set only its ID may be filled in.
	Message envelope.Message
	// Problem says why the record cannot be used; nil when it can.
	Problem *envelope.Problem
}
