package aws_test

import (
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/aws"
	"dispatcher/provider/web/webtest"
)

// BenchmarkSend is what a message costs without the network: the request is written and signed, and
// the answer read.
func BenchmarkSend(b *testing.B) {
	api, s, answer := aws.APIOf(open(b, settings(nil))), submission(),
		webtest.ReadAnswer(b, "testdata/accepted.http")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := api.Compose(s); err != nil {
			b.Fatal(err)
		}
		if r := api.Classify(answer); r.Outcome != provider.Accepted {
			b.Fatal(r.Err)
		}
	}
}
