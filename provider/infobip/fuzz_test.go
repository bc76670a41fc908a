package infobip

import (
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/web/webtest"
)

// FuzzReadCallback hears every body twice: without a proof it must say nothing, with one it may say what it
// likes without a panic and with bounded codes.
func FuzzReadCallback(f *testing.F) {
	f.Add(report, "?key="+key+"&proof=00", "Basic aW5mb2JpcDp4")
	f.Add(`{"results":[{"messageId":"mo","from":"447700900123","to":"12345","text":"STOP"}]}`, "",
		"")
	f.Add(
		`{"results":[{"messageId":"a","status":{"groupId":2,"id":-1,"name":"x y"},"error":{"id":-447700900123}}]}`, "?%zz", "Basic")
	f.Fuzz(func(t *testing.T, body, query, authorization string) {
		all := listener(ByURL, ByBasic, ByHeader, ByCertificate)
		forged := call(public+query, body, map[string][]string{"Authorization": {authorization}})
		webtest.CheckForged(t, all, forged)
		for _, genuine := range []*provider.Callback{
			fromInfobip(body),
			call(listener(ByURL).cfg.address(key), body, nil),
		} {
			content, err := all.ReadCallback(genuine)
			webtest.CheckBounded(t, content, err)
		}
	})
}
