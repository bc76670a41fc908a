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
	"dispatcher/provider/httpapi/httpapitest"
	"dispatcher/provider/providertest"
	"dispatcher/provider/web/webtest"
)

// TestDescribedGatewaysConform runs the suite over the documents of testdata: a GET with an answer in text and no id, and a POST of
// JSON with the error in a 200.
func TestDescribedGatewaysConform(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"kannel", "clicksend"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := webtest.Harness(func() webtest.Shape { return httpapitest.New(account(name)) }, nil)
			h.Deadline, h.Secrets = 2*time.Second, []string{password, secret}
			h.Start = func(t testing.TB, play providertest.Script) providertest.Instance { return start(t, name, play) }
			providertest.Run(t, h)
		})
	}
}

// start brings up a gateway and its channel. The suite's submissions have no keys, so the channel gives them some; a
// gateway without ids knows messages by them.
func start(t testing.TB, name string, play providertest.Script) providertest.Instance {
	t.Helper()
	seen := func(s webtest.Submit) providertest.Submit {
		out := providertest.Submit{To: s.To, Reference: s.Reference}
		if name == "kannel" && s.Reference != "" {
			out.Reference = s.Key
		}
		return out
	}
	carrier, err := webtest.Start(webtest.Config{Shape: httpapitest.New(account(name)), Log: -1, Behaviour: webtest.Behaviour{
		Decide: func(n int, s webtest.Submit) providertest.Answer { return play(n, seen(s)) },
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(carrier.Close)
	if play == nil {
		carrier.Close()
	}
	channel := keyed{open(t, document(t, name, map[string]any{"base_url": carrier.URL(), "timeout": "1m"}))}
	t.Cleanup(func() {
		if unread := carrier.Unread(); len(unread) > 0 {
			t.Errorf("the gateway could not read %d requests: %q", len(unread), unread[0])
		}
	})
	return providertest.Instance{Channel: channel, Submits: func() []providertest.Submit {
		var list []providertest.Submit
		for _, s := range carrier.Submits() {
			list = append(list, seen(s))
		}
		return list
	}}
}

// keyed gives submissions keys.
type keyed struct{ provider.Channel }

func (k keyed) Send(ctx context.Context, s provider.Submission) provider.Result {
	sum := sha256.Sum256([]byte(s.ID))
	s.Key = hex.EncodeToString(sum[:16])
	return k.Channel.Send(ctx, s)
}

// TestOneSendIsOneRequestWhateverDies cuts connections under GETs and POSTs, kept ones too.
func TestOneSendIsOneRequestWhateverDies(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"kannel", "clicksend"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const messages = 60
			carrier, err := webtest.Start(webtest.Config{Shape: httpapitest.New(account(name)), Behaviour: webtest.Behaviour{CutEvery: 3}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(carrier.Close)
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
			if outcomes[provider.Accepted] != messages*2/3 || outcomes[provider.Unknown] != messages/3 {
				t.Errorf("outcomes %v", outcomes)
			}
		})
	}
}

// TestDocumentsInTheDocsAreThoseThatTheSuiteRuns keeps the examples true.
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
