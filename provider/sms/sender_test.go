package sms_test

import (
	"testing"

	"pgregory.net/rapid"

	"dispatcher/config/tier"
	"dispatcher/provider/sms"
)

func TestKindOfSortsSenders(t *testing.T) {
	t.Parallel()
	for sender, want := range map[string]sms.SenderKind{
		"":                  sms.NoSender,
		"ACME":              sms.Alphanumeric,
		"ACME Info 1":       sms.Alphanumeric, // 11 characters
		"ACME Info 12":      sms.BadSender,    // 12 characters
		"Åland":             sms.Alphanumeric,
		"A€€€€€":            sms.Alphanumeric, // the euro sign takes two septets
		"A€€€€€€":           sms.BadSender,
		"ACMÉ":              sms.Alphanumeric,
		"ACMÊ":              sms.BadSender, // not in the GSM alphabet
		"АСМЕ":              sms.BadSender, // Cyrillic
		"A":                 sms.Alphanumeric,
		"+":                 sms.Alphanumeric,
		"1-800":             sms.Alphanumeric,
		" ACME":             sms.BadSender,
		"AC\nME":            sms.BadSender,
		"12":                sms.BadSender,
		"123":               sms.ShortCode,
		"60777":             sms.ShortCode,
		"12345678":          sms.ShortCode,
		"123456789":         sms.LongCode,
		"447700900123":      sms.LongCode,
		"+44770090":         sms.LongCode,
		"+447700900123":     sms.LongCode,
		"+123456789012345":  sms.LongCode,
		"+1234567890123456": sms.BadSender,
		"1234567890123456":  sms.BadSender,
		"+0447700900123":    sms.BadSender,
		"+1234567":          sms.BadSender,
		"+60777":            sms.BadSender,
		"\xff":              sms.BadSender,
	} {
		if got := sms.KindOf(sender); got != want {
			t.Errorf("KindOf(%q) = %s, want %s", sender, got, want)
		}
	}
}

func TestANameFitsTheAddressOfTheNetwork(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		sender := rapid.StringOfN(rapid.RuneFrom([]rune("aZ9 +-€é[\n\x1bя")), 0, 20, -1).Draw(t,
			"sender")
		if sms.KindOf(sender) != sms.Alphanumeric {
			return
		}
		if octets, err := sms.AppendGSM7(nil, sender); err != nil || len(octets) > 11 {
			t.Fatalf("%q takes %d septets: %v", sender, len(octets), err)
		}
	})
}

func TestSenderWordsAreThoseOfTheDocument(t *testing.T) {
	t.Parallel()
	for kind, want := range map[sms.SenderKind]string{
		sms.NoSender: "none", sms.Alphanumeric: "alphanumeric", sms.ShortCode: "short_code",
		sms.LongCode: "long_code", sms.BadSender: "bad", 99: "bad",
	} {
		if got := kind.String(); got != want {
			t.Errorf("%d is %q, want %q", kind, got, want)
		}
	}
	if got := len(sms.SenderKinds()); got != 3 {
		t.Errorf("%d kinds", got)
	}
}
