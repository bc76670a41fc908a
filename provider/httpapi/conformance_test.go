package httpapi_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/httpapi"
	"dispatcher/provider/httpapi/httpapitest"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

// TestDescribedGatewaysPassTheSharedChecks runs the checks over the documents in testdata: a GET
// with a text answer and no id, and a POST of JSON with errors inside a 200.
func TestDescribedGatewaysPassTheSharedChecks(t *testing.T) {
	t.Parallel()
	for name, answers := range map[string]map[string]provider.Result{
		"kannel": {
			"accepted":         {Outcome: provider.Accepted},
			"queued":           {Outcome: provider.Accepted},
			"denied":           {Outcome: provider.Rejected, Code: "400"},
			"authorization":    {Outcome: provider.Refused, Code: "403"},
			"temporal_failure": {Outcome: provider.Refused, Code: "503"},
			"bare_503":         {Outcome: provider.Unknown, Code: "503"},
			"proxys_503":       {Outcome: provider.Unknown, Code: "503"},
			"slow_down":        {Outcome: provider.Throttled, Code: "429"},
			"slow_down_when": {
				Outcome: provider.Throttled, Code: "429", RetryAfter: 9 * time.Second,
			},
			"other_text":     {Outcome: provider.Unknown, Code: "202"},
			"internal_error": {Outcome: provider.Unknown, Code: "500"},
		},
		"clicksend": {
			"accepted": {
				Outcome: provider.Accepted, Reference: "BF7AD270-0DE2-418B-B606-71D527D9C1AE",
			},
			"bad_recipient":  {Outcome: provider.Rejected, Code: "200/INVALID_RECIPIENT"},
			"no_credit":      {Outcome: provider.Refused, Code: "200/INSUFFICIENT_CREDIT"},
			"new_word":       {Outcome: provider.Unknown, Code: "200/SOMETHING_NEW"},
			"without_id":     {Outcome: provider.Unknown, Code: "200/SUCCESS"},
			"unauthorized":   {Outcome: provider.Refused, Code: "401"},
			"malformed":      {Outcome: provider.Unknown, Code: "200"},
			"number_as_code": {Outcome: provider.Unknown, Code: "200"},
			"bad_gateway":    {Outcome: provider.Unknown, Code: "502"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := webtest.Vendor{
				Files: "testdata/" + name + "_*.http", Answers: answers,
				Classify: httpapi.APIOf(open(t, document(t, name, nil))).Classify,
				Protocol: func() webtest.Protocol { return httpapitest.New(account(name)) },
				Secrets:  []string{password, secret},
				Open: func(t testing.TB, reach web.Config) provider.Channel {
					cfg, err := httpapi.ParseSettings(document(t, name, nil),
						files.Environment(callback))
					if err != nil {
						t.Fatal(err)
					}
					cfg.Web = reach
					return keyed{httpapi.New(cfg)}
				},
			}
			if name == "kannel" {
				// This gateway gives no ids and identifies messages by their keys.
				v.Reference = func(s webtest.Submit) string { return s.Key }
				v.Validity = &webtest.Validity{Pattern: `validity=(\d+)`, Unit: time.Minute}
			}
			webtest.CheckVendor(t, v)
		})
	}
}

// keyed adds keys to submissions, which those of the suite lack.
type keyed struct{ provider.Channel }

func (k keyed) Send(ctx context.Context, s provider.Submission) provider.Result {
	sum := sha256.Sum256([]byte(s.ID))
	s.Key = hex.EncodeToString(sum[:16])
	return k.Channel.Send(ctx, s)
}

// TestOneSendIsOneRequestWhateverDies cuts new and kept connections under GETs and POSTs.
func TestOneSendIsOneRequestWhateverDies(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"kannel", "clicksend"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const messages = 60
			carrier := webtest.Serve(t,
				webtest.Config{
					Protocol:  httpapitest.New(account(name)),
					Behaviour: webtest.Behaviour{CutEvery: 3},
				})
			c := open(t, document(t, name, map[string]any{"base_url": carrier.URL()}))
			outcomes := map[provider.Outcome]int{}
			for i := range messages {
				s := submission()
				s.Key = fmt.Sprintf("%032x", i)
				outcomes[c.Send(t.Context(), *s).Outcome]++
			}
			if n := carrier.Requests(); n != messages {
				t.Errorf("%d requests for %d sends", n, messages)
			}
			if outcomes[provider.Accepted] != messages*2/3 ||
				outcomes[provider.Unknown] != messages/3 {
				t.Errorf("outcomes %v", outcomes)
			}
		})
	}
}

// TestDocumentsInTheDocsAreThoseThatTheSuiteRuns: the examples in the docs are tested.
func TestDocumentsInTheDocsAreThoseThatTheSuiteRuns(t *testing.T) {
	t.Parallel()
	docs, err := os.ReadFile("../../docs/providers/httpapi.md")
	if err != nil {
		t.Fatal(err)
	}
	examples, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(examples) < 2 {
		t.Fatalf("%d examples, error %v", len(examples), err)
	}
	for _, name := range examples {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(docs), string(text)) {
			t.Errorf("docs/providers/httpapi.md does not show %s as it is", name)
		}
	}
}
