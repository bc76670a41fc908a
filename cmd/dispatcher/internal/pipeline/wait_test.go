package pipeline

import (
	"time"

	"dispatcher/selector"
)

// wish asks for a quality above n, for a while unless that is 0.
func wish(n float64, expiresAfter time.Duration) selector.Selector {
	return selector.Selector{Key: "quality", Operator: selector.GreaterThan, Value: selector.NumberValue(n), ExpiresAfter: expiresAfter}
}
