package pdu

import "fmt"

// Command is a command_id (section 5.1.2.1).
type Command uint32

// The operations of SMPP 3.4 that this package encodes and decodes.
const (
	CommandBindReceiver        Command = 0x00000001
	CommandBindReceiverResp    Command = 0x80000001
	CommandBindTransmitter     Command = 0x00000002
	CommandBindTransmitterResp Command = 0x80000002
	CommandQuerySM             Command = 0x00000003
	CommandQuerySMResp         Command = 0x80000003
	CommandSubmitSM            Command = 0x00000004
	CommandSubmitSMResp        Command = 0x80000004
	CommandDeliverSM           Command = 0x00000005
	CommandDeliverSMResp       Command = 0x80000005
	CommandUnbind              Command = 0x00000006
	CommandUnbindResp          Command = 0x80000006
	CommandCancelSM            Command = 0x00000008
	CommandCancelSMResp        Command = 0x80000008
	CommandBindTransceiver     Command = 0x00000009
	CommandBindTransceiverResp Command = 0x80000009
	CommandOutbind             Command = 0x0000000B
	CommandEnquireLink         Command = 0x00000015
	CommandEnquireLinkResp     Command = 0x80000015
	CommandAlertNotification   Command = 0x00000102
	CommandDataSM              Command = 0x00000103
	CommandDataSMResp          Command = 0x80000103
	CommandGenericNack         Command = 0x80000000
)

// Operations of SMPP 5.0 (section 4.7.5) and of 3.4 that this package only names: who is asked for one answers
// generic_nack.
const (
	CommandReplaceSM         Command = 0x00000007
	CommandSubmitMulti       Command = 0x00000021
	CommandBroadcastSM       Command = 0x00000111
	CommandQueryBroadcastSM  Command = 0x00000112
	CommandCancelBroadcastSM Command = 0x00000113
)

// responseBit marks a response; the rest is the request's command_id.
const responseBit Command = 0x80000000

var commandNames = map[Command]string{
	CommandBindReceiver: "bind_receiver", CommandBindReceiverResp: "bind_receiver_resp",
	CommandBindTransmitter: "bind_transmitter", CommandBindTransmitterResp: "bind_transmitter_resp",
	CommandBindTransceiver: "bind_transceiver", CommandBindTransceiverResp: "bind_transceiver_resp",
	CommandQuerySM: "query_sm", CommandQuerySMResp: "query_sm_resp",
	CommandSubmitSM: "submit_sm", CommandSubmitSMResp: "submit_sm_resp",
	CommandDeliverSM: "deliver_sm", CommandDeliverSMResp: "deliver_sm_resp",
	CommandDataSM: "data_sm", CommandDataSMResp: "data_sm_resp",
	CommandCancelSM: "cancel_sm", CommandCancelSMResp: "cancel_sm_resp",
	CommandUnbind: "unbind", CommandUnbindResp: "unbind_resp",
	CommandEnquireLink: "enquire_link", CommandEnquireLinkResp: "enquire_link_resp",
	CommandOutbind: "outbind", CommandAlertNotification: "alert_notification",
	CommandGenericNack: "generic_nack",
	CommandReplaceSM:   "replace_sm", CommandSubmitMulti: "submit_multi", CommandBroadcastSM: "broadcast_sm",
	CommandQueryBroadcastSM: "query_broadcast_sm", CommandCancelBroadcastSM: "cancel_broadcast_sm",
}

// String returns the name in the standard, or the number of an unknown command.
func (c Command) String() string {
	if name, ok := commandNames[c]; ok {
		return name
	}
	return fmt.Sprintf("command 0x%08x", uint32(c))
}

// IsResponse reports whether c answers a request; generic_nack does.
func (c Command) IsResponse() bool { return c&responseBit != 0 }

// Response returns the command_id that answers the request c.
func (c Command) Response() Command { return c | responseBit }
