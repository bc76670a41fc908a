package smpp

import (
	"context"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/smpp/smpptest"
	"dispatcher/provider/sms"
)

// answerPart gives one part of every message a different answer.
func answerPart(number int, a smpptest.Answer) smpptest.Behaviour {
	return smpptest.Behaviour{Cancels: true, Decide: func(s smpptest.Submit) smpptest.Answer {
		if s.Part == number {
			return a
		}
		return smpptest.Answer{}
	}}
}

// TestAcceptedPartsOfARejectedMessageAreCancelled on a channel whose settings allow cancel_sm, and
// no parts of other messages.
func TestAcceptedPartsOfARejectedMessageAreCancelled(t *testing.T) {
	t.Parallel()
	rejected := smpptest.Answer{Status: pdu.StatusInvDstAdr}
	for name, c := range map[string]struct {
		cancel    bool
		second    smpptest.Answer
		outcome   provider.Outcome
		cancelled []bool
	}{
		"rejected": {
			true, rejected, provider.Rejected, []bool{true, false, true},
		},
		"rejected, no cancel_sm": {
			false, rejected, provider.Rejected, []bool{false, false, false},
		},
		"refused: it is tried again": {
			true,
			smpptest.Answer{Status: pdu.StatusSysErr},
			provider.Refused,
			[]bool{false, false, false},
		},
		"unknown": {
			true,
			smpptest.Answer{State: smpptest.Dropped},
			provider.Unknown,
			[]bool{false, false, false},
		},
		"accepted": {true, smpptest.Answer{}, provider.Accepted, []bool{false, false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv, client := startPiped(t, answerPart(2, c.second), Config{Cancel: c.cancel})
				s := submission(1)
				s.Text = longText(3)
				if r := send(client, s); r.Outcome != c.outcome {
					t.Errorf("%v (%s)", r.Outcome, r.Code)
				}
				var got []bool
				for _, one := range srv.Submits() {
					got = append(got, one.Cancelled)
				}
				if diff := cmp.Diff(c.cancelled, got); diff != "" {
					t.Error(diff)
				}
				closeIn(t, client)
				srv.Close()
			})
		})
	}
}

// answerless returns a client with cancel_sm and its peer, driven by the test, inside a bubble.
func answerless(t *testing.T) (*Client, *rawPeer) {
	t.Helper()
	ours, theirs := net.Pipe()
	c, err := New(Config{
		Addresses: []string{"pipe:1"}, SystemID: "acme", EnquireLink: time.Hour, Cancel: true,
		Dial: func(context.Context, string, string) (net.Conn, error) { return ours, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	peer := newRawPeer(t, theirs)
	peer.bound()
	synctest.Wait()
	return c, peer
}

// TestAnUnansweredCancelDelaysNothingForLong: after the first unanswered cancel_sm no more are
// sent.
func TestAnUnansweredCancelDelaysNothingForLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := answerless(t)
		began := time.Now()
		done := make(chan provider.Result, 1)
		go func() {
			s := submission(1)
			s.Text = longText(3)
			done <- send(ours, s)
		}()
		for i := range 3 {
			h := theirs.expect(pdu.CommandSubmitSM)
			status := pdu.StatusOK
			if i == 2 {
				status = pdu.StatusInvDstAdr
			}
			theirs.send(status, h.Sequence,
				&pdu.MessageResp{Command: pdu.CommandSubmitSMResp, MessageID: "id"})
		}
		theirs.expect(pdu.CommandCancelSM)
		if r := <-done; r.Outcome != provider.Rejected ||
			time.Since(began) != DefaultResponseTimeout {
			t.Errorf("%v after %v", r.Outcome, time.Since(began))
		}
		go answerUnbind(theirs)
		closeIn(t, ours)
	})
}

const someKey = "0123456789abcdef0123456789abcdef"

func TestSettingsOfSubmitsStandInThePDU(t *testing.T) {
	t.Parallel()
	s := provider.Submission{To: "+447700900123", From: "ACME", Text: "hello", Key: someKey}
	vendor := pdu.TLV{Tag: 0x1400, Value: []byte("acme")}
	m := frames(t, Config{
		ServiceType: "CMT", ProtocolID: 0x40, Priority: 3, Schedule: time.Hour,
		ValidityFormat:     Relative,
		RegisteredDelivery: 0x11, TLVs: pdu.TLVs{vendor}, KeyTLV: 0x1401,
	}, s)[0]
	m.TLVs = append(pdu.TLVs{}, m.TLVs...)
	want := pdu.Message{
		ServiceType: "CMT", ProtocolID: 0x40, PriorityFlag: 3, RegisteredDelivery: 0x11,
		ShortMessage:         []byte("hello"),
		ScheduleDeliveryTime: "000000010000000R",
		Source:               pdu.Address{TON: 5, Addr: "ACME"},
		Dest:                 pdu.Address{TON: 1, NPI: 1, Addr: "447700900123"},
		TLVs:                 pdu.TLVs{vendor, pdu.CString(0x1401, someKey)},
	}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Error(diff)
	}
}

func TestEveryPartCarriesTheParametersOfTheChannel(t *testing.T) {
	t.Parallel()
	s := provider.Submission{To: "+44", Text: strings.Repeat("x", 400), Key: someKey}
	for _, way := range []LongMessages{UDH8, UDH16, SAR, MessagePayload} {
		got := frames(t, Config{
			LongMessages: way, TLVs: pdu.TLVs{pdu.Uint8(0x1400, 7)},
			KeyTLV: pdu.TagUserMessageRef,
		}, s)
		for i, m := range got {
			vendor, _ := m.TLVs.Uint(0x1400)
			key, _ := m.TLVs.Uint(pdu.TagUserMessageRef)
			if vendor != 7 || key != 0x0123 {
				t.Errorf("way %d, part %d: %v", way, i, m.TLVs)
			}
		}
	}
	s.Key = "k"
	if m := frames(t, Config{KeyTLV: pdu.TagUserMessageRef}, s)[0]; len(m.TLVs) != 0 {
		t.Errorf("an invalid key: %v", m.TLVs)
	}
}

func TestScheduleAndLongestValidityBoundTheValidity(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	cfg := &Config{Schedule: time.Hour, LongestValidity: 2 * time.Hour}
	if got := cfg.scheduleTime(now); got != "261121110000000+" {
		t.Errorf("schedule %q", got)
	}
	if got, err := cfg.validityPeriod(&provider.Submission{Validity: now.Add(72 * time.Hour)},
		now); err != nil || got != "261121120000000+" {
		t.Errorf("longer than the longest: %q, %v", got, err)
	}
	if _, err := cfg.validityPeriod(&provider.Submission{Validity: now.Add(time.Hour)},
		now); codeOf(err) != "expired" {
		t.Errorf("expired before its scheduled time: %v", err)
	}
	if got, err := (&Config{}).validityPeriod(&provider.Submission{Validity: now.AddDate(5, 0, 0)},
		now); err != nil || got != "280205100000000+" {
		t.Errorf("longer than 63 weeks: %q, %v", got, err)
	}
}

func TestDataCodingFollowsSettingsAndClass(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cfg       Config
		gsm, ucs2 byte
	}{
		"plain":         {Config{}, 0, 8},
		"shown at once": {Config{MessageClass: new(byte(0))}, 0xF0, 0x18},
		"on the SIM":    {Config{MessageClass: new(byte(2))}, 0xF2, 0x1A},
		"fixed": {
			Config{DefaultCoding: new(byte(1)), UCS2Coding: new(byte(0x19))}, 1, 0x19,
		},
	} {
		for text, want := range map[string]byte{"hello": c.gsm, "привет": c.ucs2} {
			if m := frames(t, c.cfg,
				provider.Submission{To: "+44", Text: text})[0]; m.DataCoding != want {
				t.Errorf("%s: %q has data_coding 0x%02x, want 0x%02x", name, text, m.DataCoding,
					want)
			}
		}
	}
}

// TestNationalTablesTravelWithAHeader writes a Turkish text of one segment, and one of two.
func TestNationalTablesTravelWithAHeader(t *testing.T) {
	t.Parallel()
	turkish := sms.LanguagesOf(sms.Turkish)
	for _, way := range []LongMessages{UDH8, SAR, MessagePayload} {
		cfg := Config{LongMessages: way, Tables: sms.Tables{Single: turkish}}
		short := strings.Repeat("a", 80) + "ş"
		m := frames(t, cfg, provider.Submission{To: "+44", Text: short})[0]
		if m.DataCoding != 0 || m.ESMClass != pdu.ESMClassUDHI ||
			string(m.ShortMessage[:4]) != "\x03\x24\x01\x01" || len(m.TLVs) != 0 {
			t.Errorf("way %d: one segment: 0x%02x %q", way, m.ESMClass, m.ShortMessage)
		}
		long := provider.Submission{To: "+44", Text: strings.Repeat("a", 200) + "ş", Reference: 7}
		parts := frames(t, cfg, long)
		if len(parts) != 2 || len(parts) != cfg.Segments(long.Text) {
			t.Fatalf("way %d: %d parts, %d counted", way, len(parts), cfg.Segments(long.Text))
		}
		if got := string(parts[1].ShortMessage[:9]); got != "\x08\x00\x03\x07\x02\x02\x24\x01\x01" {
			t.Errorf("way %d: header %q", way, got)
		}
	}
	both := Config{LongMessages: UDH16, Tables: sms.Tables{Single: turkish, Locking: turkish}}
	text := strings.Repeat("ığ", 100)
	parts := frames(t, both, provider.Submission{To: "+44", Text: text, Reference: 0x1234})
	if len(parts) != both.Segments(text) || parts[0].ESMClass != pdu.ESMClassUDHI ||
		len(parts) != 2 {
		t.Errorf("%d parts, %d counted", len(parts), both.Segments(text))
	}
}

func TestCapabilitiesSayWhatTheSettingsPromise(t *testing.T) {
	t.Parallel()
	taken := atOnce(func(provider.Receipt) bool { return true })
	for name, c := range map[string]struct {
		cfg  Config
		want provider.Capabilities
	}{
		"nothing": {
			Config{}, provider.Capabilities{PartReceipts: true},
		},
		"receipts": {
			Config{OnReceipt: taken},
			provider.Capabilities{PartReceipts: true, Receipts: true},
		},
		"failures only": {
			Config{RegisteredDelivery: pdu.ReceiptFailure},
			provider.Capabilities{PartReceipts: true},
		},
		"queries": {
			Config{QueryAfter: time.Hour},
			provider.Capabilities{PartReceipts: true, Receipts: true},
		},
		"our key": {
			Config{KeyTLV: 0x1400, ReceiptKeyTLV: 0x1400},
			provider.Capabilities{PartReceipts: true, KeyInReceipt: true},
		},
		"one PDU for any text": {
			Config{LongMessages: MessagePayload},
			provider.Capabilities{},
		},
		"one PDU for any text but those in tables of their own": {
			Config{
				LongMessages: MessagePayload,
				Tables:       sms.Tables{Single: sms.LanguagesOf(sms.Turkish)},
			},
			provider.Capabilities{PartReceipts: true},
		},
	} {
		if diff := cmp.Diff(c.want, c.cfg.Capabilities()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
