package status

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"dispatcher/cmd/dispatcher/internal/report"
)

// StateWords is the state of the channel, and why it cannot send.
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

// WhyWords says on how many instances the channel cannot send, and why.
func (c *Channel) WhyWords() string { return ReasonWords(c.NotReady) }

// ReasonWords lists reasons with their instances.
func ReasonWords(reasons []ReasonCount) string {
	var words []string
	for _, r := range reasons {
		words = append(words, fmt.Sprintf("%s on %d", r.Reason, r.Instances))
	}
	return strings.Join(words, ", ")
}

// ErrorWords lists the provider's codes, and how many attempts did not leave.
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

// CountWords lists codes with their counts.
func CountWords(codes []CodeCount, between string) string {
	var words []string
	for _, code := range codes {
		words = append(words, fmt.Sprintf("%s: %d", code.Code, code.Count))
	}
	return strings.Join(words, between)
}

// BreakerWords is the state of the breaker, and its beginning.
func (c *Channel) BreakerWords() string {
	words := strings.ReplaceAll(c.Breaker, "_", "-")
	if c.BreakerSince != nil && c.Breaker != "closed" {
		words += " since " + c.BreakerSince.UTC().Format("15:04:05 UTC")
	}
	return words
}

// RateWords is the rate and, if a limit bounds it, the limit, both in attempts a second.
func (c *Channel) RateWords() string {
	words := strconv.FormatFloat(c.Rate, 'f', 1, 64)
	if c.Limit != nil {
		words += " of " + strconv.FormatFloat(math.Round(*c.Limit*100)/100, 'f', -1, 64)
	}
	return words
}

// CodeWords names the most frequent code; it is appended to a sentence.
func (c *Channel) CodeWords() string {
	if len(c.Codes) == 0 {
		return ""
	}
	return fmt.Sprintf("; most frequent code %s, %d times", c.Codes[0].Code, c.Codes[0].Count)
}

func instanceWords(n int) string {
	if n == 1 {
		return "1 instance"
	}
	return strconv.Itoa(n) + " instances"
}
