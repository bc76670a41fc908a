package plivo

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"dispatcher/config/tier"
	"dispatcher/provider"
	"dispatcher/provider/plivo/plivotest"
	"dispatcher/provider/web/webtest"
)

// inboundForm is a message of a subscriber.
func inboundForm(text, from string) url.Values {
	return url.Values{
		"From": {from}, "To": {"15550100100"}, "Text": {text}, "Type": {"sms"}, "MessageUUID": {u1},
		"Units": {"1"}, "TotalRate": {"0"}, "TotalAmount": {"0.0050"},
	}
}

// statusForm is a status callback with all fields that Plivo documents for an SMS.
func statusForm(status, code string) url.Values {
	return url.Values{
		"From": {"ACME"}, "To": {"447700900123"}, "Type": {"sms"}, "Status": {status},
		"ErrorCode": {code}, "MessageUUID": {u1},
		"ParentMessageUUID": {plivotest.Reference(2)}, "Units": {"1"}, "TotalRate": {"0.0050"},
		"TotalAmount": {"0.0050"}, "MCC": {"234"},
		"MNC": {"15"}, "PartInfo": {"1 of 2"}, "MessageTime": {"2026-11-22 10:00:00.000000"},
		"QueuedTime":         {"2026-11-22 10:00:00.100000"},
		"SentTime":           {"2026-11-22 10:00:00.200000"},
		"DeliveryReportTime": {"2026-11-22 10:00:03.000000"},
		"PowerpackUUID":      {"5ec4c8c9-cd74-42b5-9e41-0d7670d6bb46"}, "Sequence": {"3"},
		"requester_ip": {"192.0.2.7"},
	}
}

// statusFrom is the status of a message with this sender.
func statusFrom(sender, status, code string) url.Values {
	form := statusForm(status, code)
	form.Set("From", sender)
	return form
}

// adversarial lists senders equal to names of fields. An alphanumeric sender has at most 11
// characters.
var adversarial = []string{
	"TextLocal", "Statuspage", "Status", "Text", "StatusText", "SmsText", "FromText", "FromTextTo1",
	"TextFromTo", "ErrorCode30", "Statussent",
	"Parent", "MessageUUID", "ToText", "MediaMarkt", "TotalText", "MCC", "To", "FromStatus",
}

// forgedTexts lists texts that contain what a forger wants to be read as fields or as a nonce.
var forgedTexts = []string{
	"STOP", "STOPTalking to him", "STOPTo60777", "STOPTo60777TotalAmount0TotalRate0TypesmsUnits1",
	"STOP.", "STOP.1234", "Text", "STOPTextSTOP",
	"", "From447700900999", "STOPToTo", "Go To Town", "STOPTotal", "STOPTransport. Units1.99",
}

// captured is a genuine callback.
type captured struct {
	listener         provider.CallbackReader
	url, nonce, sign string
	genuine          provider.CallbackContent
	accepted         int
}

func capture(t rapid.TB, l provider.CallbackReader, address string, form url.Values) *captured {
	t.Helper()
	c := &captured{listener: l, url: address, nonce: "05429567804466091622"}
	c.sign = plivotest.SignV3(token, address, c.nonce, form)
	var err error
	if c.genuine, err = c.read(address, c.nonce, []byte(form.Encode())); err != nil ||
		len(c.genuine.Receipts)+len(c.genuine.Inbound) != 1 {
		t.Fatalf("the genuine callback reads as %+v, %v", c.genuine, err)
	}
	return c
}

func (c *captured) read(address, nonce string, body []byte) (provider.CallbackContent, error) {
	return c.listener.ReadCallback(&provider.Callback{
		Method: http.MethodPost, URL: address, Body: body, Header: v3(c.sign, nonce),
	})
}

func (c *captured) try(t rapid.TB, address, nonce string, body []byte) {
	t.Helper()
	content, err := c.read(address, nonce, body)
	if !errors.Is(err, provider.ErrForged) {
		c.accepted++
	}
	if err == nil && !cmp.Equal(content, c.genuine) {
		t.Fatalf("under the same signature %q with nonce %q reads as %+v, want %+v", body, nonce,
			content, c.genuine)
	}
}

// TestNoOtherCutOfACallbackIsAccepted tries every way to cut one more field out of a value, to
// extend a value over the fields after it, to move fields into the address or the query, and to
// move the end of the form into the nonce.
func TestNoOtherCutOfACallbackIsAccepted(t *testing.T) {
	t.Parallel()
	l := channelWith(t)(token)
	forms := map[string]url.Values{
		"delivered": statusForm("delivered", "000"), "undelivered": statusForm("undelivered", "80"),
	}
	for _, sender := range tier.Sample(adversarial, 3) {
		forms["from "+sender] = statusFrom(sender, "undelivered", "80")
	}
	forms["a text from TextLocal"] = inboundForm("STOP", "TextLocal")
	forms["a text from Statuspage"] = inboundForm("STOP", "Statuspage")
	senders := []string{"447700900123", "60778", "ACME"}
	for i, text := range tier.Sample(forgedTexts, 4) { // each has thousands of cuts
		forms[text] = inboundForm(text, senders[i%len(senders)])
	}
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := callback
			if form.Has("Status") {
				address = callback + "?key=" + webtest.Key + "&proof=" + proofOfKey
			}
			c := capture(t, l, address, form)
			all := webtest.Fields(form)
			webtest.EachCut(all,
				func(cut []webtest.Field) { c.try(t, address, c.nonce, webtest.Encode(cut)) })
			c.moved(t, all)
			if c.accepted < 20 {
				t.Errorf("only %d of the cuts have the right signature: the test tries too little",
					c.accepted)
			}
		})
	}
}

// moved tries cuts that move fields from either end of the form into the URL or the nonce.
func (c *captured) moved(t rapid.TB, all []webtest.Field) {
	t.Helper()
	base, query, _ := strings.Cut(c.url, "?")
	for i := range all {
		before := webtest.Joined(all[:i])
		c.try(t, base+"?"+query+"."+before, c.nonce, webtest.Encode(all[i:]))
		c.try(t, c.url+before, c.nonce, webtest.Encode(all[i:]))
		// The last field ends at a point and the nonce begins there.
		for at, r := range all[i].Value {
			if r == '.' {
				cut := append(append([]webtest.Field{}, all[:i]...),
					webtest.Field{Name: all[i].Name, Value: all[i].Value[:at]})
				c.try(t, c.url, all[i].Value[at+1:]+webtest.Joined(all[i+1:])+"."+c.nonce,
					webtest.Encode(cut))
			}
		}
	}
	if nonce, rest, ok := strings.Cut(c.nonce, "0"); ok { // the form ends in the nonce
		c.try(t, c.url, rest, webtest.Encode(append(append([]webtest.Field{}, all[:len(all)-1]...),
			webtest.Field{
				Name: all[len(all)-1].Name, Value: all[len(all)-1].Value + "." + nonce + "0",
			})))
	}
}

// TestNoRandomTextOfASubscriberIsReadOtherwise tries the same cuts with random texts.
func TestNoRandomTextOfASubscriberIsReadOtherwise(t *testing.T) {
	t.Parallel()
	l := channelWith(t)(token)
	parts := rapid.SampledFrom(
		append([]string{
			"To", "Total", "Text", "Type", "From", "MessageUUID" + u1, ".", "1", " ", "a", "Zz",
		}, forgedTexts...))
	tier.Check(t, func(rt *rapid.T) {
		form := inboundForm(strings.Join(rapid.SliceOfN(parts, 0, 3).Draw(rt, "text"), ""),
			"447700900123")
		c := capture(rt, l, callback, form)
		if got := c.genuine.Inbound[0].Text; got != form.Get("Text") {
			rt.Fatalf("%q was read as %q", form.Get("Text"), got)
		}
		n := 0
		webtest.EachCut(webtest.Fields(form), func(cut []webtest.Field) {
			if n++; n%17 == 0 {
				c.try(rt, callback, c.nonce, webtest.Encode(cut))
			}
		})
		c.moved(rt, webtest.Fields(form))
	})
}

// TestNoRandomSenderOfAStatusIsReadOtherwise tries the same cuts with senders composed of names of
// fields.
func TestNoRandomSenderOfAStatusIsReadOtherwise(t *testing.T) {
	t.Parallel()
	l := channelWith(t)(token)
	parts := rapid.SampledFrom(
		append([]string{"Text", "Status", "From", "To", "a", "1", "ErrorCode", "sent", "."},
			adversarial...))
	tier.Check(t, func(rt *rapid.T) {
		sender := strings.Join(rapid.SliceOfN(parts, 1, 3).Draw(rt, "sender"), "")
		form := statusFrom(sender[:min(len(sender), 11)], "delivered", "000")
		c := capture(rt, l, callback, form)
		n := 0
		webtest.EachCut(webtest.Fields(form), func(cut []webtest.Field) {
			if n++; n%37 == 0 {
				c.try(rt, callback, c.nonce, webtest.Encode(cut))
			}
		})
		c.moved(rt, webtest.Fields(form))
	})
}

// TestADroppedSignatureDoesNotUseUpTheReplayID: V2 does not cover the body, so a callback without
// V3 must not use up the nonce.
func TestADroppedSignatureDoesNotUseUpTheReplayID(t *testing.T) {
	t.Parallel()
	c := channelWith(t)(token)
	genuine := signedAt(callback+"?key="+webtest.Key+"&proof="+proofOfKey,
		url.Values{"MessageUUID": {u1}, "Status": {"delivered"}})
	whole, err := c.ReadCallback(genuine)
	if err != nil {
		t.Fatal(err)
	}
	delete(genuine.Header, "X-Plivo-Signature-V3")
	addressSigned, err := c.ReadCallback(genuine)
	if err != nil || addressSigned.ReplayID == whole.ReplayID {
		t.Errorf("%+v, %v", addressSigned, err)
	}
}
