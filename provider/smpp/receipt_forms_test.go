package smpp

import (
	"strconv"
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/smpp/smpptest"
)

// TestReceiptsOfEveryCarrierFindTheirMessage submits to carriers of every habit and waits for the receipt.
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
			form: smpptest.ReceiptForm{Untyped: true, Style: smpptest.TextReceipt}, adjust: func(c *Config) { c.UntypedReceipts = true },
		},
		"decimal": {
			form: smpptest.ReceiptForm{ID: decimal}, adjust: func(c *Config) { c.ReceiptID = ReceiptID{Form: DecimalToHex, Width: 7} },
		},
		"version 3.3": {version: pdu.Version33, adjust: func(c *Config) { c.InterfaceVersion, c.Bind = pdu.Version33, TransmitterReceiver }},
		"version 5.0": {version: pdu.Version50, adjust: func(c *Config) { c.InterfaceVersion = pdu.Version50 }},
		"our key": {
			form:   smpptest.ReceiptForm{Style: smpptest.SparseReceipt, ID: func(string) string { return "strange" }, Echo: 0x1400},
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
			if r.State != provider.Delivered || !byKey && r.Reference != result.Reference || byKey && r.Key != someKey {
				t.Errorf("receipt %+v for %q", r, result.Reference)
			}
		})
	}
}

// TestPeersOfVersion50AreToldWhichCommandsAreNotKnown, and alerts of handsets are heard in silence.
func TestPeersOfVersion50AreToldWhichCommandsAreNotKnown(t *testing.T) {
	t.Parallel()
	_, peer := startRaw(t, Config{})
	peer.send(0, 1, &pdu.AlertNotification{Source: pdu.Address{TON: 1, NPI: 1, Addr: "447700900123"}})
	for _, command := range []pdu.Command{pdu.CommandBroadcastSM, pdu.CommandQueryBroadcastSM, pdu.CommandCancelBroadcastSM} {
		peer.write(pdu.AppendEmpty(nil, command, 0, 7))
		if h := peer.expect(pdu.CommandGenericNack); h.Status != pdu.StatusInvCmdID || h.Sequence != 7 {
			t.Errorf("%v: %+v", command, h)
		}
	}
	peer.write(pdu.AppendEmpty(nil, pdu.CommandBroadcastSM.Response(), 0, 7))
	peer.write(pdu.AppendEmpty(nil, pdu.CommandEnquireLink, 0, 8))
	if h := peer.expect(pdu.CommandEnquireLinkResp); h.Sequence != 8 {
		t.Errorf("%+v", h)
	}
	go leavePolitely(peer)
}
