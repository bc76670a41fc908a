package decide

import "dispatcher/provider/sms"

// SenderOf is how reports name a sender id, so that they show no number: a name or a short code as
// it is, long_code for a number, empty for none. A name with more than eight digits, such as
// 0770-900123, counts as a number.
func SenderOf(from string) string {
	digits := 0
	for _, r := range from {
		if r >= '0' && r <= '9' {
			digits++
		}
	}
	switch kind := sms.KindOf(from); {
	case kind == sms.LongCode, digits > maxSenderDigits && kind == sms.Alphanumeric:
		return sms.LongCode.String()
	case kind == sms.Alphanumeric, kind == sms.ShortCode:
		return from
	}
	return ""
}

// maxSenderDigits is how many digits a short code has at most.
const maxSenderDigits = 8
