package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/twmb/franz-go/pkg/kgo"

	"dispatcher/cmd/dispatcher/internal/access"
	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/envelope"
)

// Intake publishes records to Kafka. It returns an error for each record, nil for one that is
// durable; see kafka.Intake.
type Intake interface {
	Publish(ctx context.Context, records []*kgo.Record) []error
}

// IntakeMetrics count requests that send messages; see kafka.IntakeMetrics.
type IntakeMetrics interface {
	Refused()
	Unavailable()
	Published(lane string, of, confirmed int, took time.Duration)
}

const (
	// intakeTimeout bounds the wait for the brokers.
	intakeTimeout = 12 * time.Second
	// topicsFor is how long the topics of the lanes are cached.
	topicsFor = time.Second
	// mostProblems bounds the problems that an answer lists.
	mostProblems = 100
)

// laneTopics caches the topics of the lanes in force. While the database is away it keeps the
// topics read last, so that messages can still be accepted.
type laneTopics struct {
	mu sync.Mutex
	at time.Time
	by map[string]string // the first topic of each lane; nil before the first read
}

func (l *laneTopics) find(ctx context.Context, a *API, lane string) (topic string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.by == nil || time.Since(l.at) >= topicsFor {
		ctx, cancel := context.WithTimeout(ctx, topicsFor)
		defer cancel()
		_, doc, err := control.InForce(ctx, a.cfg.Ledger)
		switch {
		case err == nil:
			l.by = map[string]string{}
			for i := range doc.Lanes {
				l.by[doc.Lanes[i].Name] = doc.Lanes[i].Topics[0]
			}
		case l.by == nil:
			return "", err
		}
		l.at = time.Now()
	}
	if topic, ok := l.by[lane]; ok {
		return topic, nil
	}
	return "", huma.Error422UnprocessableEntity("there is no such lane: "+
		"name one that the routing document has",
		&huma.ErrorDetail{Location: "body.lane", Message: "is not a lane of the routing document"})
}

// message is one envelope, byte for byte, because it is published as it was sent.
type message json.RawMessage

// UnmarshalJSON copies the bytes.
func (m *message) UnmarshalJSON(raw []byte) error {
	*m = append((*m)[:0], raw...)
	return nil
}

// Schema describes an envelope. It does not validate much: the decoder knows more rules and names
// the wrong field.
func (message) Schema(huma.Registry) *huma.Schema {
	text := func(doc string) *huma.Schema {
		return &huma.Schema{Type: huma.TypeString, Nullable: true, Description: doc}
	}
	s := &huma.Schema{
		Type: huma.TypeObject, AdditionalProperties: true,
		Description: "an envelope, as docs/schema/envelope.schema.json has it",
		Properties: map[string]*huma.Schema{
			"id":         text("yours, unique for ever; 1 to 64 printable characters"),
			"to":         text("recipient in E.164 form"),
			"from":       text("sender"),
			"text":       text("what the subscriber reads"),
			"tenant":     text("on whose behalf"),
			"send_at":    text("RFC 3339"),
			"expires_at": text("RFC 3339"),
			"max_price":  text("a decimal"),
			"labels":     {Type: huma.TypeObject, Nullable: true, AdditionalProperties: true},
			"metadata":   {Type: huma.TypeObject, Nullable: true, AdditionalProperties: true},
			"selectors": {
				Type: huma.TypeArray, Nullable: true, Items: &huma.Schema{Type: huma.TypeObject},
			},
		},
		Examples: []any{map[string]any{
			"id": "order-7731-otp", "to": "+447700900123", "text": "Your code is 123456",
		}},
	}
	s.PrecomputeMessages()
	return s
}

type sendInput struct {
	Traceparent string `header:"traceparent" maxLength:"64" doc:"W3C Trace Context; passed on with the records"`
	Body        struct {
		Lane     string    `json:"lane" minLength:"1" maxLength:"64" doc:"such as otp, transactional or bulk"`
		Messages []message `json:"messages" minItems:"1" maxItems:"500" doc:"all of them are written, or none when one is not valid"`
	}
}

type accepted struct {
	Accepted int `json:"accepted" doc:"how many messages are durable in Kafka"`
}

// withAccepted makes an operation answer 202, because the outcome of a message comes later, in its
// status events.
func withAccepted(o *huma.Operation) { o.DefaultStatus = http.StatusAccepted }

// send publishes messages to the topic of their lane. An id that was sent before is published
// again; the claim drops the duplicate, as for every producer.
func (a *API) send(ctx context.Context, in *sendInput) (*reply[accepted], error) {
	who := caller(ctx)
	topic, err := a.topics.find(ctx, a, in.Body.Lane)
	if err == nil && !who.Lanes.Has(in.Body.Lane) {
		err = huma.Error403Forbidden("your token is not for this lane: it is for " +
			string(who.Lanes))
	}
	var records []*kgo.Record
	if err == nil {
		records, err = a.records(topic, &who, in)
	}
	if err != nil {
		if _, refused := errors.AsType[huma.StatusError](err); refused {
			a.cfg.IntakeMetrics.Refused()
		} else {
			a.cfg.IntakeMetrics.Unavailable()
		}
		return nil, err
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, intakeTimeout)
	defer cancel()
	var open []error
	for i, err := range a.cfg.Intake.Publish(ctx, records) {
		if err != nil {
			a.cfg.Log.Warn().Err(err).Str("topic", topic).Msg("a message of the API is not durable")
			open = append(open, &huma.ErrorDetail{
				Location: "body.messages[" + strconv.Itoa(i) + "]",
				Message:  "is not known to be durable",
			})
		}
	}
	a.cfg.IntakeMetrics.Published(in.Body.Lane, len(records), len(records)-len(open),
		time.Since(began))
	if len(open) > 0 {
		return nil, huma.NewError(http.StatusServiceUnavailable, fmt.Sprintf("Kafka has confirmed "+
			"%d of %d messages: send all of them again, their ids keep each from being sent twice",
			len(records)-len(open), len(records)), open[:min(len(open), mostProblems)]...)
	}
	return &reply[accepted]{accepted{len(records)}}, nil
}

// records makes the records of the messages. The error names each wrong message and field.
func (a *API) records(
	topic string, who *access.Principal, in *sendInput,
) ([]*kgo.Record, error) {
	records := make([]*kgo.Record, len(in.Body.Messages))
	var wrong []error
	for i, raw := range in.Body.Messages {
		value, id, problem := a.check(a.cfg.Region.Rewrite(raw), who)
		if problem != nil {
			location := "body.messages[" + strconv.Itoa(i) + "]"
			if problem.Field != "" {
				location += "." + problem.Field
			}
			wrong = append(wrong, &huma.ErrorDetail{
				Location: location, Message: problem.String(),
			})
			continue
		}
		records[i] = &kgo.Record{Topic: topic, Key: []byte(id), Value: value}
		if in.Traceparent != "" {
			records[i].Headers = []kgo.RecordHeader{
				{Key: "traceparent", Value: []byte(in.Traceparent)},
			}
		}
	}
	if len(wrong) > 0 {
		return nil, huma.Error422UnprocessableEntity(fmt.Sprintf("%d of %d messages are not valid; "+
			"none was accepted", len(wrong), len(records)), wrong[:min(len(wrong), mostProblems)]...)
	}
	return records, nil
}

// check decodes an envelope as the consumer will. If the sender is bound to a tenant, an envelope
// without a tenant gets that one, and one with another is refused. So is one whose id does not
// begin as those of the sender do.
func (a *API) check(
	raw []byte, who *access.Principal,
) (value []byte, id string, p *envelope.Problem) {
	m, p := envelope.Decode(raw, a.cfg.AllowUnknown)
	if p == nil && !strings.HasPrefix(m.ID, who.Prefix) {
		return nil, "", &envelope.Problem{
			Code: envelope.BadField, Field: "id",
			Detail: "your token is for ids that begin with " + who.Prefix,
		}
	}
	if p != nil || who.Tenant == "" || m.Tenant == who.Tenant {
		return raw, m.ID, p
	}
	if m.Tenant != "" {
		return nil, "", &envelope.Problem{
			Code: envelope.BadField, Field: "tenant",
			Detail: "your token is for another tenant",
		}
	}
	value, err := envelope.Edit(raw, envelope.Change{Field: "tenant", Value: who.Tenant})
	if err != nil { // not expected, since it was just decoded
		return nil, "", &envelope.Problem{Code: envelope.BadJSON, Detail: "it cannot be changed"}
	}
	m, p = envelope.Decode(value, a.cfg.AllowUnknown) // the tenant may make it too large
	return value, m.ID, p
}
