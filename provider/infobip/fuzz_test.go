package infobip

import (
	"strings"
	"testing"

	"dispatcher/provider"
)

// FuzzHear hears every body twice: without a proof it must say nothing, with one it may say what it likes without a
// panic and with bounded codes.
func FuzzHear(f *testing.F) {
	f.Add(report, "?key="+key+"&proof=00", "Basic aW5mb2JpcDp4")
	f.Add(`{"results":[{"messageId":"mo","from":"447700900123","to":"12345","text":"STOP"}]}`, "", "")
	f.Add(`{"results":[{"messageId":"a","status":{"groupId":2,"id":-1,"name":"x y"},"error":{"id":-447700900123}}]}`, "?%zz", "Basic")
	f.Fuzz(func(t *testing.T, body, query, authorization string) {
		all := listener(ByURL, ByBasic, ByHeader, ByCertificate)
		forged := call(public+query, body, map[string][]string{"Authorization": {authorization}})
		if h, err := all.Hear(forged); err == nil || len(h.Receipts)+len(h.Inbound) != 0 {
			t.Fatalf("a forged callback says %+v", h)
		}
		for _, genuine := range []*provider.Callback{
			call(public, body, map[string][]string{"X-Secret": {secret}}),
			call(listener(ByURL).cfg.address(key), body, nil),
		} {
			h, err := all.Hear(genuine)
			if err != nil && len(h.Receipts)+len(h.Inbound) != 0 {
				t.Fatal("an error and receipts at once")
			}
			for _, r := range h.Receipts {
				if len(r.Code) > 64 || strings.Contains(r.Code, recipient[1:]) || r.Reference == "" {
					t.Fatalf("receipt %+v", r)
				}
			}
		}
	})
}
