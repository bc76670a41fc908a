package pdu

import (
	"fmt"
)

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

// Operations of SMPP 5.0 (section 4.7.5) and of 3.4 that this package only names: a request for one
// is answered generic_nack.
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
	CommandBindReceiver:        "bind_receiver",
	CommandBindReceiverResp:    "bind_receiver_resp",
	CommandBindTransmitter:     "bind_transmitter",
	CommandBindTransmitterResp: "bind_transmitter_resp",
	CommandBindTransceiver:     "bind_transceiver",
	CommandBindTransceiverResp: "bind_transceiver_resp",
	CommandQuerySM:             "query_sm",
	CommandQuerySMResp:         "query_sm_resp",
	CommandSubmitSM:            "submit_sm",
	CommandSubmitSMResp:        "submit_sm_resp",
	CommandDeliverSM:           "deliver_sm",
	CommandDeliverSMResp:       "deliver_sm_resp",
	CommandDataSM:              "data_sm",
	CommandDataSMResp:          "data_sm_resp",
	CommandCancelSM:            "cancel_sm",
	CommandCancelSMResp:        "cancel_sm_resp",
	CommandUnbind:              "unbind",
	CommandUnbindResp:          "unbind_resp",
	CommandEnquireLink:         "enquire_link",
	CommandEnquireLinkResp:     "enquire_link_resp",
	CommandOutbind:             "outbind",
	CommandAlertNotification:   "alert_notification",
	CommandGenericNack:         "generic_nack",
	CommandReplaceSM:           "replace_sm",
	CommandSubmitMulti:         "submit_multi",
	CommandBroadcastSM:         "broadcast_sm",
	CommandQueryBroadcastSM:    "query_broadcast_sm",
	CommandCancelBroadcastSM:   "cancel_broadcast_sm",
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

// Status is a command_status (section 5.1.3, table 5-2). Zero is success.
type Status uint32

// The values of SMPP 3.4.
const (
	StatusOK                Status = 0x00000000
	StatusInvMsgLen         Status = 0x00000001
	StatusInvCmdLen         Status = 0x00000002
	StatusInvCmdID          Status = 0x00000003
	StatusInvBndSts         Status = 0x00000004
	StatusAlyBnd            Status = 0x00000005
	StatusInvPrtFlg         Status = 0x00000006
	StatusInvRegDlvFlg      Status = 0x00000007
	StatusSysErr            Status = 0x00000008
	StatusInvSrcAdr         Status = 0x0000000A
	StatusInvDstAdr         Status = 0x0000000B
	StatusInvMsgID          Status = 0x0000000C
	StatusBindFail          Status = 0x0000000D
	StatusInvPaswd          Status = 0x0000000E
	StatusInvSysID          Status = 0x0000000F
	StatusCancelFail        Status = 0x00000011
	StatusReplaceFail       Status = 0x00000013
	StatusMsgQFul           Status = 0x00000014
	StatusInvSerTyp         Status = 0x00000015
	StatusInvNumDests       Status = 0x00000033
	StatusInvDLName         Status = 0x00000034
	StatusInvDestFlag       Status = 0x00000040
	StatusInvSubRep         Status = 0x00000042
	StatusInvEsmClass       Status = 0x00000043
	StatusCntSubDL          Status = 0x00000044
	StatusSubmitFail        Status = 0x00000045
	StatusInvSrcTON         Status = 0x00000048
	StatusInvSrcNPI         Status = 0x00000049
	StatusInvDstTON         Status = 0x00000050
	StatusInvDstNPI         Status = 0x00000051
	StatusInvSysTyp         Status = 0x00000053
	StatusInvRepFlag        Status = 0x00000054
	StatusInvNumMsgs        Status = 0x00000055
	StatusThrottled         Status = 0x00000058
	StatusInvSched          Status = 0x00000061
	StatusInvExpiry         Status = 0x00000062
	StatusInvDftMsgID       Status = 0x00000063
	StatusReceiverTemporary Status = 0x00000064
	StatusReceiverPermanent Status = 0x00000065
	StatusReceiverReject    Status = 0x00000066
	StatusQueryFail         Status = 0x00000067
	StatusInvOptParStream   Status = 0x000000C0
	StatusOptParNotAllwd    Status = 0x000000C1
	StatusInvParLen         Status = 0x000000C2
	StatusMissingOptParam   Status = 0x000000C3
	StatusInvOptParamVal    Status = 0x000000C4
	StatusDeliveryFailure   Status = 0x000000FE
	StatusUnknownErr        Status = 0x000000FF
)

// The values that SMPP 5.0 (section 4.7.6) added and that peers of that version also send on 3.4
// binds. Those of broadcast operations are left out.
const (
	StatusSerTypUnauth      Status = 0x00000100
	StatusProhibited        Status = 0x00000101
	StatusSerTypUnavail     Status = 0x00000102
	StatusSerTypDenied      Status = 0x00000103
	StatusInvDCS            Status = 0x00000104
	StatusInvSrcAddrSubunit Status = 0x00000105
	StatusInvDstAddrSubunit Status = 0x00000106
)

// statusWords are the texts of a status, prepared so that String and Code do not allocate for
// statuses of the standard.
type statusWords struct{ name, code string }

var statuses = tableOfStatuses(map[Status]string{
	StatusOK:                "ESME_ROK",
	StatusInvMsgLen:         "ESME_RINVMSGLEN",
	StatusInvCmdLen:         "ESME_RINVCMDLEN",
	StatusInvCmdID:          "ESME_RINVCMDID",
	StatusInvBndSts:         "ESME_RINVBNDSTS",
	StatusAlyBnd:            "ESME_RALYBND",
	StatusInvPrtFlg:         "ESME_RINVPRTFLG",
	StatusInvRegDlvFlg:      "ESME_RINVREGDLVFLG",
	StatusSysErr:            "ESME_RSYSERR",
	StatusInvSrcAdr:         "ESME_RINVSRCADR",
	StatusInvDstAdr:         "ESME_RINVDSTADR",
	StatusInvMsgID:          "ESME_RINVMSGID",
	StatusBindFail:          "ESME_RBINDFAIL",
	StatusInvPaswd:          "ESME_RINVPASWD",
	StatusInvSysID:          "ESME_RINVSYSID",
	StatusCancelFail:        "ESME_RCANCELFAIL",
	StatusReplaceFail:       "ESME_RREPLACEFAIL",
	StatusMsgQFul:           "ESME_RMSGQFUL",
	StatusInvSerTyp:         "ESME_RINVSERTYP",
	StatusInvNumDests:       "ESME_RINVNUMDESTS",
	StatusInvDLName:         "ESME_RINVDLNAME",
	StatusInvDestFlag:       "ESME_RINVDESTFLAG",
	StatusInvSubRep:         "ESME_RINVSUBREP",
	StatusInvEsmClass:       "ESME_RINVESMCLASS",
	StatusCntSubDL:          "ESME_RCNTSUBDL",
	StatusSubmitFail:        "ESME_RSUBMITFAIL",
	StatusInvSrcTON:         "ESME_RINVSRCTON",
	StatusInvSrcNPI:         "ESME_RINVSRCNPI",
	StatusInvDstTON:         "ESME_RINVDSTTON",
	StatusInvDstNPI:         "ESME_RINVDSTNPI",
	StatusInvSysTyp:         "ESME_RINVSYSTYP",
	StatusInvRepFlag:        "ESME_RINVREPFLAG",
	StatusInvNumMsgs:        "ESME_RINVNUMMSGS",
	StatusThrottled:         "ESME_RTHROTTLED",
	StatusInvSched:          "ESME_RINVSCHED",
	StatusInvExpiry:         "ESME_RINVEXPIRY",
	StatusInvDftMsgID:       "ESME_RINVDFTMSGID",
	StatusReceiverTemporary: "ESME_RX_T_APPN",
	StatusReceiverPermanent: "ESME_RX_P_APPN",
	StatusReceiverReject:    "ESME_RX_R_APPN",
	StatusQueryFail:         "ESME_RQUERYFAIL",
	StatusInvOptParStream:   "ESME_RINVOPTPARSTREAM",
	StatusOptParNotAllwd:    "ESME_ROPTPARNOTALLWD",
	StatusInvParLen:         "ESME_RINVPARLEN",
	StatusMissingOptParam:   "ESME_RMISSINGOPTPARAM",
	StatusInvOptParamVal:    "ESME_RINVOPTPARAMVAL",
	StatusDeliveryFailure:   "ESME_RDELIVERYFAILURE",
	StatusUnknownErr:        "ESME_RUNKNOWNERR",
	StatusSerTypUnauth:      "ESME_RSERTYPUNAUTH",
	StatusProhibited:        "ESME_RPROHIBITED",
	StatusSerTypUnavail:     "ESME_RSERTYPUNAVAIL",
	StatusSerTypDenied:      "ESME_RSERTYPDENIED",
	StatusInvDCS:            "ESME_RINVDCS",
	StatusInvSrcAddrSubunit: "ESME_RINVSRCADDRSUBUNIT",
	StatusInvDstAddrSubunit: "ESME_RINVDSTADDRSUBUNIT",
})

func tableOfStatuses(names map[Status]string) map[Status]statusWords {
	table := make(map[Status]statusWords, len(names))
	for s, name := range names {
		table[s] = statusWords{name: name, code: fmt.Sprintf("0x%08x", uint32(s))}
	}
	return table
}

// Known reports whether the standard names s; vendors use others, mostly from 0x400 to 0x4FF.
func (s Status) Known() bool {
	_, ok := statuses[s]
	return ok
}

// String returns the standard's name, such as "ESME_RTHROTTLED", or the code of a
// status that has none.
func (s Status) String() string {
	if words, ok := statuses[s]; ok {
		return words.name
	}
	return s.Code()
}

// Code returns s as it is stored and shown: "0x" and eight hexadecimal digits.
func (s Status) Code() string {
	if words, ok := statuses[s]; ok {
		return words.code
	}
	return fmt.Sprintf("0x%08x", uint32(s))
}

// Statuses returns every status that the standard names, in no particular order.
func Statuses() []Status {
	all := make([]Status, 0, len(statuses))
	for s := range statuses {
		all = append(all, s)
	}
	return all
}
