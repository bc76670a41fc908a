package decide

import (
	"time"

	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/ledger"
)

// Origin is a position in Kafka.
type Origin = ledger.Origin

// Job is one record of a lane's topic that is to be stored in the ledger.
type Job struct {
	Lane   string
	Origin Origin
	// Produced is the record's timestamp.
	Produced time.Time
	// Raw is the record's value, unchanged.
	Raw []byte
	// Rewritten is the value as it is stored, with its recipient in E.164 and with its trace; nil when
	// that is equal to Raw.
	Rewritten []byte
	// Message is the decoded envelope; when Problem is set only its ID may be filled in.
	Message envelope.Message
	// Problem says why the record cannot be used; nil when it can.
	Problem *envelope.Problem
}
