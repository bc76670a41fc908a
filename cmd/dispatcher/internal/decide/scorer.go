package decide

import (
	"math"

	"dispatcher/selector"
)

// Troubles of a scoring function: the bounded words of Scores.Trouble.
const (
	FunctionTimeout     = "function_timeout"     // no answer within the deadline, or before the batch had to go on
	FunctionStatus      = "function_status"      // it answered with another status than 200
	FunctionInvalid     = "function_invalid"     // its answer cannot be read
	FunctionTooFew      = "function_too_few"     // not one score for each candidate
	FunctionNotFinite   = "function_not_finite"  // a score is NaN or infinite
	FunctionTooLarge    = "function_too_large"   // its answer is longer than is read
	FunctionUnreachable = "function_unreachable" // no connection, or nobody to ask
)

// ScoreQuestion is what a function gets to know about a message, which is neither number
// nor text, and its candidates: all members of the route in configured order.
type ScoreQuestion struct {
	Route, Lane string
	Labels      map[string]selector.Value
	Selectors   []selector.Selector // those that still count
	Candidates  []ScoreCandidate
}

// ScoreCandidate is one channel of a ScoreQuestion.
type ScoreCandidate struct {
	Channel string
	Labels  map[string]selector.Value
	Price   float64 // of one segment to the message's number, in whole units of Currency
	// Currency is that of Price; empty for a channel without a price, whose Price is 0.
	Currency string
}

// Scores is the answer to a ScoreQuestion: one finite value per candidate in the same
// order, or the word for what went wrong.
type Scores struct {
	Values  []float64
	Trouble string
}

// Checked turns an answer that does not fit its question into the trouble that it is.
func (s Scores) Checked(candidates int) Scores {
	if s.Trouble != "" {
		return Scores{Trouble: s.Trouble}
	}
	if len(s.Values) != candidates {
		return Scores{Trouble: FunctionTooFew}
	}
	for _, value := range s.Values {
		if !finite(value) {
			return Scores{Trouble: FunctionNotFinite}
		}
	}
	return s
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }
