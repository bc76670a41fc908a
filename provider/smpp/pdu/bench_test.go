package pdu

import (
	"testing"
)

func benchSubmit() *SubmitSM {
	return &SubmitSM{Message{
		Source: Address{5, 0, "ACME"}, Dest: Address{1, 1, "447700900123"}, RegisteredDelivery: 1,
		ShortMessage: []byte("Your code is 123456. Do not give it to anybody, not even to us."),
	}}
}

func BenchmarkAppendSubmit(b *testing.B) {
	body, buf := benchSubmit(), make([]byte, 0, 256)
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if buf, err = Append(buf[:0], 0, 1, body); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseSubmit(b *testing.B) {
	frame := encode(b, 0, 1, benchSubmit())
	var body SubmitSM
	b.ReportAllocs()
	for b.Loop() {
		if err := body.Parse(frame[HeaderSize:]); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseSubmitResp(b *testing.B) {
	frame := encode(
		b, 0, 1, &MessageResp{Command: CommandSubmitSMResp, MessageID: "0123456789abcdef"})
	var body MessageResp
	b.ReportAllocs()
	for b.Loop() {
		if err := body.Parse(frame[HeaderSize:]); err != nil {
			b.Fatal(err)
		}
	}
}
