package admission_test

import (
	"testing"

	"dispatcher/admission"
)

func TestWordsOfLimits(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"1s", "1m", "1h", "1d"} {
		if w, err := admission.ParseWindow(s); err != nil || w.String() != s {
			t.Errorf("window %s: %v, %v", s, w, err)
		}
	}
	for _, s := range []string{"messages", "segments", "money"} {
		if u, err := admission.ParseUnit(s); err != nil || u.String() != s {
			t.Errorf("unit %s: %v, %v", s, u, err)
		}
	}
	if _, err := admission.ParseWindow("2s"); err == nil {
		t.Error("window 2s was accepted")
	}
	if _, err := admission.ParseUnit("sms"); err == nil {
		t.Error("unit sms was accepted")
	}
}

func TestOnlySecondsOfMessagesAndSegmentsArePaced(t *testing.T) {
	t.Parallel()
	for limit, want := range map[[2]any]bool{
		{admission.Second, admission.Messages}: true,
		{admission.Second, admission.Segments}: true,
		{admission.Second, admission.Money}:    false,
		{admission.Minute, admission.Messages}: false,
	} {
		l := admission.Limit{Window: limit[0].(admission.Window), Unit: limit[1].(admission.Unit)}
		if l.Paced() != want {
			t.Errorf("%v: %t", limit, !want)
		}
	}
}

func TestLimitsAreEqualWhenTheySayTheSame(t *testing.T) {
	t.Parallel()
	reserve := func(percent int64) []admission.Reserve { return []admission.Reserve{{Lane: "otp", Percent: percent}} }
	a := admission.Limit{Window: admission.Minute, Max: 5, Reserve: reserve(20)}
	same := admission.Limit{Window: admission.Minute, Max: 5, Reserve: reserve(20)}
	if !a.Equal(&same) {
		t.Error("the keys differ")
	}
	for name, change := range map[string]func(*admission.Limit){
		"scope":    func(l *admission.Limit) { l.Scope.Tenant = "shop" },
		"window":   func(l *admission.Limit) { l.Window = admission.Hour },
		"unit":     func(l *admission.Limit) { l.Unit = admission.Segments },
		"max":      func(l *admission.Limit) { l.Max = 6 },
		"currency": func(l *admission.Limit) { l.Currency = "GBP" },
		"sliding":  func(l *admission.Limit) { l.Sliding = true },
		"burst":    func(l *admission.Limit) { l.Burst = 1 },
		"reserve":  func(l *admission.Limit) { l.Reserve = reserve(21) },
	} {
		other := same
		if change(&other); a.Equal(&other) {
			t.Errorf("another %s makes no difference", name)
		}
	}
}
