package smpp

import (
	"time"

	"dispatcher/provider/smpp/pdu"
)

// validityPeriod writes when the message loses its use; see Config.Validity.
func (c *Config) validityPeriod(until, now time.Time) (string, error) {
	switch {
	case until.IsZero() && c.Validity == 0:
		return "", nil
	case until.IsZero():
		until = now.Add(c.Schedule + c.Validity)
	case !until.After(now.Add(c.Schedule)):
		return "", faultExpired
	}
	if longest := now.Add(c.longestValidity()); until.After(longest) {
		until = longest
	}
	return c.moment(until, now), nil
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
