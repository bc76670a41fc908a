package api

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/config"
	"dispatcher/ledger"
)

// routingVersion is one version with its document.
type routingVersion struct {
	Version   int64           `json:"version"`
	Base      int64           `json:"base" doc:"the version that brought the document"`
	Author    string          `json:"author"`
	Reason    string          `json:"reason"`
	CreatedAt time.Time       `json:"created_at"`
	Effects   json.RawMessage `json:"effects" doc:"null when the weights are those of the document"`
	Document  string          `json:"document" doc:"YAML"`
	Login     string          `json:"login" doc:"login of the database; empty where it was not recorded"`
	Via       ledger.Via      `json:"via" doc:"how it came in, as in the audit log"`
}

func shown(v *ledger.RoutingVersion) *tagged[routingVersion] {
	return &tagged[routingVersion]{etag(v.Version), routingVersion{
		v.Version, v.Base, v.Author, v.Reason, v.CreatedAt, v.Effects, v.Document, v.Login, v.Via,
	}}
}

func (a *API) routing(ctx context.Context, _ *struct{}) (*tagged[routingVersion], error) {
	v, _, err := control.InForce(ctx, a.cfg.Ledger)
	if err != nil {
		return nil, err
	}
	return shown(&v), nil
}

func (a *API) version(ctx context.Context, in *struct {
	Version int64 `path:"version" minimum:"1"`
},
) (*tagged[routingVersion], error) {
	v, err := control.Version(ctx, a.cfg.Ledger, in.Version)
	if err != nil {
		return nil, err
	}
	return shown(&v), nil
}

func (a *API) compare(ctx context.Context, in *struct {
	From int64 `path:"from" minimum:"1"`
	To   int64 `path:"to" minimum:"1"`
},
) (*reply[*control.Comparison], error) {
	difference, err := control.CompareVersions(ctx, a.cfg.Ledger, in.From, in.To)
	return &reply[*control.Comparison]{difference}, err
}

func (a *API) versions(
	ctx context.Context, in *Page,
) (*reply[list[control.HistoryLine]], error) {
	before, err := in.before()
	if err != nil {
		return nil, err
	}
	lines, err := control.HistoryBefore(ctx, a.cfg.Ledger, before, in.Limit+1)
	return &reply[list[control.HistoryLine]]{paged(lines, in.Limit,
		func(l *control.HistoryLine) int64 { return l.Version })}, err
}

// Document is a routing document in a request.
type Document struct {
	Document string `json:"document" minLength:"1" maxLength:"2097152" doc:"YAML"`
}

func (d *Document) parse() (*config.Document, error) {
	doc, err := config.ParseDocument("document", []byte(d.Document))
	if err != nil {
		return nil, &control.Refused{Err: err}
	}
	return doc, nil
}

type applyInput struct {
	Match
	Body struct {
		Document
		Change
		Force bool `json:"force,omitempty" doc:"also apply what differs only in comments or layout"`
	}
}

func (a *API) apply(ctx context.Context, in *applyInput) (*tagged[*control.Changed], error) {
	who, err := by(ctx, &in.Body.Change, &in.Match)
	if err != nil {
		return nil, err
	}
	if in.IfMatch == "" && !who.DryRun { // a whole document would take back what others changed
		return nil, huma.NewError(http.StatusPreconditionRequired, "If-Match is missing: send the "+
			"ETag of the routing that the document was made from, or * for whatever is in force")
	}
	who.Force = in.Body.Force
	return a.edit(ctx, who, func(d *control.Draft) (*control.Changed, error) {
		return d.Make(ctx, in.Body.parse)
	})
}

// edit makes a change of the routing. It does not check for files of secrets, because this instance
// need not have those that other instances use.
func (a *API) edit(
	ctx context.Context, who control.By, do func(*control.Draft) (*control.Changed, error),
) (*tagged[*control.Changed], error) {
	draft, err := control.Begin(ctx, a.cfg.Ledger, nil, who)
	if err != nil {
		return nil, nothingDone(err)
	}
	done, err := do(draft)
	if err != nil {
		return nil, oneWrite(err)
	}
	return &tagged[*control.Changed]{etag(done.Version), done}, nil
}

type validated struct {
	Valid    bool     `json:"valid"`
	Problems []string `json:"problems" nullable:"false"`
}

func (a *API) validate(_ context.Context, in *struct{ Body Document }) (*reply[validated], error) {
	doc, err := in.Body.parse()
	if err == nil {
		err = control.Check(doc)
	}
	if err != nil {
		out := validated{}
		for _, problem := range control.Problems(err) {
			out.Problems = append(out.Problems, problem.Error())
		}
		return &reply[validated]{out}, nil
	}
	return &reply[validated]{validated{Valid: true, Problems: []string{}}}, nil
}

// previewed says what applying a document would change.
type previewed struct {
	*control.Changed
	Routes []*report.RoutePreview `json:"routes" nullable:"false"`
}

func (a *API) preview(ctx context.Context, in *struct{ Body Document }) (*reply[previewed], error) {
	done, err := a.edit(ctx, control.By{Author: caller(ctx).Name, DryRun: true},
		func(d *control.Draft) (*control.Changed, error) { return d.Make(ctx, in.Body.parse) })
	if err != nil {
		return nil, err
	}
	out := previewed{Changed: done.Body, Routes: []*report.RoutePreview{}}
	for i := range done.Body.InForce.Routes {
		route, err := report.PreviewRoute(&done.Body.InForce.Routes[i])
		if err != nil {
			return nil, err
		}
		out.Routes = append(out.Routes, route)
	}
	return &reply[previewed]{out}, nil
}

type rollbackInput struct {
	Match
	Body struct {
		Change
		Version int64 `json:"version" minimum:"1"`
	}
}

func (a *API) rollback(ctx context.Context, in *rollbackInput) (*tagged[*control.Changed], error) {
	who, err := by(ctx, &in.Body.Change, &in.Match)
	if err != nil {
		return nil, err
	}
	return a.edit(ctx, who, func(d *control.Draft) (*control.Changed, error) {
		return d.Rollback(ctx, in.Body.Version)
	})
}
