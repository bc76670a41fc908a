package pdu

import (
	"bytes"
	"errors"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// FuzzDecode checks that no frame makes Decode panic, and that a body that was read and can be
// written is read the same again.
func FuzzDecode(f *testing.F) {
	for _, body := range bodies() {
		frame := encode(f, StatusOK, 1, body)
		f.Add(frame)
		f.Add(frame[:len(frame)-1])
	}
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{0xFF}, 64))
	f.Fuzz(func(t *testing.T, frame []byte) {
		if len(frame) >= HeaderSize && len(frame) <= MaxSize {
			frame = bytes.Clone(frame)
			setLength(frame)
		}
		header, body, err := Decode(frame)
		if err != nil {
			return
		}
		again, err := Append(nil, header.Status, header.Sequence, body)
		if _, tooLong := errors.AsType[*FieldError](err); tooLong {
			return // reading accepts more than writing
		}
		if err != nil {
			t.Fatal(err)
		}
		_, second, err := Decode(again)
		if err != nil {
			t.Fatalf("the written PDU cannot be read: %v", err)
		}
		if diff := cmp.Diff(body, second, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	})
}

// FuzzReader checks that no stream makes a Reader panic, return a frame of the wrong size or hold
// more memory than one PDU.
func FuzzReader(f *testing.F) {
	var all []byte
	for _, body := range bodies() {
		all = append(all, encode(f, StatusOK, 1, body)...)
	}
	f.Add(all)
	f.Add(all[3:])
	f.Fuzz(func(t *testing.T, stream []byte) {
		reader := NewReader(iotest.HalfReader(bytes.NewReader(stream)))
		for {
			header, frame, err := reader.Next()
			if err != nil {
				return
			}
			if len(frame) != int(header.Length) || len(reader.buf) > MaxSize {
				t.Fatalf("frame of %d octets for %+v, buffer of %d", len(frame), header,
					len(reader.buf))
			}
		}
	})
}
