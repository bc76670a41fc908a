package smpp

import (
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
)

func TestReceiptsMeanTheSameForEveryCarrier(t *testing.T) {
	t.Parallel()
	own := Config{ReceiptMeanings: ReceiptMeanings{
		"UNDELIV/012": {provider.Undelivered, provider.Absent}, "/099": {provider.Undelivered, provider.Spam},
		"ACCEPTD": {State: provider.Delivered}, "EXPIRED": {State: provider.Pending},
	}}
	network := func(kind, code byte) pdu.TLVs {
		return pdu.TLVs{{Tag: pdu.TagNetworkErrorCode, Value: []byte{kind, 0, code}}}
	}
	for name, c := range map[string]struct {
		cfg   Config
		text  string
		tlvs  pdu.TLVs
		state provider.ReceiptState
		cause provider.Cause
	}{
		"delivered":             {text: "stat:DELIVRD err:027", state: provider.Delivered},
		"expired":               {text: "stat:EXPIRED", state: provider.Undelivered, cause: provider.Expired},
		"deleted":               {text: "stat:DELETED", state: provider.Undelivered, cause: provider.Deleted},
		"rejected":              {text: "stat:REJECTD err:012", state: provider.Undelivered},
		"no credit":             {text: "stat:NOCRED", state: provider.Undelivered, cause: provider.NoCredit},
		"system error":          {text: "stat:SYSERR", state: provider.Undelivered, cause: provider.NetworkError},
		"a number as state":     {text: "stat:2", state: provider.Delivered},
		"equals signs":          {text: "stat=UNDELIV", state: provider.Undelivered},
		"the error of nobody":   {text: "stat:UNDELIV err:001", state: provider.Undelivered},
		"the error of GSM":      {cfg: Config{GSMErrors: true}, text: "stat:UNDELIV err:001", state: provider.Undelivered, cause: provider.UnknownNumber},
		"an odd error of GSM":   {cfg: Config{GSMErrors: true}, text: "stat:UNDELIV err:01A", state: provider.Undelivered},
		"GSM says barred":       {text: "stat:UNDELIV", tlvs: network(3, 13), state: provider.Undelivered, cause: provider.Blocked},
		"GSM says no SMS":       {text: "stat:REJECTD", tlvs: network(3, 11), state: provider.Undelivered, cause: provider.NotMobile},
		"GSM says failure":      {text: "stat:UNDELIV", tlvs: network(3, 34), state: provider.Undelivered, cause: provider.NetworkError},
		"GSM says what is rare": {text: "stat:UNDELIV", tlvs: network(3, 99), state: provider.Undelivered},
		"another network":       {text: "stat:UNDELIV", tlvs: network(1, 13), state: provider.Undelivered},
		"expired while absent":  {text: "stat:EXPIRED", tlvs: network(3, 27), state: provider.Undelivered, cause: provider.Expired},
		"own pair":              {cfg: own, text: "stat:UNDELIV err:012", state: provider.Undelivered, cause: provider.Absent},
		"own error":             {cfg: own, text: "stat:REJECTD err:099", state: provider.Undelivered, cause: provider.Spam},
		"own word":              {cfg: own, text: "stat:ACCEPTD err:000", state: provider.Delivered},
		"own word, no end":      {cfg: own, text: "stat:EXPIRED", state: provider.Pending},
		"not own":               {cfg: own, text: "stat:UNDELIV err:013", state: provider.Undelivered},
	} {
		m := textReceipt("id:7F " + c.text)
		m.TLVs = c.tlvs
		r, ok := c.cfg.parseReceipt(&m, time.Time{})
		if !ok || r.State != c.state || r.Cause != c.cause {
			t.Errorf("%s: %v %q, want %v %q", name, r.State, r.Cause, c.state, c.cause)
		}
	}
}

func TestAnIntermediateNotificationIsNoEndWhateverTheTableSays(t *testing.T) {
	t.Parallel()
	cfg := Config{ReceiptMeanings: ReceiptMeanings{"UNDELIV": {State: provider.Undelivered}}}
	m := pdu.Message{ESMClass: pdu.ESMClassIntermediate, ShortMessage: []byte("id:7F stat:UNDELIV")}
	if r, ok := cfg.parseReceipt(&m, time.Time{}); !ok || r.State != provider.Pending {
		t.Errorf("%+v", r)
	}
}

func TestReceiptsWithoutTypeAreToldByTheirTextWhereThatIsSet(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"id:7F sub:001 dlvrd:001 stat:DELIVRD err:000 text:": true,
		"ID=7F STAT=UNDELIV ERR=1":                           true,
		"id:7F stat:DELIVRD":                                 false,
		"stat:DELIVRD err:000":                               false,
		"STOP":                                               false,
	} {
		m := pdu.Message{ShortMessage: []byte(text)}
		if _, ok := (&Config{UntypedReceipts: true}).parseReceipt(&m, time.Time{}); ok != want {
			t.Errorf("%q is a receipt: %t", text, ok)
		}
		if _, ok := (&Config{}).parseReceipt(&m, time.Time{}); ok {
			t.Errorf("%q is a receipt without the setting", text)
		}
	}
}

func TestTheKeyComesBackInTheParameterOfTheChannel(t *testing.T) {
	t.Parallel()
	cfg := &Config{KeyTLV: 0x1400, ReceiptKeyTLV: 0x1401}
	for value, want := range map[string]string{
		someKey: someKey, someKey + "\x00": someKey, "0123456789ABCDEF0123456789ABCDEF": someKey,
		"0123": "", someKey + "0": "", "0123456789abcdef0123456789abcdeg": "",
	} {
		m := textReceipt("stat:DELIVRD")
		m.TLVs = pdu.TLVs{{Tag: 0x1401, Value: []byte(value)}}
		r, ok := cfg.parseReceipt(&m, time.Time{})
		if !ok || r.Key != want {
			t.Errorf("%q: key %q, %t", value, r.Key, ok)
		}
		if r, _ := (&Config{}).parseReceipt(&m, time.Time{}); r.Key != "" {
			t.Errorf("a key without the setting: %q", r.Key)
		}
	}
}
