package api

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"dispatcher/cmd/dispatcher/internal/access"
	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/ledger"
)

// reply is a response with a body.
type reply[T any] struct{ Body T }

// tagged is a response with the routing version that it is based on as its ETag.
type tagged[T any] struct {
	ETag string `header:"ETag" doc:"the routing version, for If-Match of a change"`
	Body T
}

// operation describes an operation of the API.
type operation struct {
	method, path, id, tag, summary string
	action                         access.Action
	maxBody                        int64
}

// everyError lists the error statuses that any operation may answer with.
var everyError = []int{
	http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound,
	http.StatusRequestTimeout, http.StatusConflict, http.StatusPreconditionFailed,
	http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType,
	http.StatusUnprocessableEntity, http.StatusTooManyRequests, http.StatusInternalServerError,
	http.StatusServiceUnavailable, http.StatusPreconditionRequired,
}

func (o *operation) describe() huma.Operation {
	return huma.Operation{
		OperationID: o.id, Method: o.method, Path: Base + o.path, Summary: o.summary,
		Tags: []string{o.tag}, Errors: everyError, MaxBodyBytes: o.maxBody,
		BodyReadTimeout: -1, // receive has read the body: a deadline now would end the request
		Metadata:        map[string]any{actionKey: o.action},
	}
}

// serve registers an operation. The functions in more complete its description.
func serve[I, O any](
	a *API, o operation, do func(context.Context, *I) (*O, error), more ...func(*huma.Operation),
) {
	described := o.describe()
	for _, complete := range more {
		complete(&described)
	}
	huma.Register(a.huma, described, func(ctx context.Context, in *I) (*O, error) {
		out, err := do(ctx, in)
		if err != nil {
			return nil, a.problem(ctx, noteEffect(ctx, err))
		}
		return out, nil
	})
}

// noEmptyValues refuses a query such as ?limit= where the parameter is a number, a boolean or a
// time. Huma takes an empty value for an absent parameter, so it would answer another question.
func (a *API) noEmptyValues(ctx huma.Context, next func(huma.Context)) {
	u := ctx.URL()
	query := u.Query()
	for _, p := range ctx.Operation().Parameters {
		if p.In != "query" || p.Schema.Type == huma.TypeArray ||
			p.Schema.Type == huma.TypeString && p.Schema.Format == "" {
			continue
		}
		if query.Has(p.Name) && query.Get(p.Name) == "" {
			a.deny(ctx, http.StatusUnprocessableEntity, p.Name+" is empty: give it a value, or "+
				"leave it out")
			return
		}
	}
	next(ctx)
}

// Change has the fields of the body of every change.
type Change struct {
	Reason string `json:"reason,omitempty" maxLength:"1000" doc:"why; the history shows it. Required unless dry_run"`
	DryRun bool   `json:"dry_run,omitempty" doc:"say what would change, and change nothing"`
}

// Match has the headers of a change of the routing.
type Match struct {
	IfMatch        string `header:"If-Match" doc:"ETag that the change was made from; 412 when another version was applied since"`
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"128" doc:"of your choice, for a day: a request that comes again with it gets the first answer"`
}

// by says who makes the change, and why. The author is always the authenticated caller.
func by(ctx context.Context, c *Change, m *Match) (control.By, error) {
	made := control.By{
		Author: caller(ctx).Name, Via: ledger.ViaAPI, Reason: strings.TrimSpace(c.Reason),
		DryRun: c.DryRun,
	}
	if made.Reason == "" && !made.DryRun {
		return made, huma.Error422UnprocessableEntity("reason is missing: write why",
			&huma.ErrorDetail{Location: "body.reason", Message: "is missing"})
	}
	if m == nil || m.IfMatch == "" || m.IfMatch == "*" {
		return made, nil
	}
	version, err := strconv.ParseInt(strings.Trim(strings.TrimPrefix(m.IfMatch, "W/"), `"`), 10, 64)
	if err != nil || version < 0 {
		return made, huma.Error412PreconditionFailed("If-Match is not an ETag of the routing: " +
			"send the ETag of GET /routing with its quotes, such as \"7\", or *")
	}
	made.Expect = &version
	return made, nil
}

func etag(version int64) string { return `"` + strconv.FormatInt(version, 10) + `"` }

// Page asks for a part of a list.
type Page struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"50"`
	Cursor string `query:"cursor" maxLength:"64" pattern:"^[A-Za-z0-9_-]*$" doc:"next of the page before; without it the first page"`
}

// before is the number of the last row of the previous page; 0 for the first page.
func (p *Page) before() (int64, error) { return lastRow(inQuery, p.Cursor) }

// lastRow reads from a cursor the number of the previous page's last row; 0 without a cursor. place
// is the part of the request that errors name.
func lastRow(place, cursor string) (int64, error) {
	if cursor == "" {
		return 0, nil
	}
	n, err := control.ReadCursor(cursor, 1)
	if err != nil {
		return 0, unknownCursor(place)
	}
	return n[0], nil
}

// The places of a cursor in a request, for errors.
const (
	inQuery = "query.cursor"
	inBody  = "body.cursor"
)

func unknownCursor(place string) error {
	return huma.Error422UnprocessableEntity("cursor is not from an earlier page: send next of "+
		"the page before, or leave it out for the first page",
		&huma.ErrorDetail{Location: place, Message: "is not known"})
}

// list is a page of rows.
type list[T any] struct {
	Items []T    `json:"items" nullable:"false"`
	Next  string `json:"next,omitempty" doc:"cursor of the next page; absent on the last one"`
}

// paged makes a page of rows. The caller reads limit + 1 rows, so that paged knows whether there is
// a next page.
func paged[T any](rows []T, limit int, number func(*T) int64) list[T] {
	if rows == nil {
		rows = []T{}
	}
	l := list[T]{Items: rows}
	if len(rows) > limit {
		l.Items = rows[:limit]
		l.Next = control.Cursor(number(&rows[limit-1]))
	}
	return l
}
