package httpapi_test

import (
	"strings"
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/httpapi"
	"dispatcher/provider/web/webtest"
)

// blamed fails unless the error of a description contains the wanted fault (none if want is empty)
// and shows no secret.
func blamed(t *testing.T, what string, err error, want string) {
	t.Helper()
	if want == "" {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		return
	}
	t.Run(what, func(t *testing.T) {
		webtest.CheckFaults(t, err, []string{want}, "hunter2x", "s3cr3t")
	})
}

// TestFaultsOfADescriptionNameTheirPlace makes one change in a valid description.
func TestFaultsOfADescriptionNameTheirPlace(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ old, new, want string }{
		"no text": {
			`body: "{text}"`, `body: "hello"`, "request: query: {text} stands nowhere",
		},
		"unknown placeholder": {"{text}", "{txt}", "json: msg: body: {txt} is none of those"},
		"lone brace": {
			"{text}", "{text", "json: msg: body: has a brace without its partner",
		},
		"text in a header": {
			`Idempotency-Key: "{key}"`, `X-Text: "{text}"`,
			"request: headers: X-Text: {text} is none of those",
		},
		"text in the path": {
			"/{to_digits}", "/{text}", "request: path: {text} is none of those",
		},
		"query in the path": {"/{to_digits}", "/x?a=b", "request: path: has a query"},
		"path upwards":      {"/{to_digits}", "/../x", "request: path: leads upwards"},
		"secret in the document": {
			"Bearer {secret:token}", "Bearer s3cr3t",
			"request: headers: Authorization: a secret does not belong",
		},
		"secret that is none": {
			"{secret:token}", "{secret:tokn}", "{secret:tokn} is none of secrets",
		},
		"secret without file": {
			"{token: password}", "{token: nowhere}",
			"secrets: token: open nowhere: file does not exist",
		},
		"empty secret": {
			"{token: password}", "{token: empty}", "secrets: token: is empty",
		},
		"own header": {
			"Idempotency-Key", "Content-Length", `headers: "Content-Length" is not a name`,
		},
		"header with a break": {"Idempotency-Key", `"a\r\nb"`, "headers:"},
		"body of a GET": {
			"path: \"/acc", "method: GET\n  path: \"/acc", "request: method: a GET has no body",
		},
		"two bodies": {
			"query: {att", "form: {a: b}\n  query: {att", "only one of form, json and xml",
		},
		"number of words": {
			`{$number: "{validity_seconds}"}`, `{$number: "{text}{validity_seconds}"}`,
			"a $number is not a whole number",
		},
		"validity unbounded": {"longest_validity: 1h\n", "", "longest_validity: is missing"},
		"alphabet half": {
			"ucs2: unicode", "", "alphabet: needs a word for gsm7 and one for ucs2",
		},
		"alphabet unknown":      {"ucs2: unicode", "ucs3: unicode", `alphabet: "ucs3" is neither`},
		"place of no kind":      {"json:/id", "body:/id", "answer: id: \"body:/id\" is no place"},
		"pointer without slash": {"json:/id", "json:id", "answer: id: \"id\" is not a JSON pointer"},
		"regexp without group":  {"json:/id", "regexp:^id$", "answer: id: has no group"},
		"broken regexp":         {"json:/id", "regexp:(", "answer: id: error parsing regexp"},
		"nothing is accepted": {
			"outcome: accepted", "outcome: refused", "outcomes: none of them is accepted",
		},
		"accepted error": {"2xx", "4xx", "only a 2xx can be accepted"},
		"no outcome": {
			"outcome: accepted", "outcome: ok", `outcome: outcome "ok" is none of`,
		},
		"no status": {"2xx", "2x", "status: is not a status"},
		"code without place": {
			"status: 2xx", "status: 2xx, code: 1", "names a code, but answer has no place",
		},
		"misspelt": {
			"  query:", "  qeury:", "request: qeury: unknown setting; did you mean query?",
		},
		// with the key there is no fault
		"same key without key": {"from: DEFAULT", "from: DEFAULT\nsame_key_for: 24h", ""},
		"no base": {
			"base_url: https://gateway.example.com", "", "base_url: is missing",
		},
	} {
		text := describe(jsonBody)
		if !strings.Contains(text, test.old) {
			t.Errorf("%s: the description has no %q", name, test.old)
			continue
		}
		_, err := httpapi.ParseSettings(parse(t, strings.Replace(text, test.old, test.new, 1)),
			files.Environment(callback))
		blamed(t, name, err, test.want)
	}
}

func TestFaultsOfXMLBodiesAreRefused(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`<a><b>{text}</a>`:                                 "is not well-formed XML",
		`<a b={text}>{to}</a>`:                             "is not well-formed XML",
		`<{text}>{to}</{text}>`:                            "is not well-formed XML",
		`<a><![CDATA[{text}]]>{to}</a>`:                    "has a comment, a CDATA section or a DOCTYPE",
		`<!-- {text} --><a>{to}</a>`:                       "has a comment, a CDATA section or a DOCTYPE",
		`<?pi {text}?><a>{to}</a>`:                         "outside of character data",
		"<a>{text}\uE000{to}</a>":                          "private use area",
		`<a to="{to}"><?x y?><b c='{from}'>{text}</b></a>`: "",
	} {
		values := parse(t, describe("form: {}"))
		request := values["request"].(map[string]any)
		delete(request, "form")
		request["xml"] = body
		_, err := httpapi.ParseSettings(values, files.Environment(callback))
		blamed(t, body, err, want)
	}
}

func TestFaultsOfCallbackSectionsAreRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ old, new, want string }{
		"no verification": {
			"verify:\n  by: hmac\n  at: header:X-Signature\n  algorithm: sha512\n  encoding: base64\n" +
				"  prefix: \"v1=\"\n  signed: \"{time}.{method}.{url}.{body}\"\n  time: header:X-Time\n" +
				"  secret_files: [old, secret]\n", "", "verify: is missing",
		},
		"query uncovered": {".{url}", "", "signed does not cover {url}"},
		"body uncovered":  {".{body}", "", "signed does not cover {body}"},
		"header uncovered": {
			"query:state", "header:X-State", "the signature covers no header field",
		},
		"time without place": {
			"  time: header:X-Time\n", "", "{time} in signed and a place for it",
		},
		"place without time": {"{time}.", "", "{time} in signed and a place for it"},
		"three secrets":      {"[old, secret]", "[old, secret, old]", "names 3 files"},
		"no secret": {
			"  secret_files: [old, secret]\n", "", "verify: secret_files: is missing",
		},
		"unknown scheme": {"by: hmac", "by: magic", `by: "magic" is none of`},
		"scheme with too much": {
			"by: hmac", "by: secret",
			"algorithm, encoding, prefix, signed, time and late belong to hmac",
		},
		"weak hash":             {"sha512", "md5", `"md5" is none of`},
		"signature in the body": {"header:X-Signature", "json:/signature", "is no place"},
		"nothing is delivered": {
			"ok: delivered", "ok: undelivered", "states: none of them is delivered",
		},
		"too late": {
			"  time: header:X-Time\n", "  time: header:X-Time\n  late: 80h\n",
			"late: needs a time, and is at most 72h",
		},
		"form behind an address": {
			`reference: "json:/id"`, `reference: "form:id"`, "does not show where {url} ends",
		},
		"no such state": {"ok: delivered", "ok: fine", `states: ok: "fine" is none of`},
		"no such cause": {
			"states:", "causes: {x: bad_luck}, states:", "causes: x: \"bad_luck\" is none of",
		},
		"a receipt for nothing": {
			`reference: "json:/id", `, "", "a receipt must say what it is for",
		},
		"no id for a receipt": {
			`{id: "header:X-Id", outcomes`, `{outcomes`, "receipts: the answer gives no id",
		},
		"inbound without text": {
			"receipts:", "inbound: {from: \"form:from\", to: \"form:to\"}\nreceipts:",
			"inbound: text: is missing",
		},
	} {
		if !strings.Contains(signed, test.old) {
			t.Errorf("%s: the description has no %q", name, test.old)
			continue
		}
		_, err := httpapi.ParseSettings(parse(t, strings.Replace(signed, test.old, test.new, 1)),
			files.Environment(callback))
		blamed(t, name, err, test.want)
	}
}

// TestSecretsThatNeedEscapingAreRefusedWherePercentSignsAreTheGateways: Kannel replaces whatever
// follows a percent sign.
func TestSecretsThatNeedEscapingAreRefusedWherePercentSignsAreTheGateways(t *testing.T) {
	t.Parallel()
	values := document(t, "kannel", nil)
	values["verify"].(map[string]any)["secret_files"] = "odd"
	_, err := httpapi.Open(values, files.Environment(callback))
	blamed(t, "kannel", err, "percent signs")
}

func TestCapabilitiesAreThoseOfTheDescription(t *testing.T) {
	t.Parallel()
	for _, gateway := range []string{"kannel", "clicksend"} {
		webtest.CheckPromises(t, httpapi.Open, document(t, gateway, nil),
			files.Environment(callback), "", provider.Capabilities{KeyInReceipt: true, Receipts: true})
	}
}
