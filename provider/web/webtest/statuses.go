package webtest

import (
	"testing"

	"dispatcher/provider"
)

// CheckStatuses fails unless each of a vendor's words for what became of a message, with its code, comes as the receipt that
// it means. said is a genuine callback with both; about is the message that all of them are about.
func CheckStatuses(t *testing.T, l provider.CallbackReader, about provider.Receipt, said func(word, code string) *provider.Callback, meant map[[2]string]provider.Receipt) {
	t.Helper()
	for words, want := range meant {
		call := said(words[0], words[1])
		want.Reference, want.Key, want.At = about.Reference, about.Key, call.At
		content, err := l.ReadCallback(call)
		if err != nil {
			t.Errorf("%q: %v", words, err)
			continue
		}
		same(t, words[0]+" "+words[1]+" means", content.Receipts, []provider.Receipt{want})
		if content.Inbound != nil {
			t.Errorf("%q: a subscriber's message came with it", words)
		}
	}
}
