package pdu

import (
	"bytes"
	"fmt"
	"strings"
	"time"
)

// The longest a C-Octet String may be when written, its NUL included (section 4.4.1 and its
// neighbours).
const (
	maxSystemID     = 16
	maxSystemType   = 13
	maxAddressRange = 41
	maxServiceType  = 6
	maxAddress      = 21
	maxDataAddress  = 65 // data_sm, alert_notification
	maxTime         = 17
	// maxMessageID is 65 in the standard (section 5.2.23). Some SMSCs use longer ids, which
	// query_sm and cancel_sm must repeat.
	maxMessageID = 256
	// maxPassword is 9 in the standard. Carriers issue longer ones and their SMSCs accept them, so
	// only lengths that no peer uses are refused.
	maxPassword = 65
	// maxShortMessage is the most that sm_length may say (section 5.2.21).
	maxShortMessage = 254
	// maxRead bounds any C-Octet String that is read, its NUL included. Real peers exceed the
	// lengths above.
	maxRead = 256
)

// appendCString appends s and a NUL. limit counts both.
func appendCString(dst []byte, field, s string, limit int) ([]byte, error) {
	if len(s) >= limit {
		return dst, &FieldError{field, "is too long"}
	}
	if strings.IndexByte(s, 0) >= 0 {
		return dst, &FieldError{field, "holds a NUL"}
	}
	return append(append(dst, s...), 0), nil
}

// cursor reads a body field by field. After the first error every read returns a zero value, so
// that err needs one check at the end.
type cursor struct {
	rest []byte
	err  error
}

func (c *cursor) fail(field, problem string) {
	if c.err == nil {
		c.err = &FieldError{field, problem}
	}
	c.rest = nil
}

func (c *cursor) octet(field string) byte {
	if len(c.rest) == 0 {
		c.fail(field, "is truncated")
		return 0
	}
	b := c.rest[0]
	c.rest = c.rest[1:]
	return b
}

// octets returns n octets that alias the body.
func (c *cursor) octets(field string, n int) []byte {
	if len(c.rest) < n {
		c.fail(field, "is truncated")
		return nil
	}
	b := c.rest[:n:n]
	c.rest = c.rest[n:]
	return b
}

func (c *cursor) cstring(field string) string {
	end := bytes.IndexByte(c.rest, 0)
	switch {
	case end < 0:
		c.fail(field, "has no end")
		return ""
	case end >= maxRead:
		c.fail(field, "is too long")
		return ""
	}
	s := string(c.rest[:end])
	c.rest = c.rest[end+1:]
	return s
}

// looseCString reads like cstring but accepts the end of the body as the end of the string: some
// SMSCs omit the NUL of a message_id.
func (c *cursor) looseCString(field string) string {
	if c.err == nil && len(c.rest) > 0 && len(c.rest) < maxRead && bytes.IndexByte(c.rest, 0) < 0 {
		s := string(c.rest)
		c.rest = nil
		return s
	}
	return c.cstring(field)
}

// Address is an address with its type of number and numbering plan (sections 5.2.5
// and 5.2.6).
type Address struct {
	TON, NPI byte
	Addr     string
}

func (a Address) appendTo(dst []byte, field string, limit int) ([]byte, error) {
	return appendCString(append(dst, a.TON, a.NPI), field, a.Addr, limit)
}

func (c *cursor) address(field string) Address {
	return Address{TON: c.octet(field), NPI: c.octet(field), Addr: c.cstring(field)}
}

// FormatTime writes t as an absolute time in UTC: "YYMMDDhhmmsstnnp" with tenths of a second and no
// offset (section 7.1.1.1).
func FormatTime(t time.Time) string {
	buf := t.UTC().AppendFormat(make([]byte, 0, maxTime), "060102150405")
	tenths := byte(t.Nanosecond() / int(100*time.Millisecond))
	return string(append(buf, '0'+tenths, '0', '0', '+'))
}

// FormatPeriod writes d as a relative time: "YYMMDDhhmmss000R" (section 7.1.1.2). It
// is rounded down to seconds, months count 30 days and years 12 months, and d is
// bounded to 1 second below and 99 years above.
func FormatPeriod(d time.Duration) string {
	const day = 24 * time.Hour
	d = min(max(d, time.Second), 99*360*day)
	days := int(d / day)
	rest := d % day
	return fmt.Sprintf("%02d%02d%02d%02d%02d%02d000R", days/360, days%360/30, days%30,
		int(rest/time.Hour), int(rest%time.Hour/time.Minute), int(rest%time.Minute/time.Second))
}
