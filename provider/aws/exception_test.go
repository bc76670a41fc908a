package aws

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// answerOf returns an answer with kind in its header, unless kind is empty.
func answerOf(status int, kind, body string) *web.Answer {
	a := &web.Answer{Status: status, Header: http.Header{}, Body: []byte(body)}
	if kind != "" {
		a.Header.Set("X-Amzn-ErrorType", kind)
	}
	return a
}

func TestExceptionsAreKnownByTheirNameInAnyShape(t *testing.T) {
	t.Parallel()
	const address = ":http://internal.amazon.com/coral/com.amazon.coral.service/#x"
	api := apiOf(open(t, channelSettings(nil)))
	for _, test := range []struct{ kind, body, code string }{
		{"", `{"__type":"ThrottlingException"}`, "400/ThrottlingException"},
		{
			"", `{"__type":"com.amazonaws.pinpointsmsvoicev2#ThrottlingException"}`,
			"400/ThrottlingException",
		},
		{"", `{"__type":"ThrottlingException` + address + `"}`, "400/ThrottlingException"},
		{
			"", `{"__type":"com.amazonaws.pinpointsmsvoicev2#ThrottlingException` + address + `"}`,
			"400/ThrottlingException",
		},
		{"", `{"code":"aws#ThrottlingException:"}`, "400/ThrottlingException"},
		{
			"", `{"code":"ConflictException","__type":"ThrottlingException"}`,
			"400/ThrottlingException",
		},
		{"", `{"__type":5,"code":"ThrottlingException"}`, "400/ThrottlingException"},
		{"", `{"__type":"","code":"ThrottlingException"}`, "400/ThrottlingException"},
		{"", `{"__type":"#","code":"ThrottlingException"}`, "400/ThrottlingException"},
		{"ThrottlingException", ``, "400/ThrottlingException"},
		{"ThrottlingException" + address, "\r\n", "400/ThrottlingException"},
		{
			"aws#ThrottlingException", `{"__type":"ConflictException","Reason":"x"}`,
			"400/ThrottlingException",
		},
		{
			"ThrottlingException", `{"message":"+447700900123","new":{"a":[1]}}`,
			"400/ThrottlingException",
		},
		{"ThrottlingException", `null`, "400/ThrottlingException"},
	} {
		if r := api.Classify(answerOf(400, test.kind, test.body)); r.Outcome != provider.Throttled ||
			r.Code != test.code {
			t.Errorf("%s and %s: %v, %q", test.kind, test.body, r.Outcome, r.Code)
		}
	}
}

// TestAFieldOfAnotherTypeLeavesTheRestOfTheExceptionReadable: the recipient is at fault only if all
// invalid fields are known, so an unreadable list of fields has no effect.
func TestAFieldOfAnotherTypeLeavesTheRestOfTheExceptionReadable(t *testing.T) {
	t.Parallel()
	api := apiOf(open(t, channelSettings(nil)))
	invalid := provider.Result{Outcome: provider.Refused, Code: "400/INVALID_PARAMETER"}
	for body, want := range map[string]provider.Result{
		`"ConflictException","Reason":"DESTINATION_PHONE_NUMBER_OPTED_OUT","ResourceId":5,"Message":[]`: {
			Outcome: provider.Rejected, Code: "400/DESTINATION_PHONE_NUMBER_OPTED_OUT",
		},
		`"ConflictException","Reason":7`: {
			Outcome: provider.Refused, Code: "400/ConflictException",
		},
		`"ConflictException","reason":"DESTINATION_PHONE_NUMBER_OPTED_OUT"`: {
			Outcome: provider.Refused, Code: "400/ConflictException",
		},
		`"ConflictException","Reason":"+447700900123"`: {
			Outcome: provider.Refused, Code: "400",
		},
		`"ResourceNotFoundException","ResourceType":["phone-number"]`: {
			Outcome: provider.Refused, Code: "400/ResourceNotFoundException",
		},
		`"ResourceNotFoundException","ResourceType":"sender-id","ResourceId":null`: {
			Outcome: provider.Refused, Unfit: true, Code: "400/ResourceNotFoundException",
		},
		`"ServiceQuotaExceededException","Reason":{}`: {
			Outcome: provider.Refused, Code: "400/ServiceQuotaExceededException",
		},
		`"AccessDeniedException","Reason":false`: {
			Outcome: provider.Refused, Code: "400/AccessDeniedException",
		},

		`"ValidationException","Reason":"INVALID_PARAMETER","Fields":[{"Name":"DestinationPhoneNumber","Message":5,"New":{}}]`: {
			Outcome: provider.Rejected, Code: "400/INVALID_PARAMETER",
		},
		`"ValidationException","Reason":"INVALID_PARAMETER","Fields":[{"Name":"DestinationPhoneNumber"},{"Name":5}]`:    invalid,
		`"ValidationException","Reason":"INVALID_PARAMETER","Fields":[{"Name":"DestinationPhoneNumber"},"MessageBody"]`: invalid,
		`"ValidationException","Reason":"INVALID_PARAMETER","Fields":[{"Name":"DestinationPhoneNumber"},null]`:          invalid,
		`"ValidationException","Reason":"INVALID_PARAMETER","Fields":{"Name":"DestinationPhoneNumber"}`:                 invalid,
		`"ValidationException","Reason":"INVALID_PARAMETER","Fields":"DestinationPhoneNumber"`:                          invalid,
		`"ValidationException","Reason":["INVALID_PARAMETER"],"Fields":[{"Name":"DestinationPhoneNumber"}]`: {
			Outcome: provider.Refused, Code: "400/ValidationException",
		},
		`"ValidationException","Reason":"MAXIMUM_SIZE_EXCEEDED","Fields":[{"Name":"DestinationPhoneNumber"}]`: {
			Outcome: provider.Refused, Code: "400/MAXIMUM_SIZE_EXCEEDED",
		},
		`"validationexception","Reason":"INVALID_PARAMETER","Fields":[{"Name":"DestinationPhoneNumber"}]`: {
			Outcome: provider.Unknown, Code: "400/validationexception",
		},
		`"UnknownOperationException"`: {
			Outcome: provider.Refused, Code: "400/UnknownOperationException",
		},
	} {
		answer := answerOf(400, "", `{"__type":`+body+`}`)
		answer.OwnSender = true
		r := api.Classify(answer)
		if r.Outcome != want.Outcome || r.Unfit != want.Unfit || r.Code != want.Code {
			t.Errorf("%s: %v, unfit %v, %q", body, r.Outcome, r.Unfit, r.Code)
		}
	}
}

func TestReasonsOfOneCountryLeaveTheChannelToOthers(t *testing.T) {
	t.Parallel()
	api := apiOf(open(t, channelSettings(nil)))
	for reason, unfit := range map[string]bool{
		"COUNTRY_CODE_MISMATCH": true, "COUNTRY_NOT_ENABLED": true,
		"DESTINATION_COUNTRY_BLOCKED":              true,
		"INTERNATIONAL_SENDING_NOT_SUPPORTED":      true,
		"INVALID_IDENTITY_FOR_DESTINATION_COUNTRY": true, "PRICE_OVER_THRESHOLD": true,
		// without the channel's own sender
		"SENDER_ID_NOT_SUPPORTED": true, "SENDER_ID_REQUIRES_REGISTRATION": true,
		"SENDER_ID_NOT_REGISTERED": false,
		"INVALID_ARN":              false, "MISSING_PARAMETER": false, "SOMETHING_NEW": false,
	} {
		r := api.Classify(answerOf(400, "", `{"__type":"ValidationException","Reason":"`+reason+`"}`))
		if r.Outcome != provider.Refused || r.Unfit != unfit || r.Code != "400/"+reason {
			t.Errorf("%s: %v, unfit %v, %q", reason, r.Outcome, r.Unfit, r.Code)
		}
	}
}

func TestALongNameIsNotShown(t *testing.T) {
	t.Parallel()
	api := apiOf(open(t, channelSettings(nil)))
	for length, code := range map[int]string{60: "400/" + strings.Repeat("X", 60), 61: "400"} {
		if r := api.Classify(answerOf(400, strings.Repeat("X", length),
			"")); r.Outcome != provider.Unknown || r.Code != code {
			t.Errorf("a name of %d letters: %v, %q", length, r.Outcome, r.Code)
		}
	}
}

func TestAnAnswerThatIsNotWholeSaysNothing(t *testing.T) {
	t.Parallel()
	api := apiOf(open(t, channelSettings(nil)))
	const taken, refused = `{"MessageId":"862a8790"}`, `{"__type":"ServiceQuotaExceededException"}`
	for _, body := range []string{
		taken + "x", taken + taken, taken[:len(taken)-1], taken[1:], "\xef\xbb\xbf" + taken,
		"[" + taken + "]",
		`{"MessageId":""}`, `{"MessageId":null}`, `{"MessageId":5}`, `{"MessageId":["862a8790"]}`,
		`{"messageid":"862a8790"}`,
		`{"MessageId":"862a 8790"}`, `{"MessageId":"862a\u0000"}`,
		`{"MessageId":"` + strings.Repeat("8", provider.MaxReference+1) + `"}`,
		``, ` `, `null`, `{}`, `"862a8790"`, `862`, `<html>`,
	} {
		if r := api.Classify(answerOf(200, "", body)); r.Outcome != provider.Unknown ||
			r.Code != "200/unreadable" || r.Reference != "" {
			t.Errorf("200 with %s: %v, %q", body, r.Outcome, r.Code)
		}
	}
	for _, body := range []string{refused + "x", refused[:len(refused)-1], "[" + refused +
		"]", `"x"`, `<html>`} {
		if r := api.Classify(answerOf(400, "", body)); r.Outcome != provider.Unknown ||
			r.Code != "400/unreadable" {
			t.Errorf("400 with %s: %v, %q", body, r.Outcome, r.Code)
		}
	}
	for _, body := range []string{``, `null`, `{}`, `{"__type":5,"code":6}`} {
		if r := api.Classify(answerOf(400, "", body)); r.Outcome != provider.Unknown ||
			r.Code != "400/UnknownError" {
			t.Errorf("400 with %s: %v, %q", body, r.Outcome, r.Code)
		}
	}
}

// TestOnlyA200Accepts: the documentation of SendTextMessage names no other success status.
func TestOnlyA200Accepts(t *testing.T) {
	t.Parallel()
	api := apiOf(open(t, channelSettings(nil)))
	if r := api.Classify(answerOf(200, "",
		" {\"Region\":{},\"MessageId\":\"862a8790\"}\r\n")); r.Outcome != provider.Accepted ||
		r.Reference != "862a8790" {
		t.Errorf("with a new field: %v, %q", r.Outcome, r.Reference)
	}
	for _, status := range []int{0, 100, 199, 201, 202, 204, 299, 300, 302, 400, 500} {
		if r := api.Classify(answerOf(status, "",
			`{"MessageId":"862a8790"}`)); r.Outcome != provider.Unknown || r.Reference != "" {
			t.Errorf("%d: %v, %q", status, r.Outcome, r.Reference)
		}
	}
	for status, want := range map[int]provider.Outcome{
		200: provider.Unknown, 299: provider.Unknown, 199: provider.Refused, 300: provider.Refused,
		429: provider.Refused, 500: provider.Refused,
	} {
		if r := api.Classify(answerOf(status, "",
			`{"__type":"AccessDeniedException"}`)); r.Outcome != want {
			t.Errorf("an exception with %d: %v", status, r.Outcome)
		}
	}
}

// soundCode matches a status, optionally followed by a word without digits.
var soundCode = regexp.MustCompile(`^-?[0-9]+(/[A-Za-z_]{1,60})?$`)

func FuzzClassify(f *testing.F) {
	f.Add(200, "", []byte(`{"MessageId":"862a8790-60c0-4430-9b2b-658bdexample"}`))
	f.Add(
		400, "", []byte(
			`{"__type":"aws#ValidationException:x","Reason":"INVALID_PARAMETER","Fields":[{"Name":"DestinationPhoneNumber"},{"Name":5}]}`))
	f.Add(400, "ConflictException", []byte(`{"Reason":"DESTINATION_PHONE_NUMBER_OPTED_OUT"}`))
	f.Add(404, "", []byte(`{"code":"ResourceNotFoundException","ResourceType":"sender-id"}`))
	f.Add(429, "", []byte(`slow down`))
	f.Add(503, "ThrottlingException:http://x", []byte(``))
	api := apiOf(open(f, channelSettings(nil)))
	f.Fuzz(func(t *testing.T, status int, kind string, body []byte) {
		r := api.Classify(answerOf(status, kind, string(body)))
		if r.Outcome != provider.Accepted {
			if r.Err == nil || r.Reference != "" || !soundCode.MatchString(r.Code) {
				t.Errorf("%v, %q under the id %q: %v", r.Outcome, r.Code, r.Reference, r.Err)
			}
			if r.Outcome != provider.Unknown && web.MaybeFromProxy(status) {
				t.Errorf("%v under %d", r.Outcome, status)
			}
			return
		}
		var said map[string]any
		if err := json.Unmarshal(body, &said); err != nil || status != http.StatusOK ||
			r.Err != nil || said["MessageId"] != r.Reference || r.Reference == "" {
			t.Errorf("accepted under the id %q with %d: %v", r.Reference, status, r.Err)
		}
	})
}
