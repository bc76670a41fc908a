package pdu

import (
	"errors"
	"fmt"
)

// ErrUnknownCommand reports a command_id that this package does not decode. The
// peer that sent it is answered with generic_nack and ESME_RINVCMDID (section 4.3).
var ErrUnknownCommand = errors.New("unknown command_id")

// Decode reads one whole PDU. The body's octet fields alias frame.
//
// The header is valid whenever the error is not ErrLength, so that a body which
// cannot be read can still be answered under its sequence_number. When no more is damaged than an optional
// parameter, the body has what stands before it, beside the error: SMSCs in the field put a stray octet behind
// short_message.
func Decode(frame []byte) (Header, Body, error) {
	h, err := ParseHeader(frame)
	if err != nil {
		return h, nil, err
	}
	if int(h.Length) != len(frame) {
		return h, nil, fmt.Errorf("frame of %d octets, command_length %d: %w", len(frame), h.Length, ErrLength)
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
	case CommandUnbind, CommandUnbindResp, CommandEnquireLink, CommandEnquireLinkResp, CommandGenericNack, CommandCancelSMResp:
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
