package httpapi_test

import (
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/httpapi"
	"dispatcher/provider/web/webtest"
)

// BenchmarkSend measures the cost of a message that follows a description.
func BenchmarkSend(b *testing.B) {
	for _, name := range []string{"kannel", "clicksend"} {
		b.Run(name, func(b *testing.B) {
			api, s, answer := httpapi.APIOf(open(b, document(b, name, nil))), submission(),
				webtest.ReadAnswer(b, "testdata/"+name+"_accepted.http")
			b.ReportAllocs()
			for b.Loop() {
				if _, err := api.Compose(s); err != nil {
					b.Fatal(err)
				}
				if r := api.Classify(answer); r.Outcome != provider.Accepted {
					b.Fatal(r.Err)
				}
			}
		})
	}
}
