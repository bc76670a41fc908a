package vonage

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"net/http"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"dispatcher/config/tier"
	"dispatcher/provider"
	"dispatcher/provider/vonage/vonagetest"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

func TestAdapterPassesTheSharedChecks(t *testing.T) {
	t.Parallel()
	for name, v := range variants() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check := messagesChecks()
			if v.server.SMS {
				check = smsChecks()
			}
			check.Protocol = func() webtest.Protocol { return vonagetest.New(v.server) }
			check.Secrets = []string{apiSecret, secret}
			check.Open = func(t testing.TB, reach web.Config) provider.Channel {
				return open(t, v, reach, "", nil)
			}
			webtest.CheckVendor(t, check)
		})
	}
}

// messagesChecks is the test data of the Messages API.
func messagesChecks() webtest.Vendor {
	return webtest.Vendor{
		Validity: &webtest.Validity{Pattern: `"ttl":(\d+)`},
		Files:    "testdata/answers/messages_*.http", Classify: newMessages(Config{}).Classify,
		OnSender: []string{"invalid_sender"},
		Codes:    webtest.CodesOf(messagesMeanings),
		Blames: map[web.Blame][]string{
			web.OnMessage: {"1040", "1050", "1090", "1210", "1282", "1300", "1480", "1481", "1482"},
			web.OnSender:  {"1120", "1420"},
			web.OnChannel: {
				"1020", "1060", "1070", "1080", "1110", "1400", "1460", "invalid-api-key",
				"low-balance",
			},
		},
		Answers: map[string]provider.Result{
			"accepted": {
				Outcome: provider.Accepted, Reference: "aaaaaaaa-bbbb-4ccc-8ddd-0123456789ab",
			},
			"accepted_without_uuid":  {Outcome: provider.Unknown, Code: "202"},
			"accepted_cut_short":     {Outcome: provider.Unknown, Code: "202"},
			"ok_instead_of_accepted": {Outcome: provider.Unknown, Code: "200"},
			"unauthorized":           {Outcome: provider.Refused, Code: "401/unathorized"},
			"no_credit":              {Outcome: provider.Refused, Code: "402/1070"},
			"forbidden":              {Outcome: provider.Refused, Code: "403"},
			"not_found":              {Outcome: provider.Refused, Code: "404/not-found"},
			"invalid_recipient":      {Outcome: provider.Rejected, Code: "422/1430"},
			"invalid_parameter":      {Outcome: provider.Refused, Code: "422/1020"},
			"too_long":               {Outcome: provider.Refused, Unfit: true, Code: "422/1090"},
			"invalid_sender":         {Outcome: provider.Refused, Unfit: true, Code: "422/1420"},
			"opted_out":              {Outcome: provider.Rejected, Code: "422/1240"},
			"already_sent":           {Outcome: provider.Unknown, Code: "422/1320"},
			"internal_code":          {Outcome: provider.Unknown, Code: "422/1030"},
			"burst": {
				Outcome: provider.Throttled, Code: "422/1472", RetryAfter: 9 * time.Second,
			},
			"carrier_unknown": {Outcome: provider.Unknown, Code: "422/1330"},
			"carrier_failure": {Outcome: provider.Unknown, Code: "422/1331"},
			"handset_busy":    {Outcome: provider.Unknown, Code: "422/1220"},
			"network_error":   {Outcome: provider.Unknown, Code: "422/1230"},
			"expired":         {Outcome: provider.Unknown, Code: "422/1360"},
			"unknown_prefix":  {Outcome: provider.Refused, Unfit: true, Code: "422/1040"},
			"bad_request":     {Outcome: provider.Refused, Code: "400/invalid-params"},
			"new_code":        {Outcome: provider.Unknown, Code: "422/1999"},
			"number_as_code":  {Outcome: provider.Unknown, Code: "422/other"},
			"not_json":        {Outcome: provider.Unknown, Code: "422"},
			"rate_limited": {
				Outcome: provider.Throttled, Code: "429/1000", RetryAfter: 15 * time.Second,
			},
			"rate_limited_without_time": {Outcome: provider.Throttled, Code: "429/1010"},
			"internal_error":            {Outcome: provider.Unknown, Code: "500/1030"},
			"bad_gateway":               {Outcome: provider.Unknown, Code: "502"},
		},
	}
}

// smsChecks is the test data of the SMS API.
func smsChecks() webtest.Vendor {
	part := func(i int, o provider.Outcome, reference, code string) provider.Part {
		return provider.Part{Index: i, Outcome: o, Reference: reference, Code: code}
	}
	return webtest.Vendor{
		Validity: &webtest.Validity{Pattern: `\bttl=(\d+)`, Unit: time.Millisecond},
		Files:    "testdata/answers/sms_*.http", Classify: shortMessages{}.Classify,
		OnSender: []string{"illegal_sender"},
		Codes:    webtest.CodesOf(smsMeanings),
		Blames: map[web.Blame][]string{
			web.OnMessage: {"6", "7", "12"},
			web.OnSender:  {"15"},
			web.OnChannel: {"2", "3", "4", "8", "9", "11", "14", "23", "29", "32"},
		},
		Answers: map[string]provider.Result{
			"accepted":            {Outcome: provider.Accepted, Reference: "0A0000000123ABCD1"},
			"accepted_without_id": {Outcome: provider.Unknown, Code: "200/0"},
			"accepted_in_three_parts": {Outcome: provider.Accepted, Parts: []provider.Part{
				part(0, provider.Accepted, "0A01", ""), part(1, provider.Accepted, "0A02", ""),
				part(2, provider.Accepted, "0A03", ""),
			}},
			"taken_in_part": {Outcome: provider.Rejected, Code: "200/9", Parts: []provider.Part{
				part(0, provider.Accepted, "0A01", ""), part(1, provider.Rejected, "", "200/9"),
			}},
			"unclear_in_part": {Outcome: provider.Unknown, Code: "200/5", Parts: []provider.Part{
				part(0, provider.Refused, "", "200/9"), part(1, provider.Unknown, "", "200/5"),
			}},
			"no_part_taken": {
				Outcome: provider.Throttled, Code: "200/1", RetryAfter: 250 * time.Millisecond,
			},
			"throttled_with_time": {
				Outcome: provider.Throttled, Code: "200/1", RetryAfter: 702 * time.Millisecond,
			},
			"throttled":               {Outcome: provider.Throttled, Code: "200/1"},
			"missing_parameter":       {Outcome: provider.Refused, Code: "200/2"},
			"invalid_recipient":       {Outcome: provider.Rejected, Code: "200/3"},
			"invalid_parameter":       {Outcome: provider.Refused, Code: "200/3"},
			"too_long":                {Outcome: provider.Refused, Unfit: true, Code: "200/12"},
			"bad_credentials":         {Outcome: provider.Refused, Code: "200/4"},
			"internal_error":          {Outcome: provider.Unknown, Code: "200/5"},
			"barred":                  {Outcome: provider.Refused, Unfit: true, Code: "200/7"},
			"unknown_prefix":          {Outcome: provider.Refused, Unfit: true, Code: "200/6"},
			"no_credit":               {Outcome: provider.Refused, Code: "200/9"},
			"illegal_sender":          {Outcome: provider.Refused, Unfit: true, Code: "200/15"},
			"demo":                    {Outcome: provider.Refused, Code: "200/29"},
			"new_status":              {Outcome: provider.Unknown, Code: "200/101"},
			"no_messages":             {Outcome: provider.Unknown, Code: "200"},
			"cut_short":               {Outcome: provider.Unknown, Code: "200"},
			"accepted_under_an_error": {Outcome: provider.Unknown, Code: "500/0"},
			"unauthorized":            {Outcome: provider.Refused, Code: "401/4"},
			"rate_limited": {
				Outcome: provider.Throttled, Code: "429", RetryAfter: 2 * time.Second,
			},
			"unavailable": {Outcome: provider.Unknown, Code: "503"},
		},
	}
}

const (
	apiKey      = "abcd1234"
	apiSecret   = "vonage-api-s3cret"
	secret      = "vonage-signature-s3cret"
	older       = "the older s3cret"
	application = "78d335fa-323d-0114-9c3d-d6f0d48968cf"
	key         = webtest.Key
	recipient   = webtest.Recipient
	public      = "https://sms.example.com/receipts/vonage"
)

// now is the time of all steps that do not use the network.
var now = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

// applicationKey is made once because making a key is slow.
var applicationKey = sync.OnceValue(func() *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return k
})

func pemOf(k *rsa.PrivateKey) string {
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		panic(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// files returns the files that the tests' settings name.
func files() webtest.Files {
	return webtest.Files{
		"secret": apiSecret + "\n", "signature": secret + "\n", "older": older,
		"application.pem": pemOf(applicationKey()),
		"broken.pem":      "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
	}
}

// variant is one of Vonage's APIs with its kind of authentication.
type variant struct {
	settings map[string]any
	server   vonagetest.Config
}

func variants() map[string]variant {
	account := vonagetest.Config{APIKey: apiKey, APISecret: apiSecret, Secret: secret}
	short, app := account, account
	short.SMS = true
	app.Application, app.PublicKey = application, &applicationKey().PublicKey
	return map[string]variant{
		"Messages API": {map[string]any{"api_key": apiKey, "api_secret_file": "secret"}, account},
		"Messages API of an application": {
			map[string]any{
				"api_key": apiKey, "application_id": application,
				"private_key_file": "application.pem",
			}, app,
		},
		"SMS API": {
			map[string]any{"api": "sms", "api_key": apiKey, "api_secret_file": "secret"}, short,
		},
	}
}

// open returns a channel with a callback.
func open(
	t testing.TB, v variant, reach web.Config, callback string, more map[string]any,
) *Channel {
	t.Helper()
	values := map[string]any{
		"signature_secret_files": []any{"older", "signature"}, "from": "ACME",
		"base_url": reach.BaseURL.String(), "allow_private": true, "timeout": "1m",
		"connect_timeout": "1m",
	}
	maps.Copy(values, v.settings)
	maps.Copy(values, more)
	cfg, err := ParseSettings(values, files().Environment(callback))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Web.TLS, cfg.Web.Dial = reach.TLS, reach.Dial
	return New(cfg)
}

// startRig starts a carrier, a channel and a callback server.
func startRig(t *testing.T, v variant, more map[string]any) *webtest.Rig[*Channel] {
	t.Helper()
	return webtest.NewRig(t, func(string) webtest.Config {
		return webtest.Config{
			Protocol: vonagetest.New(v.server), Behaviour: webtest.Behaviour{Receipts: true},
		}
	}, func(reach web.Config, callback string) *Channel {
		return open(t, v, reach, callback, more)
	})
}

func TestMain(m *testing.M) {
	tier.Parallel(8)
	goleak.VerifyTestMain(m)
}

// The outcome of the whole combines those of its parts, as for every provider.
func TestOutcomeOfSeveralPartsIsTheirCombination(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"accepted_in_three_parts", "taken_in_part", "unclear_in_part"} {
		r := shortMessages{}.Classify(webtest.ReadAnswer(t, "testdata/answers/sms_"+name+".http"))
		if got := provider.Combine(r.Parts); got != r.Outcome {
			t.Errorf("%s is %v, its parts combine to %v", name, r.Outcome, got)
		}
	}
}

// TestOnePartThatBlamesTheAccountCountsAgainstTheChannel, whichever part it is.
func TestOnePartThatBlamesTheAccountCountsAgainstTheChannel(t *testing.T) {
	t.Parallel()
	const sender, credit, taken = `{"status":"15"}`, `{"status":"9"}`,
		`{"status":"0","message-id":"a"}`
	for parts, want := range map[[2]string]provider.Result{
		{sender, sender}: {Outcome: provider.Refused, Unfit: true, Code: "200/15"},
		{sender, credit}: {Outcome: provider.Refused, Code: "200/9"},
		{credit, sender}: {Outcome: provider.Refused, Code: "200/9"},
		{taken, sender}:  {Outcome: provider.Rejected, Code: "200/15"},
	} {
		body := `{"messages":[` + parts[0] + "," + parts[1] + `]}`
		r := shortMessages{}.Classify(
			&web.Answer{Status: http.StatusOK, Body: []byte(body), OwnSender: true})
		if r.Outcome != want.Outcome || r.Unfit != want.Unfit || r.Code != want.Code {
			t.Errorf("%s: %v, unfit %v, code %q", body, r.Outcome, r.Unfit, r.Code)
		}
	}
}
