package api

import (
	"context"
	"errors"
	"time"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/ledger"
)

// DeadRecord is a dead record, without its number and its text. It is exported because huma leaves
// out embedded types that are not.
type DeadRecord struct {
	Seq        int64      `json:"seq"`
	ID         string     `json:"id" doc:"empty when it has none that can be used"`
	Lane       string     `json:"lane"`
	Tenant     string     `json:"tenant"`
	Reason     string     `json:"reason" doc:"one word"`
	Topic      string     `json:"topic"`
	Partition  int32      `json:"partition"`
	Offset     int64      `json:"offset"`
	ReceivedAt time.Time  `json:"received_at"`
	Record     string     `json:"record" doc:"its position: topic/partition/offset"`
	Detail     string     `json:"detail" doc:"what is wrong with it"`
	ReplayedAt *time.Time `json:"replayed_at" doc:"when it was last published again; null for never"`
	ReplayedBy string     `json:"replayed_by"`
	ReplayedAs string     `json:"replayed_as" doc:"the id that it was published under"`
	// ReplayedVia has the words of the audit log.
	ReplayedVia string `json:"replayed_via" doc:"how that came in, as in the audit log; empty where it was not recorded"`
}

func newDeadRecord(d *ledger.DeadRecord) DeadRecord {
	r := DeadRecord{
		Seq: d.Seq, ID: d.ID, Lane: d.Lane, Tenant: d.Tenant, Reason: d.Reason,
		Topic: d.Origin.Topic, Partition: d.Origin.Partition, Offset: d.Origin.Offset,
		ReceivedAt: d.ReceivedAt, Record: d.Origin.String(), Detail: d.Detail,
	}
	if d.Replay != nil {
		r.ReplayedAt, r.ReplayedBy, r.ReplayedAs = &d.Replay.At, d.Replay.Author, d.Replay.As
		r.ReplayedVia = string(d.Replay.Via)
	}
	return r
}

type deadInput struct {
	Page
	Lane   string    `query:"lane" maxLength:"64"`
	Topic  string    `query:"topic" maxLength:"249" doc:"only those that were read from it"`
	Reason string    `query:"reason" maxLength:"64" doc:"such as bad_number"`
	Since  time.Time `query:"since" doc:"only those that were received then or later"`
	Open   bool      `query:"open" doc:"only those that were not replayed"`
}

type deadList struct {
	Items []DeadRecord `json:"items" nullable:"false"`
	Next  string       `json:"next,omitempty" doc:"cursor of the next page; absent on the last one"`
	Total int64        `json:"total" doc:"of all pages"`
}

func (a *API) dead(ctx context.Context, in *deadInput) (*reply[deadList], error) {
	before, err := in.before()
	if err != nil {
		return nil, err
	}
	filter := ledger.DeadFilter{
		Lane: in.Lane, Topic: in.Topic, Reason: in.Reason, Since: in.Since, Open: in.Open,
	}
	total, err := a.cfg.Ledger.DeadRecords.Count(ctx, &filter)
	if err != nil {
		return nil, err
	}
	filter.Below = before
	found, err := a.cfg.Ledger.DeadRecords.List(ctx, &filter, in.Limit+1)
	rows := make([]DeadRecord, len(found))
	for i := range found {
		rows[i] = newDeadRecord(&found[i])
	}
	page := paged(rows, in.Limit, func(r *DeadRecord) int64 { return r.Seq })
	return &reply[deadList]{deadList{page.Items, page.Next, total}}, err
}

// deadShown is one dead record with what to do about it.
type deadShown struct {
	DeadRecord

	Remedy string `json:"remedy" doc:"what to do"`
	Kept   *bool  `json:"payload_kept" doc:"whether the record itself is kept; null if the dispatcher's login may not read it"`
	Bytes  *int   `json:"bytes" doc:"of the record itself; null if it cannot be read"`
}

func (a *API) showDead(ctx context.Context, in *struct {
	Record string `path:"record" maxLength:"512" doc:"its id, or its position as topic/partition/offset with %2F for the slashes"`
},
) (*reply[deadShown], error) {
	d, err := control.FindDead(ctx, a.cfg.Ledger, in.Record)
	if err != nil {
		return nil, err
	}
	shown := deadShown{DeadRecord: newDeadRecord(&d), Remedy: envelope.Code(d.Reason).Remedy()}
	raw, err := a.cfg.Ledger.DeadRecords.Payload(ctx, d.Seq)
	switch {
	case errors.Is(err, ledger.ErrPayloadGone):
		shown.Kept = new(false)
	case errors.Is(err, ledger.ErrPayloadHidden):
	case err != nil:
		return nil, err
	default:
		shown.Kept, shown.Bytes = new(true), new(len(raw))
	}
	return &reply[deadShown]{shown}, nil
}
