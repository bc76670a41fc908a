package smpp

import (
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
)

// outcomes repeats the whole table, independently of the code.
var outcomes = map[provider.Outcome][]pdu.Status{
	provider.Accepted:  {pdu.StatusOK},
	provider.Throttled: {pdu.StatusThrottled, pdu.StatusMsgQFul},
	provider.Rejected: {
		pdu.StatusInvMsgLen, pdu.StatusInvDstAdr,
		pdu.StatusReceiverPermanent, pdu.StatusReceiverReject,
	},
	provider.Refused: {
		// about the SMSC
		pdu.StatusSysErr, pdu.StatusSubmitFail, pdu.StatusReceiverTemporary,
		pdu.StatusDeliveryFailure, pdu.StatusUnknownErr,
		// about the bind and the account
		pdu.StatusInvBndSts, pdu.StatusAlyBnd, pdu.StatusBindFail, pdu.StatusInvPaswd,
		pdu.StatusInvSysID, pdu.StatusInvSysTyp,
		pdu.StatusInvSrcAdr, pdu.StatusSerTypUnauth, pdu.StatusProhibited, pdu.StatusSerTypUnavail,
		pdu.StatusSerTypDenied,
		// about the protocol as this channel speaks it
		pdu.StatusInvCmdLen, pdu.StatusInvCmdID, pdu.StatusInvPrtFlg, pdu.StatusInvRegDlvFlg,
		pdu.StatusInvSerTyp,
		pdu.StatusInvEsmClass, pdu.StatusInvSrcTON, pdu.StatusInvSrcNPI, pdu.StatusInvDstTON,
		pdu.StatusInvDstNPI,
		pdu.StatusInvRepFlag, pdu.StatusInvSched, pdu.StatusInvExpiry, pdu.StatusInvDftMsgID,
		pdu.StatusInvDCS,
		pdu.StatusInvOptParStream, pdu.StatusOptParNotAllwd, pdu.StatusInvParLen,
		pdu.StatusMissingOptParam, pdu.StatusInvOptParamVal,
		pdu.StatusInvSrcAddrSubunit, pdu.StatusInvDstAddrSubunit,
		// answers to requests that are not submit_sm
		pdu.StatusInvMsgID, pdu.StatusCancelFail, pdu.StatusReplaceFail, pdu.StatusQueryFail,
		pdu.StatusInvNumDests,
		pdu.StatusInvDLName, pdu.StatusInvDestFlag, pdu.StatusInvSubRep, pdu.StatusCntSubDL,
		pdu.StatusInvNumMsgs,
		// vendor-specific statuses
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
	cfg := Config{
		Outcomes: map[pdu.Status]StatusMeaning{
			0x410: {Outcome: provider.Rejected}, pdu.StatusInvExpiry: {Outcome: provider.Unknown},
		},
	}
	for s, want := range map[pdu.Status]provider.Outcome{
		0x410: provider.Rejected, pdu.StatusInvExpiry: provider.Unknown, 0x411: provider.Refused,
		pdu.StatusOK: provider.Accepted,
	} {
		if got := cfg.outcome(s); got != want {
			t.Errorf("%v is %v, want %v", s, got, want)
		}
	}
}

// TestConfiguredOutcomesApplyToEverySender: an operator who configures a status as unfit or refused
// knows the carrier.
func TestConfiguredOutcomesApplyToEverySender(t *testing.T) {
	t.Parallel()
	cfg := Config{Outcomes: map[pdu.Status]StatusMeaning{
		0x410: unfit, pdu.StatusInvSrcAdr: {Outcome: provider.Refused},
		pdu.StatusInvSrcTON: {Outcome: provider.Rejected},
	}}
	for _, source := range []messageAddress{{}, {sender: true, ton: true, npi: true}} {
		for s, want := range map[pdu.Status]StatusMeaning{
			0x410: unfit, 0x411: {Outcome: provider.Refused},
			pdu.StatusInvSrcAdr: {Outcome: provider.Refused},
			pdu.StatusInvSrcTON: {Outcome: provider.Rejected},
		} {
			if got := cfg.statusMeaning(s, source); got != want {
				t.Errorf("%v, source %+v: %+v, want %+v", s, source, got, want)
			}
		}
	}
}

// TestOnlyARefusalCanBeUnfit: settings cannot express anything else, but Go code can.
func TestOnlyARefusalCanBeUnfit(t *testing.T) {
	t.Parallel()
	cfg := Config{
		Addresses: []string{"h:1"}, SystemID: "a",
		Outcomes: map[pdu.Status]StatusMeaning{0x410: unfit},
	}
	if err := cfg.Validate(); err != nil {
		t.Error(err)
	}
	cfg.Outcomes[0x410] = StatusMeaning{Outcome: provider.Rejected, Unfit: true}
	if err := cfg.Validate(); err == nil ||
		err.Error() != "outcomes: 0x00000410 is rejected, and only what is refused can be unfit" {
		t.Errorf("%v", err)
	}
}

// TestAddressFieldsOfTheChannelAreNotTheMessagesOwn: a type of number set by a setting or a rule,
// and a sender set by a rule or the routing document.
func TestAddressFieldsOfTheChannelAreNotTheMessagesOwn(t *testing.T) {
	t.Parallel()
	octet := new(byte(1))
	france := []string{"33"}
	whole := messageAddress{sender: true, ton: true, npi: true}
	for name, c := range map[string]struct {
		cfg  Config
		want messageAddress
	}{
		"its own":                  {want: whole},
		"the channel has another":  {cfg: Config{From: "Other"}, want: whole},
		"the channel has the same": {cfg: Config{From: "ACME"}},
		"the setting source_ton": {
			cfg: Config{SourceTON: octet}, want: messageAddress{sender: true, npi: true},
		},
		"the setting source_npi": {
			cfg: Config{SourceNPI: octet}, want: messageAddress{sender: true, ton: true},
		},
		"the recipient's have no say": {cfg: Config{DestTON: octet, DestNPI: octet}, want: whole},
		"a rule with another":         {cfg: Config{SourceRules: []SourceRule{{From: "Other"}}}},
		"a rule with a type": {
			cfg:  Config{SourceRules: []SourceRule{{TON: octet}}},
			want: messageAddress{sender: true, npi: true},
		},
		"a rule with a plan": {
			cfg:  Config{SourceRules: []SourceRule{{NPI: octet}}},
			want: messageAddress{sender: true, ton: true},
		},
		"a rule for others": {
			cfg: Config{SourceRules: []SourceRule{{Kind: Number, From: "Other"}}}, want: whole,
		},
		"a rule for other recipients": {
			cfg: Config{SourceRules: []SourceRule{{To: france, From: "Other"}}}, want: whole,
		},
		"the first rule that fits has": {
			cfg:  Config{SourceRules: []SourceRule{{Kind: Alphanumeric}, {From: "Other"}}},
			want: whole,
		},
	} {
		s := provider.Submission{From: "ACME", OwnSender: true, To: "+447700900123", Text: "x"}
		p, err := c.cfg.plan(s, time.Now())
		if err != nil || p.source != c.want {
			t.Errorf("%s: %+v, %v; want %+v", name, p.source, err, c.want)
		}
	}
	for name, s := range map[string]provider.Submission{
		"the routing document's": {From: "ACME"}, "none": {OwnSender: true},
	} {
		if got := (&Config{From: "Other"}).messageAddressOf(nil, &s); got != (messageAddress{}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestASenderIsTheChannelsWithAndWithoutAPlus: there is no plus in the PDU.
func TestASenderIsTheChannelsWithAndWithoutAPlus(t *testing.T) {
	t.Parallel()
	for _, channels := range []string{"447700900111", "+447700900111"} {
		for from, want := range map[string]bool{
			"447700900111": false, "+447700900111": false, "447700900112": true,
		} {
			s := provider.Submission{From: from, OwnSender: true, To: "+447700900123", Text: "x"}
			if got := (&Config{From: channels}).messageAddressOf(nil, &s); got.sender != want {
				t.Errorf("sender %s on a channel with sender %s: own %v", from, channels, got.sender)
			}
		}
	}
}

// TestAStatusIsAboutItsOwnPartOfTheSource and no other part.
func TestAStatusIsAboutItsOwnPartOfTheSource(t *testing.T) {
	t.Parallel()
	parts := map[pdu.Status]messageAddress{
		pdu.StatusInvSrcAdr: {sender: true}, pdu.StatusInvSrcTON: {ton: true},
		pdu.StatusInvSrcNPI: {npi: true},
	}
	for _, s := range append(pdu.Statuses(), 0x410) {
		for about, o := range parts {
			if got := o.blamedBy(s); got != (s == about) {
				t.Errorf("%v of %+v: %v", s, o, got)
			}
		}
		if (messageAddress{}).blamedBy(s) {
			t.Errorf("%v of a channel's field", s)
		}
	}
}
