package smpp

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dispatcher/config/tier"
	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/smpp/smpptest"
)

// TestReceiptsOfEveryCarrierFindTheirMessage submits to carriers with each known deviation and
// waits for the receipt.
func TestReceiptsOfEveryCarrierFindTheirMessage(t *testing.T) {
	t.Parallel()
	decimal := func(id string) string {
		n, _ := strconv.ParseUint(id, 16, 64)
		return strconv.FormatUint(n, 10)
	}
	hexadecimal := func(n uint64) string { return "0" + strconv.FormatUint(0xabc000+n, 16) }
	for name, c := range map[string]struct {
		version byte
		form    smpptest.ReceiptForm
		adjust  func(*Config)
	}{
		"full":           {},
		"text":           {form: smpptest.ReceiptForm{Style: smpptest.TextReceipt}},
		"parameters":     {form: smpptest.ReceiptForm{Style: smpptest.ParameterReceipt}},
		"small letters":  {form: smpptest.ReceiptForm{Style: smpptest.LowerCaseReceipt}},
		"sparse":         {form: smpptest.ReceiptForm{Style: smpptest.SparseReceipt}},
		"reordered":      {form: smpptest.ReceiptForm{Style: smpptest.ReorderedReceipt}},
		"data_sm":        {form: smpptest.ReceiptForm{DataSM: true}},
		"data_sm, text":  {form: smpptest.ReceiptForm{DataSM: true, Style: smpptest.TextReceipt}},
		"untyped, named": {form: smpptest.ReceiptForm{Untyped: true}},
		"untyped": {
			form:   smpptest.ReceiptForm{Untyped: true, Style: smpptest.TextReceipt},
			adjust: func(c *Config) { c.UntypedReceipts = true },
		},
		"decimal": {
			form:   smpptest.ReceiptForm{ID: decimal},
			adjust: func(c *Config) { c.ReceiptID = ReceiptID{Form: DecimalToHex, Width: 7} },
		},
		"version 3.3": {
			version: pdu.Version33,
			adjust:  func(c *Config) { c.InterfaceVersion, c.Bind = pdu.Version33, TransmitterReceiver },
		},
		"version 5.0": {
			version: pdu.Version50, adjust: func(c *Config) { c.InterfaceVersion = pdu.Version50 },
		},
		"our key": {
			form: smpptest.ReceiptForm{
				Style: smpptest.SparseReceipt, ID: func(string) string { return "strange" },
				Echo: 0x1400,
			},
			adjust: func(c *Config) { c.KeyTLV, c.ReceiptKeyTLV = 0x1400, 0x1400 },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := startServer(t, smpptest.Config{Version: c.version, Behaviour: smpptest.Behaviour{
				Receipts: true, ReceiptForm: c.form, MessageID: hexadecimal,
			}})
			taken := make(chan provider.Receipt, 1)
			cfg := fastConfig(srv.Addr())
			cfg.OnReceipt = atOnce(func(r provider.Receipt) bool { taken <- r; return true })
			cfg.OnInbound = func(provider.Inbound) bool { t.Error("an inbound message"); return true }
			if c.adjust != nil {
				c.adjust(&cfg)
			}
			s := submission(1)
			s.Key = someKey
			result := send(startClient(t, cfg), s)
			r := next(t, taken)
			byKey := cfg.ReceiptKeyTLV != 0
			if r.State != provider.Delivered || !byKey && r.Reference != result.Reference ||
				byKey && r.Key != someKey {
				t.Errorf("receipt %+v for %q", r, result.Reference)
			}
		})
	}
}

// TestPeersOfVersion50AreToldWhichCommandsAreNotKnown: alert_notification gets no answer.
func TestPeersOfVersion50AreToldWhichCommandsAreNotKnown(t *testing.T) {
	t.Parallel()
	_, peer := startRaw(t, Config{})
	peer.send(
		0, 1, &pdu.AlertNotification{Source: pdu.Address{TON: 1, NPI: 1, Addr: "447700900123"}})
	for _, command := range []pdu.Command{
		pdu.CommandBroadcastSM, pdu.CommandQueryBroadcastSM, pdu.CommandCancelBroadcastSM,
	} {
		peer.write(pdu.AppendEmpty(nil, command, 0, 7))
		if h := peer.expect(pdu.CommandGenericNack); h.Status != pdu.StatusInvCmdID ||
			h.Sequence != 7 {
			t.Errorf("%v: %+v", command, h)
		}
	}
	peer.write(pdu.AppendEmpty(nil, pdu.CommandBroadcastSM.Response(), 0, 7))
	peer.write(pdu.AppendEmpty(nil, pdu.CommandEnquireLink, 0, 8))
	if h := peer.expect(pdu.CommandEnquireLinkResp); h.Sequence != 8 {
		t.Errorf("%+v", h)
	}
	go answerUnbind(peer)
}

func TestIDsOfReceiptsBecomeThoseOfTheAnswer(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("9", maxReference)
	for name, c := range map[string]struct {
		form     ReceiptID
		id, want string
	}{
		"as it is":           {ReceiptID{}, "00aB", "00aB"},
		"hexadecimal":        {ReceiptID{Form: HexToDecimal}, "39F99DD5", "972660181"},
		"decimal":            {ReceiptID{Form: DecimalToHex}, "972660181", "39f99dd5"},
		"decimal with zeros": {ReceiptID{Form: DecimalToHex}, "0972660181", "39f99dd5"},
		"capitals": {
			ReceiptID{Form: DecimalToHex, Case: UpperCase}, "972660181", "39F99DD5",
		},
		"filled up": {
			ReceiptID{Form: DecimalToHex, Width: 10}, "972660181", "0039f99dd5",
		},
		"decimal filled up": {
			ReceiptID{Form: HexToDecimal, Width: 10}, "0x39f99dd5", "0972660181",
		},
		"zeros dropped": {ReceiptID{Width: 1}, "000123", "123"},
		"zeros alone":   {ReceiptID{Width: 1}, "000", "0"},
		"small":         {ReceiptID{Case: LowerCase}, "ABC-7F", "abc-7f"},
		"wider than 64 bits": {
			ReceiptID{Form: HexToDecimal}, "ffffffffffffffffff", "4722366482869645213695",
		},
		"no number":              {ReceiptID{Form: DecimalToHex}, "node-7", "node-7"},
		"no number of that base": {ReceiptID{Form: DecimalToHex}, "7f", "7f"},
		"a sign":                 {ReceiptID{Form: DecimalToHex}, "-7", "-7"},
		"too long when turned":   {ReceiptID{Form: HexToDecimal}, long, long},
	} {
		if got := c.form.convert(c.id); got != c.want {
			t.Errorf("%s: %q becomes %q, want %q", name, c.id, got, c.want)
		}
	}
}

func TestTheIDIsTakenFromWhereTheSettingSays(t *testing.T) {
	t.Parallel()
	m := textReceipt("id:127 stat:DELIVRD")
	m.TLVs = pdu.TLVs{pdu.CString(pdu.TagReceiptedMessageID, "7f")}
	for from, want := range map[IDSource]string{AnyID: "7f", TextID: "127", ParameterID: "7f"} {
		if got := (ReceiptID{From: from}).reference(&m, m.ShortMessage); got != want {
			t.Errorf("from %d: %q, want %q", from, got, want)
		}
	}
	m.TLVs = nil
	for from, want := range map[IDSource]string{AnyID: "127", TextID: "127", ParameterID: ""} {
		if got := (ReceiptID{From: from}).reference(&m, m.ShortMessage); got != want {
			t.Errorf("without the parameter, from %d: %q, want %q", from, got, want)
		}
	}
}

// TestEveryNumberSurvivesTheWayToReceiptAndBack writes an id as an answer does and as a receipt
// does.
func TestEveryNumberSurvivesTheWayToReceiptAndBack(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		n := rapid.Uint64().Draw(t, "id")
		width := rapid.SampledFrom([]int{0, 1, 10, 16, 20}).Draw(t, "width")
		answer, receipt, form := fmt.Sprintf("%0*x", width, n), fmt.Sprintf("%010d", n),
			ReceiptID{Form: DecimalToHex, Width: width}
		if rapid.Bool().Draw(t, "other way") {
			answer, receipt, form.Form = fmt.Sprintf("%0*d", width, n), fmt.Sprintf("%X", n),
				HexToDecimal
		}
		if got := form.convert(receipt); got != answer {
			t.Fatalf("%q becomes %q, want %q", receipt, got, answer)
		}
	})
}

func TestReceiptsMeanTheSameForEveryCarrier(t *testing.T) {
	t.Parallel()
	own := Config{ReceiptMeanings: ReceiptMeanings{
		"UNDELIV/012": {provider.Undelivered, provider.Absent},
		"/099":        {provider.Undelivered, provider.Spam},
		"ACCEPTD":     {State: provider.Delivered}, "EXPIRED": {State: provider.Pending},
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
		"delivered": {text: "stat:DELIVRD err:027", state: provider.Delivered},
		"expired": {
			text: "stat:EXPIRED", state: provider.Undelivered, cause: provider.Expired,
		},
		"deleted": {
			text: "stat:DELETED", state: provider.Undelivered, cause: provider.Deleted,
		},
		"rejected": {text: "stat:REJECTD err:012", state: provider.Undelivered},
		"no credit": {
			text: "stat:NOCRED", state: provider.Undelivered, cause: provider.NoCredit,
		},
		"system error": {
			text: "stat:SYSERR", state: provider.Undelivered, cause: provider.NetworkError,
		},
		"a number as state":        {text: "stat:2", state: provider.Delivered},
		"equals signs":             {text: "stat=UNDELIV", state: provider.Undelivered},
		"an error of unknown type": {text: "stat:UNDELIV err:001", state: provider.Undelivered},
		"the error of GSM": {
			cfg: Config{GSMErrors: true}, text: "stat:UNDELIV err:001", state: provider.Undelivered,
			cause: provider.UnknownNumber,
		},
		"an odd error of GSM": {
			cfg: Config{GSMErrors: true}, text: "stat:UNDELIV err:01A", state: provider.Undelivered,
		},
		"GSM says barred": {
			text: "stat:UNDELIV", tlvs: network(3, 13), state: provider.Undelivered,
			cause: provider.Blocked,
		},
		"GSM says no SMS": {
			text: "stat:REJECTD", tlvs: network(3, 11), state: provider.Undelivered,
			cause: provider.NotMobile,
		},
		"GSM says failure": {
			text: "stat:UNDELIV", tlvs: network(3, 34), state: provider.Undelivered,
			cause: provider.NetworkError,
		},
		"GSM says what is rare": {
			text: "stat:UNDELIV", tlvs: network(3, 99), state: provider.Undelivered,
		},
		"another network": {
			text: "stat:UNDELIV", tlvs: network(1, 13), state: provider.Undelivered,
		},
		"expired while absent": {
			text: "stat:EXPIRED", tlvs: network(3, 27), state: provider.Undelivered,
			cause: provider.Expired,
		},
		"own pair": {
			cfg: own, text: "stat:UNDELIV err:012", state: provider.Undelivered,
			cause: provider.Absent,
		},
		"own error": {
			cfg: own, text: "stat:REJECTD err:099", state: provider.Undelivered,
			cause: provider.Spam,
		},
		"own word":         {cfg: own, text: "stat:ACCEPTD err:000", state: provider.Delivered},
		"own word, no end": {cfg: own, text: "stat:EXPIRED", state: provider.Pending},
		"not own":          {cfg: own, text: "stat:UNDELIV err:013", state: provider.Undelivered},
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
