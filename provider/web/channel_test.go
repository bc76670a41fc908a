package web_test

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

// failingAPI returns err for every message.
type failingAPI struct {
	plainAPI
	err error
}

func (f failingAPI) Compose(*provider.Submission) (*web.Request, error) { return nil, f.err }

// TestOnlyAnUnsendableEndsTheMessage: if a channel has no sender, or a vendor has its own limit,
// other channels may send the message.
func TestOnlyAnUnsendableEndsTheMessage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err     error
		outcome provider.Outcome
		code    string
	}{
		"fault of the channel": {errors.New("no sender"), provider.Refused, "uncomposed"},
		"fault of the message": {
			fmt.Errorf("sms: %w", web.Unsendable("there is no text")), provider.Rejected,
			"unsendable",
		},
	} {
		channel := web.New(web.Config{}, failingAPI{plainAPI{http.MethodPost}, c.err})
		t.Cleanup(func() { _ = channel.Close(t.Context()) })
		if r := channel.Send(t.Context(), message()); r.Outcome != c.outcome || r.Code != c.code ||
			!errors.Is(r.Err, c.err) {
			t.Errorf("%s: %v, %q, %v", name, r.Outcome, r.Code, r.Err)
		}
	}
}

// lookup returns a Lookup whose answer is a number of entries, or "taken".
func lookup(certain bool) web.Lookup {
	return web.Lookup{
		Request: &web.Request{Method: http.MethodGet, URL: "/messages"}, AbsenceIsCertain: certain,
		Read: func(body []byte) (provider.LookupResult, int, error) {
			if string(body) == "taken" {
				return provider.LookupResult{State: provider.Taken, Reference: "ref"}, 1, nil
			}
			entries, err := strconv.Atoi(string(body))
			if err != nil {
				err = web.ErrNoList
			}
			return provider.LookupResult{}, entries, err
		},
	}
}

func TestOnlyAListWithTheKeyOrWithNothingAnswersALookup(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status  int
		body    string
		certain bool
		want    provider.LookupState
	}{
		"found":                    {http.StatusOK, "taken", false, provider.Taken},
		"nothing":                  {http.StatusOK, "0", false, provider.Unanswered},
		"nothing, absence certain": {http.StatusOK, "0", true, provider.NotTaken},
		"other messages only":      {http.StatusOK, "1", true, provider.Unanswered},
		"no list":                  {http.StatusOK, "<html>", true, provider.Unanswered},
		"another status":           {http.StatusNotFound, "0", true, provider.Unanswered},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			})
			got := channel(t, s.URL, http.MethodPost, asIs).LookUp(t.Context(), "key",
				lookup(c.certain))
			if got.State != c.want || (got.Err != nil) != (c.want == provider.Unanswered) ||
				(got.Reference == "ref") != (c.want == provider.Taken) {
				t.Errorf("%+v, want %v", got, c.want)
			}
		})
	}
}

func TestALookupThatCannotBeMadeAnswersNothing(t *testing.T) {
	t.Parallel()
	s := serve(t, cut)
	c := channel(t, s.URL, http.MethodPost, asIs)
	for _, key := range []string{"", "key"} {
		if got := c.LookUp(t.Context(), key, lookup(true)); got.State != provider.Unanswered ||
			got.Err == nil {
			t.Errorf("%q: %+v", key, got)
		}
	}
	if requests, _ := s.seen(); requests != 1 {
		t.Errorf("%d requests, one of them without a key", requests)
	}
}

func TestStampsAreFreshForAsLongAsTheVendorNeeds(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	for age, want := range map[time.Duration]error{
		0: nil, 5 * time.Minute: nil, -5 * time.Minute: nil,
		5*time.Minute + time.Second:  provider.ErrStale,
		-5*time.Minute - time.Second: provider.ErrStale, 400 * 24 * time.Hour: provider.ErrStale,
	} {
		if err := web.CheckStamp(strconv.FormatInt(now.Add(-age).Unix(), 10), now,
			web.Tolerance); !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("%s old: %v, want %v", age, err, want)
		}
	}
	for age, want := range map[time.Duration]error{25 * time.Hour: nil, 25*time.Hour +
		time.Second: provider.ErrStale, -5*time.Minute - time.Second: provider.ErrStale} {
		if err := web.CheckAge(now.Add(-age), now,
			web.RetryTolerance(24*time.Hour)); !errors.Is(err, want) ||
			(err == nil) != (want == nil) {
			t.Errorf("retried, %s old: %v, want %v", age, err, want)
		}
	}
	for stamp, want := range map[string]error{
		"": provider.ErrMalformed, "today": provider.ErrMalformed, "1e9": provider.ErrMalformed,
		"99999999999999999999": provider.ErrMalformed,
		"9223372036854775807":  provider.ErrStale, "-9223372036854775808": provider.ErrStale,
		"0": provider.ErrStale,
	} {
		if err := web.CheckStamp(stamp, now, web.Tolerance); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", stamp, err, want)
		}
	}
}

func TestASignatureByAnyValidSecretIsGenuine(t *testing.T) {
	t.Parallel()
	sign := func(secret string) []byte { return []byte("signed by " + secret) }
	for given, want := range map[string]bool{
		"signed by a": true, "signed by b": true, "signed by c": false, "": false,
		"signed by ": false,
	} {
		if got := web.SignedByAny([]string{"a", "b"}, []byte(given), sign); got != want {
			t.Errorf("%q: %t", given, got)
		}
	}
	if web.SignedByAny(nil, nil, sign) {
		t.Error("a signature without secrets was accepted")
	}
}

func TestNumbersWithoutPlusBecomeInternational(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"447700900123": "+447700900123", " 447700900123 ": "+447700900123", "1234567": "+1234567",
		"123456": "123456", "1234567890123456": "1234567890123456",
		"+447700900123": "+447700900123",
		"ACME":          "ACME", "": "",
	} {
		if got := web.International(given); got != want {
			t.Errorf("%q is %q, want %q", given, got, want)
		}
	}
}

func TestOnlyTheFormOfAKeyIsAKey(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", webtest.Key[1:], webtest.Key + "0", strings.ToUpper(webtest.Key),
		strings.Replace(webtest.Key, "a", "g", 1),
	} {
		if got := web.OwnKey(text); got != "" {
			t.Errorf("%q was read as the key %q", text, got)
		}
	}
	if got := web.OwnKey(webtest.Key); got != webtest.Key {
		t.Errorf("the key %q becomes %q", webtest.Key, got)
	}
}

func TestAnIDIsShortPrintableAndWithoutSpaces(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"SM-1": true, strings.Repeat("x", provider.MaxReference): true,
		strings.Repeat("x", provider.MaxReference+1): false, "": false, "a b": false, "a\n": false,
		"é": false,
	} {
		if web.PlainID(text) != want {
			t.Errorf("%.20q can be an id: %v, want %v", text, !want, want)
		}
	}
}

func TestSecretsAreTheSameOnlyAsAWhole(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]bool{
		"hunter2": true, "hunter": false, "hunter22": false, "": false,
	} {
		if web.SameSecret(given, "hunter2") != want {
			t.Errorf("%q: %v, want %v", given, !want, want)
		}
	}
}
