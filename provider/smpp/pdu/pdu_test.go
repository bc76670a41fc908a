package pdu

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"dispatcher/config/tier"
)

// bodies returns one filled body of every kind, for tests and fuzz seeds.
func bodies() []Body {
	from, to := Address{TON: 5, Addr: "ACME"}, Address{TON: 1, NPI: 1, Addr: "447700900123"}
	message := Message{
		ServiceType: "CMT", Source: from, Dest: to, ESMClass: ESMClassUDHI, ProtocolID: 1,
		PriorityFlag:         2,
		ScheduleDeliveryTime: "260101000000000+", ValidityPeriod: "000001000000000R",
		RegisteredDelivery: ReceiptFinal, ReplaceIfPresent: 1, DataCoding: CodingUCS2,
		DefaultMsgID: 3,
		ShortMessage: []byte{5, 0, 3, 7, 2, 1, 0x04, 0x1F},
		TLVs:         TLVs{Uint16(TagSARMsgRefNum, 0x1234), Uint8(TagSARTotalSegments, 2)},
	}
	return []Body{
		&Bind{
			Command: CommandBindTransceiver, SystemID: "acme", Password: "s3cret",
			SystemType: "OTP", InterfaceVersion: Version34, AddrTON: 1, AddrNPI: 1,
			AddressRange: "44*",
		},
		&Bind{Command: CommandBindTransmitter, SystemID: "acme", InterfaceVersion: Version33},
		&Bind{Command: CommandBindReceiver, SystemID: "acme", InterfaceVersion: Version50},
		&BindResp{
			Command: CommandBindTransceiverResp, SystemID: "smsc",
			TLVs: TLVs{Uint8(TagSCInterfaceVersion, Version34)},
		},
		&BindResp{Command: CommandBindTransmitterResp, SystemID: "smsc"},
		&BindResp{Command: CommandBindReceiverResp},
		&Outbind{SystemID: "smsc", Password: "pw"},
		&SubmitSM{message}, &DeliverSM{message},
		&DataSM{
			ServiceType: "WAP", Source: from, Dest: to, ESMClass: 1, RegisteredDelivery: 1,
			DataCoding: 8, TLVs: TLVs{{TagMessagePayload, []byte("payload")}},
		},
		&MessageResp{Command: CommandSubmitSMResp, MessageID: "a1b2c3"},
		&MessageResp{Command: CommandDeliverSMResp},
		&MessageResp{
			Command: CommandDataSMResp, MessageID: "9", TLVs: TLVs{Uint8(Tag(0x0425), 1)},
		},
		&QuerySM{MessageID: "a1", Source: from},
		&QuerySMResp{MessageID: "a1", FinalDate: "260101000000000+", MessageState: 2, ErrorCode: 9},
		&CancelSM{ServiceType: "CMT", MessageID: "a1", Source: from, Dest: to},
		&AlertNotification{Source: to, ESME: from, TLVs: TLVs{Uint8(Tag(0x0422), 0)}},
		&Empty{CommandUnbind}, &Empty{CommandUnbindResp}, &Empty{CommandEnquireLink},
		&Empty{CommandEnquireLinkResp},
		&Empty{CommandGenericNack}, &Empty{CommandCancelSMResp},
	}
}

func encode(t testing.TB, status Status, sequence uint32, body Body) []byte {
	t.Helper()
	frame, err := Append(nil, status, sequence, body)
	if err != nil {
		t.Fatal(err)
	}
	return frame
}

func TestDecodeIsTheInverseOfAppendForEveryCommand(t *testing.T) {
	t.Parallel()
	covered := map[Command]bool{}
	for _, body := range bodies() {
		frame := encode(t, StatusThrottled, 77, body)
		header, got, err := Decode(frame)
		if err != nil {
			t.Fatal(err)
		}
		want := Header{
			Length: uint32(len(frame)), Command: body.CommandID(), Status: StatusThrottled,
			Sequence: 77,
		}
		if diff := cmp.Diff(want, header); diff != "" {
			t.Errorf("header (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(body, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%v (-want +got):\n%s", body.CommandID(), diff)
		}
		covered[body.CommandID()] = true
	}
	onlyNamed := map[Command]bool{
		CommandReplaceSM: true, CommandSubmitMulti: true, CommandBroadcastSM: true,
		CommandQueryBroadcastSM: true, CommandCancelBroadcastSM: true,
	}
	for command, name := range commandNames {
		if !covered[command] && !onlyNamed[command] {
			t.Errorf("the test has no body for %s", name)
		}
	}
}

// TestSubmitMatchesTheStandardsLayout compares with a frame written by hand from section 4.4.1.
func TestSubmitMatchesTheStandardsLayout(t *testing.T) {
	t.Parallel()
	got := encode(t, StatusOK, 2, &SubmitSM{Message{
		Source: Address{5, 0, "AB"}, Dest: Address{1, 1, "4477"}, ESMClass: 0x40,
		RegisteredDelivery: 1,
		ShortMessage:       []byte("hi"), TLVs: TLVs{Uint8(TagSARTotalSegments, 3)},
	}})
	want := strings.Join([]string{
		"0000002e", "00000004", "00000000", "00000002", // header
		"00", "0500414200", "01013434373700", // service_type, source, destination
		"40", "00", "00", "00", "00", // esm_class, protocol_id, priority, schedule, validity
		// registered, replace, coding, default id, length, text
		"01", "00", "00", "00", "02", "6869",
		"020e000103", // sar_total_segments
	}, "")
	if hex.EncodeToString(got) != want {
		t.Errorf("got  %x\nwant %s", got, want)
	}
}

func TestAnyMessageSurvivesTheRoundTrip(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		text := func(label string, limit int) string {
			return rapid.StringOfN(rapid.RuneFrom([]rune("abcXYZ019+ _")), 0, limit-1, -1).Draw(t,
				label)
		}
		octet := func(label string) byte { return rapid.Byte().Draw(t, label) }
		address := func(label string) Address {
			return Address{octet(label + " ton"), octet(label + " npi"), text(label, maxAddress)}
		}
		in := &SubmitSM{Message{
			ServiceType: text("service", maxServiceType), Source: address("source"),
			Dest:     address("dest"),
			ESMClass: octet("esm"), ProtocolID: octet("pid"), PriorityFlag: octet("priority"),
			ScheduleDeliveryTime: text("schedule", maxTime),
			ValidityPeriod:       text("validity", maxTime),
			RegisteredDelivery:   octet("registered"), ReplaceIfPresent: octet("replace"),
			DataCoding: octet("coding"), DefaultMsgID: octet("default"),
			ShortMessage: rapid.SliceOfN(rapid.Byte(), 0, maxShortMessage).Draw(t, "short message"),
		}}
		for range rapid.IntRange(0, 3).Draw(t, "parameters") {
			in.TLVs = append(in.TLVs,
				TLV{
					Tag(rapid.Uint16().Draw(t, "tag")),
					rapid.SliceOfN(rapid.Byte(), 0, 5000).Draw(t, "value"),
				})
		}
		frame, err := Append(nil, 0, 9, in)
		if err != nil {
			t.Fatal(err)
		}
		_, out, err := Decode(frame)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(Body(in), out, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestAppendRefusesWhatTheStandardForbids(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return strings.Repeat("7", n) }
	cases := map[string]Body{
		"source_addr":            &SubmitSM{Message{Source: Address{Addr: long(21)}}},
		"destination_addr":       &SubmitSM{Message{Dest: Address{Addr: long(21)}}},
		"service_type":           &SubmitSM{Message{ServiceType: "1234567"}},
		"validity_period":        &SubmitSM{Message{ValidityPeriod: long(17)}},
		"schedule_delivery_time": &SubmitSM{Message{ScheduleDeliveryTime: long(17)}},
		"short_message":          &SubmitSM{Message{ShortMessage: make([]byte, 255)}},
		"optional parameter": &SubmitSM{
			Message{TLVs: TLVs{{TagMessagePayload, make([]byte, 0x10000)}}},
		},
		"system_id":     &Bind{Command: CommandBindReceiver, SystemID: long(16)},
		"password":      &Bind{Command: CommandBindReceiver, Password: long(65)},
		"system_type":   &Bind{Command: CommandBindReceiver, SystemType: long(13)},
		"address_range": &Bind{Command: CommandBindReceiver, AddressRange: long(41)},
		"message_id":    &MessageResp{Command: CommandSubmitSMResp, MessageID: long(256)},
	}
	for field, body := range cases {
		before := []byte("kept")
		after, err := Append(before, 0, 1, body)
		var fault *FieldError
		if !errors.As(err, &fault) || fault.Field != field {
			t.Errorf("%s: error %v", field, err)
		}
		if err != nil && strings.Contains(err.Error(), "77") {
			t.Errorf("%s: the error shows the value: %v", field, err)
		}
		if string(after) != "kept" {
			t.Errorf("%s: dst became %q", field, after)
		}
	}
	if _, err := Append(nil, 0, 1, &Outbind{SystemID: "a\x00b"}); err == nil {
		t.Error("a NUL inside a C-Octet String was written")
	}
}

func TestAppendHoldsTheSizeLimit(t *testing.T) {
	t.Parallel()
	// A submit_sm with empty fields has 33 octets, the head of its parameter 4.
	fits := &SubmitSM{Message{TLVs: TLVs{{TagMessagePayload, make([]byte, MaxSize-37)}}}}
	if frame := encode(t, 0, 1, fits); len(frame) != MaxSize {
		t.Fatalf("frame of %d octets, want %d", len(frame), MaxSize)
	}
	fits.TLVs[0].Value = make([]byte, MaxSize-36)
	if _, err := Append(nil, 0, 1, fits); !errors.Is(err, ErrLength) {
		t.Errorf("one octet more: %v", err)
	}
}

func TestDecodeNamesTheFieldThatIsCutOff(t *testing.T) {
	t.Parallel()
	for _, body := range bodies() {
		whole := encode(t, 0, 1, body)
		for n := HeaderSize + 1; n < len(whole); n++ {
			cut := bytes.Clone(whole[:n])
			setLength(cut)
			header, _, err := Decode(cut)
			var fault *FieldError
			if err != nil && !errors.As(err, &fault) {
				t.Errorf("%v cut to %d: %v is not a FieldError", body.CommandID(), n, err)
			}
			if header.Sequence != 1 {
				t.Errorf("%v cut to %d: the header was lost", body.CommandID(), n)
			}
		}
	}
}

// TestDecodeKeepsWhatStandsBeforeADamagedParameter and returns it with the error. A body that is
// damaged earlier yields nothing.
func TestDecodeKeepsWhatStandsBeforeADamagedParameter(t *testing.T) {
	t.Parallel()
	m := Message{ShortMessage: []byte("hello"), TLVs: TLVs{Uint8(TagMessageState, 2)}}
	whole := encode(t, 0, 1, &DeliverSM{Message: m})
	for n := len(whole) + 1; n <= len(whole)+3; n++ {
		long := append(bytes.Clone(whole), make([]byte, n-len(whole))...)
		setLength(long)
		_, body, err := Decode(long)
		got, ok := body.(*DeliverSM)
		if err == nil || !ok || string(got.ShortMessage) != "hello" || len(got.TLVs) != 1 {
			t.Errorf("%d octets more: %+v, %v", n-len(whole), body, err)
		}
	}
	for n := HeaderSize; n < len(whole)-5; n++ { // the parameter has five octets
		cut := bytes.Clone(whole[:n])
		setLength(cut)
		if _, body, err := Decode(cut); err == nil || body != nil {
			t.Errorf("cut to %d: %+v, %v", n, body, err)
		}
	}
}

func TestRefusalsWithoutBodyDecode(t *testing.T) {
	t.Parallel()
	for _, command := range []Command{
		CommandSubmitSMResp, CommandDataSMResp, CommandDeliverSMResp, CommandBindTransceiverResp,
		CommandQuerySMResp,
	} {
		header, _, err := Decode(AppendEmpty(nil, command, StatusSysErr, 5))
		if err != nil || header.Status != StatusSysErr {
			t.Errorf("%v: %v, %v", command, header, err)
		}
	}
}

func TestMessageIDSurvivesAMissingNULAndTrailingGarbage(t *testing.T) {
	t.Parallel()
	var resp MessageResp
	if err := resp.Parse([]byte("id-1")); err != nil || resp.MessageID != "id-1" {
		t.Errorf("without NUL: %q, %v", resp.MessageID, err)
	}
	if err := resp.Parse([]byte("id-2\x00\x01")); err == nil || resp.MessageID != "id-2" {
		t.Errorf("with garbage at the end: %q, %v", resp.MessageID, err)
	}
}

func TestUnknownCommandIsReportedWithItsHeader(t *testing.T) {
	t.Parallel()
	header, _, err := Decode(AppendEmpty(nil, 0x00010203, 0, 42))
	if !errors.Is(err, ErrUnknownCommand) || header.Sequence != 42 {
		t.Errorf("%+v, %v", header, err)
	}
}

func TestSequenceNumbersWrapToOne(t *testing.T) {
	t.Parallel()
	for in, want := range map[uint32]uint32{
		0: 1, 1: 2, MaxSequence - 1: MaxSequence, MaxSequence: 1, 0xFFFFFFFF: 1,
	} {
		if got := NextSequence(in); got != want {
			t.Errorf("after %d: %d, want %d", in, got, want)
		}
	}
	frame := AppendEmpty(nil, CommandEnquireLink, 0, 1)
	SetSequence(frame, 99)
	if header, err := ParseHeader(frame); err != nil || header.Sequence != 99 {
		t.Errorf("patched header %+v, %v", header, err)
	}
}

func TestPayloadIsFoundInEitherPlace(t *testing.T) {
	t.Parallel()
	m := Message{ShortMessage: []byte("short")}
	if got := string(m.Payload()); got != "short" {
		t.Errorf("got %q", got)
	}
	m.TLVs = TLVs{{TagMessagePayload, []byte("long")}}
	if got := string(m.Payload()); got != "long" {
		t.Errorf("got %q", got)
	}
}

func TestStatusesHaveNamesAndCodes(t *testing.T) {
	t.Parallel()
	for _, s := range Statuses() {
		if !strings.HasPrefix(s.String(), "ESME_R") || !s.Known() {
			t.Errorf("the name of %s is %q", s.Code(), s)
		}
	}
	if got := StatusThrottled.String() + " " +
		StatusThrottled.Code(); got != "ESME_RTHROTTLED 0x00000058" {
		t.Error(got)
	}
	if got := Status(0x410).String(); got != "0x00000410" {
		t.Error(got)
	}
}

func TestTextParametersEndAtTheirNUL(t *testing.T) {
	t.Parallel()
	tlvs := TLVs{
		CString(0x1400, "acme"),
		{0x1401, []byte("open")},
		{0x1402, []byte("a\x00b")},
		{0x1403, nil},
	}
	for tag, want := range map[Tag]string{
		0x1400: "acme", 0x1401: "open", 0x1402: "a", 0x1403: "", 0x1404: "",
	} {
		if got := tlvs.Text(tag); got != want {
			t.Errorf("0x%x: %q, want %q", tag, got, want)
		}
	}
}

func TestStatesHaveTheWordsOfAppendixB(t *testing.T) {
	t.Parallel()
	for state, word := range map[MessageState]string{
		StateScheduled: "SCHEDLD", StateEnroute: "ENROUTE", StateDelivered: "DELIVRD",
		StateExpired: "EXPIRED", StateDeleted: "DELETED",
		StateUndeliverable: "UNDELIV", StateAccepted: "ACCEPTD", StateUnknown: "UNKNOWN",
		StateRejected: "REJECTD", StateSkipped: "SKIPPED",
	} {
		if state.Word() != word || ParseState(word) != state {
			t.Errorf("%d is %q, which is %d", state, state.Word(), ParseState(word))
		}
	}
	if MessageState(10).Word() != "" || ParseState("BUFFRED") != StateUnknown {
		t.Error("a state that the standard does not name has a word")
	}
}
