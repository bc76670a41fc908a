package app

import (
	"strings"
	"testing"

	"dispatcher/cmd/dispatcher/internal/dispatch"
	"dispatcher/config"
	"dispatcher/provider"
)

// TestOnlyChannelsThatSendPartsSayHowTheyCut: a rest is compared with what they say. A change of kind is one of the cut.
func TestOnlyChannelsThatSendPartsSayHowTheyCut(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("0123456789", 40) + "£"
	cuts := map[string]string{}
	for name, channel := range map[string]config.Channel{
		"smpp":              {Provider: "smpp", Settings: map[string]any{"address": "a:1", "system_id": "x"}},
		"elsewhere":         {Provider: "smpp", Settings: map[string]any{"address": "b:1", "system_id": "y", "window": 5, "key_tlv": "0x1400"}},
		"ascii":             {Provider: "smpp", Settings: map[string]any{"address": "a:1", "system_id": "x", "alphabet": "ascii"}},
		"sandbox":           {Provider: "sandbox"},
		"twilio":            {Provider: "twilio"},
		"a trial":           {Provider: "smpp", Test: true, Settings: map[string]any{"address": "a:1", "system_id": "x"}},
		"a trial's sandbox": {Provider: "sandbox", Test: true},
	} {
		var got dispatch.Channel
		if adapt(&channel, &got); got.Cut != nil {
			cuts[name] = got.Cut(text)
		}
	}
	if len(cuts) != 4 || cuts["smpp"] == "" || cuts["smpp"] != cuts["elsewhere"] || cuts["smpp"] == cuts["ascii"] || cuts["smpp"] == cuts["sandbox"] {
		t.Errorf("%q", cuts)
	}
}

func TestATestChannelFinishesNoMessageThatWasBegunElsewhere(t *testing.T) {
	t.Parallel()
	r := testChannel{receipt: func(provider.Receipt, func(bool)) { t.Error("it was called delivered") }}.Send(t.Context(), provider.Submission{ID: "m", Attempt: 2, Parts: []int{1}})
	if r.Outcome != provider.Refused || r.Code != provider.Uncomposed {
		t.Errorf("%+v", r)
	}
}
