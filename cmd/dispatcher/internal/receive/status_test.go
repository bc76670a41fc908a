package receive

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/ledger"
	"dispatcher/provider"
)

func TestAStatusEventHasTheStateOfTheReceipt(t *testing.T) {
	t.Parallel()
	c := ledger.Closing{
		Seq: 7, ID: "m", Lane: "otp", Tenant: "shop", Route: "default", Segments: 2,
		PossibleDuplicate: true,
		Envelope: []byte(
			`{"id":"m","to":"+447700900123","text":"secret","metadata":{"order":"7"},"from":"ACME"}`),
		State: ledger.Undelivered, Channel: "a", Attempt: 2, Reference: "r1 r2",
		Cause: provider.Absent, Code: "UNDELIV/001",
		At: time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC),
	}
	const common = `{"id":"m","state":"undelivered","at":"2026-11-21T10:00:00.000000Z","lane":"otp","tenant":"shop","route":"default",` +
		`"channel":"a","attempt":2,"cause":"absent","code":"UNDELIV/001","reference":"r1 ` +
		`r2","segments":2,"possible_duplicate":true`
	n, _ := status(&c)
	if diff := cmp.Diff(common+`,"metadata":{"order":"7"}}`, string(n.Value)); diff != "" ||
		n.Key != "m" || n.Kind != ledger.Status {
		t.Error(n.Kind, n.Key, diff)
	}
	c.Envelope = []byte("broken")
	n, _ = status(&c)
	if diff := cmp.Diff(common+"}", string(n.Value)); diff != "" {
		t.Error(diff)
	}
}
