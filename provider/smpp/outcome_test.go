package smpp

import (
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
)

// outcomes is the whole table, written down a second time on purpose.
var outcomes = map[provider.Outcome][]pdu.Status{
	provider.Accepted:  {pdu.StatusOK},
	provider.Throttled: {pdu.StatusThrottled, pdu.StatusMsgQFul},
	provider.Rejected: {
		pdu.StatusInvMsgLen, pdu.StatusInvDstAdr,
		pdu.StatusReceiverPermanent, pdu.StatusReceiverReject,
	},
	provider.Refused: {
		// the SMSC
		pdu.StatusSysErr, pdu.StatusSubmitFail, pdu.StatusReceiverTemporary, pdu.StatusDeliveryFailure, pdu.StatusUnknownErr,
		// the bind and the account
		pdu.StatusInvBndSts, pdu.StatusAlyBnd, pdu.StatusBindFail, pdu.StatusInvPaswd, pdu.StatusInvSysID, pdu.StatusInvSysTyp,
		pdu.StatusInvSrcAdr, pdu.StatusSerTypUnauth, pdu.StatusProhibited, pdu.StatusSerTypUnavail, pdu.StatusSerTypDenied,
		// the dialect this channel speaks
		pdu.StatusInvCmdLen, pdu.StatusInvCmdID, pdu.StatusInvPrtFlg, pdu.StatusInvRegDlvFlg, pdu.StatusInvSerTyp,
		pdu.StatusInvEsmClass, pdu.StatusInvSrcTON, pdu.StatusInvSrcNPI, pdu.StatusInvDstTON, pdu.StatusInvDstNPI,
		pdu.StatusInvRepFlag, pdu.StatusInvSched, pdu.StatusInvExpiry, pdu.StatusInvDftMsgID, pdu.StatusInvDCS,
		pdu.StatusInvOptParStream, pdu.StatusOptParNotAllwd, pdu.StatusInvParLen, pdu.StatusMissingOptParam, pdu.StatusInvOptParamVal,
		pdu.StatusInvSrcAddrSubunit, pdu.StatusInvDstAddrSubunit,
		// answers to requests that are not submit_sm
		pdu.StatusInvMsgID, pdu.StatusCancelFail, pdu.StatusReplaceFail, pdu.StatusQueryFail, pdu.StatusInvNumDests,
		pdu.StatusInvDLName, pdu.StatusInvDestFlag, pdu.StatusInvSubRep, pdu.StatusCntSubDL, pdu.StatusInvNumMsgs,
		// a vendor's own
		0x400, 0x4FF, 0x12345678,
	},
}

func TestEveryStatusHasItsOutcome(t *testing.T) {
	t.Parallel()
	listed := map[pdu.Status]bool{}
	for want, statuses := range outcomes {
		for _, s := range statuses {
			if got := outcomeOf(s); got != want {
				t.Errorf("%v is %v, want %v", s, got, want)
			}
			listed[s] = true
		}
	}
	for _, s := range pdu.Statuses() {
		if !listed[s] {
			t.Errorf("%v is not in the table of this test", s)
		}
	}
}

func TestNoAnswerIsUnknownUnlessTheChannelSaysSo(t *testing.T) {
	t.Parallel()
	cfg := Config{Outcomes: map[pdu.Status]StatusMeaning{0x410: {Outcome: provider.Rejected}, pdu.StatusInvExpiry: {Outcome: provider.Unknown}}}
	for s, want := range map[pdu.Status]provider.Outcome{
		0x410: provider.Rejected, pdu.StatusInvExpiry: provider.Unknown, 0x411: provider.Refused, pdu.StatusOK: provider.Accepted,
	} {
		if got := cfg.outcome(s); got != want {
			t.Errorf("%v is %v, want %v", s, got, want)
		}
	}
}

// TestWhatTheChannelSaysOfAStatusHoldsWhoeverTheSenderIs: an operator who calls a status unfit, or refused, knows the carrier.
func TestWhatTheChannelSaysOfAStatusHoldsWhoeverTheSenderIs(t *testing.T) {
	t.Parallel()
	cfg := Config{Outcomes: map[pdu.Status]StatusMeaning{
		0x410: unfit, pdu.StatusInvSrcAdr: {Outcome: provider.Refused}, pdu.StatusInvSrcTON: {Outcome: provider.Rejected},
	}}
	for _, source := range []ownAddress{{}, {sender: true, ton: true, npi: true}} {
		for s, want := range map[pdu.Status]StatusMeaning{
			0x410: unfit, 0x411: {Outcome: provider.Refused}, pdu.StatusInvSrcAdr: {Outcome: provider.Refused}, pdu.StatusInvSrcTON: {Outcome: provider.Rejected},
		} {
			if got := cfg.statusMeaning(s, source); got != want {
				t.Errorf("%v, source %+v: %+v, want %+v", s, source, got, want)
			}
		}
	}
}

// TestOnlyARefusalCanBeUnfit holds what no setting can say and Go code can.
func TestOnlyARefusalCanBeUnfit(t *testing.T) {
	t.Parallel()
	cfg := Config{Addresses: []string{"h:1"}, SystemID: "a", Outcomes: map[pdu.Status]StatusMeaning{0x410: unfit}}
	if err := cfg.Validate(); err != nil {
		t.Error(err)
	}
	cfg.Outcomes[0x410] = StatusMeaning{Outcome: provider.Rejected, Unfit: true}
	if err := cfg.Validate(); err == nil || err.Error() != "outcomes: 0x00000410 is rejected, and only what is refused can be unfit" {
		t.Errorf("%v", err)
	}
}
