package smpp

import (
	"time"

	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
)

// validityPeriod writes when the message loses its use; see Config.Validity. A point in time is that of
// the database, a span counts by this process's clock.
func (c *Config) validityPeriod(s *provider.Submission, now time.Time) (string, error) {
	longest, ends := c.longestValidity(), s.Ends()
	switch {
	case ends.IsZero() && c.Validity == 0:
		return "", nil
	case ends.IsZero():
		return c.moment(now.Add(min(c.Schedule+c.Validity, longest)), now), nil
	}
	left := ends.Sub(now)
	switch {
	case left <= c.Schedule:
		return "", faultExpired
	case left > longest:
		return c.moment(now.Add(longest), now), nil
	case c.ValidityFormat == Relative:
		return pdu.FormatPeriod(left), nil
	}
	if !s.Validity.IsZero() {
		ends = s.Validity
	}
	return c.moment(ends, now), nil
}

// renewValidity writes what is left of the message's time into a frame that is about to leave: it may have
// waited since it was encoded.
func (c *call) renewValidity(cfg *Config, now time.Time) {
	if c.validityAt > 0 && !c.expires.IsZero() {
		copy(c.frame[c.validityAt:], pdu.FormatPeriod(min(c.expires.Sub(now), cfg.longestValidity())))
	}
}

// longestValidity bounds every validity_period.
func (c *Config) longestValidity() time.Duration {
	if c.LongestValidity > 0 {
		return c.LongestValidity
	}
	return DefaultLongestValidity
}

// scheduleTime writes until when the SMSC keeps a message back; empty for not at all.
func (c *Config) scheduleTime(now time.Time) string {
	if c.Schedule == 0 {
		return ""
	}
	return c.moment(now.Add(c.Schedule), now)
}

// moment writes a time as the channel's ValidityFormat says.
func (c *Config) moment(at, now time.Time) string {
	if c.ValidityFormat == Relative {
		return pdu.FormatPeriod(at.Sub(now))
	}
	return pdu.FormatTime(at)
}
