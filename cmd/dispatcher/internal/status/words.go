package status

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"dispatcher/cmd/dispatcher/internal/report"
)

// StateWords are the state and what keeps it from sending.
func (c *Channel) StateWords() string {
	words := []string{c.State}
	if why := c.WhyWords(); why != "" {
		words = append(words, why)
	}
	if c.Silent {
		words = append(words, "silent")
	}
	if c.Throttled < 1 || c.PausedUntil != nil {
		words = append(words, "throttled to "+report.Percent(c.Throttled))
	}
	return strings.Join(words, "\n")
}

// WhyWords say why instances cannot send on it.
func (c *Channel) WhyWords() string {
	var words []string
	for _, r := range c.NotReady {
		words = append(words, fmt.Sprintf("%s on %d", r.Reason, r.Instances))
	}
	return strings.Join(words, ", ")
}

// ErrorWords are the provider's codes, and how many attempts did not leave.
func (c *Channel) ErrorWords() string {
	words := CountWords(c.Codes, "\n")
	if len(c.Unsent) == 0 {
		return words
	}
	if words != "" {
		words += "\n"
	}
	return words + "not sent: " + CountWords(c.Unsent, ", ")
}

// CountWords are codes and how often each came.
func CountWords(codes []CodeCount, between string) string {
	var words []string
	for _, code := range codes {
		words = append(words, fmt.Sprintf("%s: %d", code.Code, code.Count))
	}
	return strings.Join(words, between)
}

// BreakerWords is the state of the breaker and since when.
func (c *Channel) BreakerWords() string {
	words := strings.ReplaceAll(c.Breaker, "_", "-")
	if c.BreakerSince != nil && c.Breaker != "closed" {
		words += " since " + c.BreakerSince.UTC().Format("15:04:05 UTC")
	}
	return words
}

// CodeWords name the most frequent code, to follow a sentence.
func (c *Channel) CodeWords() string {
	if len(c.Codes) == 0 {
		return ""
	}
	return fmt.Sprintf("; most frequent code %s, %d times", c.Codes[0].Code, c.Codes[0].Count)
}

// moment is nil for the zero time.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func instanceWords(n int) string {
	if n == 1 {
		return "1 instance"
	}
	return strconv.Itoa(n) + " instances"
}
