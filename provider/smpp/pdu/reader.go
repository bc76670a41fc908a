package pdu

import (
	"errors"
	"fmt"
	"io"
)

// readerSize is the first size of a Reader's buffer: a few dozen ordinary PDUs for
// each read of the socket.
const readerSize = 16 << 10

// Reader splits a byte stream into PDUs. It reads as much as the stream has, so that one read of
// the socket yields many PDUs. It is not safe for concurrent use.
type Reader struct {
	src        io.Reader
	buf        []byte
	start, end int // the octets read and not yet returned
}

// NewReader returns a Reader over src.
func NewReader(src io.Reader) *Reader {
	return &Reader{src: src, buf: make([]byte, readerSize)}
}

// Next returns the next PDU with its header. The frame is valid until the next call.
// It returns io.EOF at the end between two PDUs, io.ErrUnexpectedEOF at the end within one,
// ErrLength if the stream can no longer be framed, and otherwise the stream's own error. Nothing
// can be read after an error.
func (r *Reader) Next() (Header, []byte, error) {
	if err := r.fill(HeaderSize); err != nil {
		return Header{}, nil, err
	}
	h, err := ParseHeader(r.buf[r.start:r.end])
	if err != nil {
		return h, nil, err
	}
	if err := r.fill(int(h.Length)); err != nil {
		return h, nil, err
	}
	frame := r.buf[r.start : r.start+int(h.Length)]
	r.start += int(h.Length)
	return h, frame, nil
}

// Ready reports whether Next will return without reading from the stream.
func (r *Reader) Ready() bool {
	h, err := ParseHeader(r.buf[r.start:r.end])
	if err != nil {
		return r.end-r.start >= HeaderSize
	}
	return r.end-r.start >= int(h.Length)
}

// Begun reports whether some octets of the next PDU have been read, but not all.
func (r *Reader) Begun() bool { return r.end > r.start && !r.Ready() }

// fill reads until n octets, at most MaxSize, are in the buffer.
func (r *Reader) fill(n int) error {
	if r.end-r.start >= n {
		return nil
	}
	r.makeRoom(n)
	for r.end-r.start < n {
		m, err := r.src.Read(r.buf[r.end:])
		r.end += m
		if err != nil && r.end-r.start < n {
			if err == io.EOF && r.end > r.start {
				return io.ErrUnexpectedEOF
			}
			return err
		}
	}
	return nil
}

// makeRoom moves the remainder to the front of a buffer that holds n octets.
func (r *Reader) makeRoom(n int) {
	to := r.buf
	if n > len(to) {
		to = make([]byte, MaxSize)
	}
	r.end = copy(to, r.buf[r.start:r.end])
	r.start = 0
	r.buf = to
}

// ErrUnknownCommand reports a command_id that this package does not decode. The peer that sent it
// is answered with generic_nack and ESME_RINVCMDID (section 4.3).
var ErrUnknownCommand = errors.New("unknown command_id")

// Decode reads one whole PDU. The body's octet fields alias frame.
// The header is valid unless the error is ErrLength, so that a body which cannot be read can still
// be answered under its sequence_number. If only an optional parameter is damaged, Decode returns
// the body up to it together with the error, because some SMSCs append a stray octet to
// short_message.
func Decode(frame []byte) (Header, Body, error) {
	h, err := ParseHeader(frame)
	if err != nil {
		return h, nil, err
	}
	if int(h.Length) != len(frame) {
		return h, nil, fmt.Errorf("frame of %d octets, command_length %d: %w", len(frame), h.Length,
			ErrLength)
	}
	body := newBody(h.Command)
	if body == nil {
		return h, nil, fmt.Errorf("%v: %w", h.Command, ErrUnknownCommand)
	}
	if err := body.parse(frame[HeaderSize:]); err != nil {
		if fault, ok := errors.AsType[*FieldError](err); !ok || fault.Field != optionalParameter {
			body = nil
		}
		return h, body, fmt.Errorf("decode %v: %w", h.Command, err)
	}
	return h, body, nil
}

func newBody(command Command) Body {
	switch command {
	case CommandBindReceiver, CommandBindTransmitter, CommandBindTransceiver:
		return &Bind{Command: command}
	case CommandBindReceiverResp, CommandBindTransmitterResp, CommandBindTransceiverResp:
		return &BindResp{Command: command}
	case CommandSubmitSM:
		return &SubmitSM{}
	case CommandDeliverSM:
		return &DeliverSM{}
	case CommandDataSM:
		return &DataSM{}
	case CommandSubmitSMResp, CommandDeliverSMResp, CommandDataSMResp:
		return &MessageResp{Command: command}
	case CommandUnbind, CommandUnbindResp, CommandEnquireLink, CommandEnquireLinkResp,
		CommandGenericNack, CommandCancelSMResp:
		return &Empty{Command: command}
	case CommandOutbind:
		return &Outbind{}
	case CommandAlertNotification:
		return &AlertNotification{}
	case CommandQuerySM:
		return &QuerySM{}
	case CommandQuerySMResp:
		return &QuerySMResp{}
	case CommandCancelSM:
		return &CancelSM{}
	default:
		return nil
	}
}
