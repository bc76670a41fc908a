package kafka

import (
	"bytes"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"dispatcher/cmd/dispatcher/internal/envelope"
)

// inBritain replaces the numbering plan: it knows one number.
func inBritain(record []byte) []byte {
	return bytes.Replace(record, []byte(`"07700 900123"`), []byte(`"+447700900123"`), 1)
}

func TestNationalRecipientsAreReadAsTheDefaultRegionHasThem(t *testing.T) {
	t.Parallel()
	const text = `,"text":"x"}`
	for name, c := range map[string]struct {
		value     string
		to        string
		code      envelope.Code
		rewritten bool
	}{
		"national":        {`{"id":"1","to":"07700 900123"` + text, "+447700900123", "", true},
		"E.164":           {`{"id":"1","to":"+447700900123"` + text, "+447700900123", "", false},
		"no number":       {`{"id":"1","to":"hello"` + text, "", envelope.BadNumber, false},
		"no recipient":    {`{"id":"1"` + text, "", envelope.BadNumber, false},
		"another problem": {`{"id":"1","to":"07700 900123","text":""}`, "", envelope.NoText, true},
		"a problem before it": {
			`{"id":"1","text":5,"to":"07700 900123"}`, "",
			envelope.BadField, false,
		},
		"nothing of the sort": {`hello "07700 900123"`, "", envelope.BadJSON, false},
		"a number of its text": {
			`{"id":"1","to":"+447700900123","text":"07700 900123"}`,
			"+447700900123", "", false,
		},
	} {
		job := newJob("otp", &kgo.Record{Value: []byte(c.value)},
			&ConsumerConfig{Rewrite: inBritain})
		code := envelope.Code("")
		if job.Problem != nil {
			code = job.Problem.Code
		}
		if job.Message.To != c.to || code != c.code || (job.Rewritten != nil) != c.rewritten ||
			string(job.Raw) != c.value {
			t.Errorf("%s: to %q, code %q, stored %q", name, job.Message.To, code, job.Rewritten)
		}
	}
}

func TestTheSameRecipientInTwoFormsIsTheSameMessage(t *testing.T) {
	t.Parallel()
	cfg := &ConsumerConfig{Rewrite: inBritain}
	national := newJob("otp",
		&kgo.Record{Value: []byte(`{"id":"1","to":"07700 900123","text":"x"}`)}, cfg)
	international := newJob("otp",
		&kgo.Record{Value: []byte(`{"id":"1","to":"+447700900123","text":"x"}`)}, cfg)
	if national.Message.Digest() != international.Message.Digest() {
		t.Error("the digests differ: a redelivery would be a conflict")
	}
	again, problem := envelope.Decode(national.Rewritten, false)
	if problem != nil || again.To != "+447700900123" {
		t.Errorf("what is stored reads as %v", problem)
	}
}

func TestWithoutADefaultRegionNationalRecipientsAreRefused(t *testing.T) {
	t.Parallel()
	job := newJob("otp", &kgo.Record{Value: []byte(`{"id":"1","to":"07700 900123","text":"x"}`)},
		&ConsumerConfig{})
	if job.Problem == nil || job.Problem.Code != envelope.BadNumber {
		t.Errorf("got %+v", job.Problem)
	}
}
