// Package pdu is the codec of SMPP 3.4 (Short Message Peer to Peer Protocol Specification v3.4,
// Issue 1.2): the header, the bodies of the operations that an ESME and an SMSC exchange, their
// optional parameters (TLVs) and the command_status table.
// It handles bytes only. Package smpp has connections, windows and timers, and decides what a
// status means for a message. Reading tolerates deviations of real peers (over-long fields, missing
// bodies of refusals), writing is strict. No input makes a function of this package panic.
package pdu

import (
	"encoding/binary"
	"errors"
	"fmt"
)

const (
	// HeaderSize is the length of the header in octets (section 3.2).
	HeaderSize = 16
	// MaxSize bounds a whole PDU in octets, header included. The standard sets no limit; no SMS
	// comes near this one.
	MaxSize = 64 << 10
	// MaxSequence is the highest sequence_number; the lowest is 1 (section 5.1.4).
	MaxSequence = 0x7FFFFFFF
)

// ErrLength reports a command_length outside HeaderSize to MaxSize, or one that disagrees with the
// octets present. Nothing after such a header can be framed.
var ErrLength = errors.New("command_length out of bounds")

// FieldError reports a field that cannot be written or read. It never holds the
// field's value, which may be a phone number, a text or a password.
type FieldError struct {
	Field   string // the name in the standard, such as "destination_addr"
	Problem string // what is wrong with it, such as "is truncated"
}

// Error names the field and its fault.
func (e *FieldError) Error() string { return e.Field + " " + e.Problem }

// Header is the header of a PDU (section 3.2).
type Header struct {
	Length   uint32 // of the whole PDU in octets
	Command  Command
	Status   Status
	Sequence uint32
}

// ParseHeader reads the header at the front of b. It fails with ErrLength when b is too short to
// hold one or when its command_length is out of bounds.
func ParseHeader(b []byte) (Header, error) {
	if len(b) < HeaderSize {
		return Header{}, fmt.Errorf("header of %d octets: %w", len(b), ErrLength)
	}
	h := Header{
		Length:   binary.BigEndian.Uint32(b),
		Command:  Command(binary.BigEndian.Uint32(b[4:])),
		Status:   Status(binary.BigEndian.Uint32(b[8:])),
		Sequence: binary.BigEndian.Uint32(b[12:]),
	}
	if h.Length < HeaderSize || h.Length > MaxSize {
		return h, fmt.Errorf("command_length %d: %w", h.Length, ErrLength)
	}
	return h, nil
}

// Body is what follows the header. The types of this package implement it and nothing else does.
type Body interface {
	// CommandID returns the command_id of the body.
	CommandID() Command
	appendTo(dst []byte) ([]byte, error)
	parse(body []byte) error
}

// Append appends the whole PDU to dst and returns the longer slice. On an error (a field that the
// standard does not allow, or more than MaxSize octets) it returns dst as it was.
func Append(dst []byte, status Status, sequence uint32, body Body) ([]byte, error) {
	start := len(dst)
	out := appendHeader(dst, body.CommandID(), status, sequence)
	out, err := body.appendTo(out)
	if err != nil {
		return dst, fmt.Errorf("encode %v: %w", body.CommandID(), err)
	}
	if len(out)-start > MaxSize {
		return dst, fmt.Errorf("encode %v: %w", body.CommandID(), ErrLength)
	}
	setLength(out[start:])
	return out, nil
}

// AppendEmpty appends a PDU that has a header only: enquire_link, unbind, their
// responses, generic_nack, or a response that refuses and therefore has no body.
func AppendEmpty(dst []byte, command Command, status Status, sequence uint32) []byte {
	start := len(dst)
	dst = appendHeader(dst, command, status, sequence)
	setLength(dst[start:])
	return dst
}

// SetSequence overwrites the sequence_number of an encoded PDU, which must hold at
// least a header.
func SetSequence(frame []byte, sequence uint32) {
	binary.BigEndian.PutUint32(frame[12:HeaderSize], sequence)
}

// NextSequence returns the sequence_number after n: from 1 to MaxSequence and then
// from 1 again.
func NextSequence(n uint32) uint32 {
	if n >= MaxSequence {
		return 1
	}
	return n + 1
}

func appendHeader(dst []byte, command Command, status Status, sequence uint32) []byte {
	dst = append(dst, 0, 0, 0, 0)
	dst = binary.BigEndian.AppendUint32(dst, uint32(command))
	dst = binary.BigEndian.AppendUint32(dst, uint32(status))
	return binary.BigEndian.AppendUint32(dst, sequence)
}

func setLength(frame []byte) {
	binary.BigEndian.PutUint32(frame, uint32(len(frame)))
}
