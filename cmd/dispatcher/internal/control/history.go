package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"dispatcher/config"
	"dispatcher/ledger"
)

// HistoryLine is one version without its document.
type HistoryLine struct {
	Version   int64      `json:"version"`
	Base      int64      `json:"base"`
	CreatedAt time.Time  `json:"created_at"`
	Author    string     `json:"author"`
	Login     string     `json:"login" doc:"login of the database; empty where it was not recorded"`
	Via       ledger.Via `json:"via" doc:"how it came in: command (the author is only claimed), api or console (the author was authenticated), or dispatcher for what a process did by itself; empty where it was not recorded"`
	Reason    string     `json:"reason"`
	// EffectsOnly is whether the version only changed effective weights.
	EffectsOnly bool   `json:"effects_only"`
	Changes     []Line `json:"changes"`
}

// StoredRouting parses the document of a version, and returns its routing with the effects.
func StoredRouting(v *ledger.RoutingVersion) (*config.Routing, error) {
	_, routing, err := Stored(v)
	return routing, err
}

// Stored parses the document of a version, and returns it and its routing with the effects.
func Stored(v *ledger.RoutingVersion) (*config.Document, *config.Routing, error) {
	doc, routing, err := config.ParseVersion(v.Version, v.Document, v.Effects)
	if err != nil {
		return nil, nil, fmt.Errorf("%w (was it applied by a newer dispatcher?)", err)
	}
	return doc, routing, nil
}

// Version reads one version. The error is an Unknown when it does not exist.
func Version(ctx context.Context, l *ledger.Ledger, version int64) (ledger.RoutingVersion, error) {
	v, err := l.Routing.Version(ctx, version)
	if errors.Is(err, ledger.ErrNoRouting) {
		return v, unknownf(`there is no routing version %d: "dispatcher routing history" lists `+
			`them`, version)
	}
	return v, err
}

// InForce reads the current version, and its routing with the effects. The error is ErrNoRouting
// when there is none.
func InForce(
	ctx context.Context, l *ledger.Ledger,
) (ledger.RoutingVersion, *config.Routing, error) {
	v, err := l.Routing.Current(ctx)
	if errors.Is(err, ledger.ErrNoRouting) {
		return v, nil, ErrNoRouting
	}
	if err != nil {
		return v, nil, err
	}
	doc, err := StoredRouting(&v)
	return v, doc, err
}

// usableAgain checks an old document by today's rules, which may be stricter than those that it was
// applied under. For example, channels of a least-cost route once needed no prices, and a channel
// without a price would count as the cheapest. Reports and the audit read old documents by
// ParseApplied.
func usableAgain(version int64, text []byte) (*config.Document, error) {
	doc, err := config.ParseDocument(config.VersionName(version), text)
	if err != nil {
		return nil, fmt.Errorf("%w; version %d cannot be applied again as it is: write it to a "+
			"file with \"dispatcher routing show --version %d > routing.yaml\", correct that, "+
			"and apply it with \"dispatcher routing apply routing.yaml\"", err, version, version)
	}
	return doc, nil
}

// Rollback applies the document of an old version as a new one.
func (d *Draft) Rollback(ctx context.Context, version int64) (*Changed, error) {
	old, err := Version(ctx, d.ledger, version)
	if err != nil {
		return nil, err
	}
	return d.Make(ctx, func() (*config.Document, error) {
		return usableAgain(version, []byte(old.Document))
	})
}

// History compares each of the newest versions with the one before it. It reads versions one by
// one, because a document may be large and health weighting makes many versions.
func History(ctx context.Context, l *ledger.Ledger, limit int) ([]HistoryLine, error) {
	return HistoryBefore(ctx, l, 0, limit)
}

// HistoryBefore is History of the versions below a number; 0 starts at the newest.
func HistoryBefore(
	ctx context.Context, l *ledger.Ledger, below int64, limit int,
) ([]HistoryLine, error) {
	if below == 1 {
		return []HistoryLine{}, nil
	}
	read := l.Routing.Current
	if below > 0 {
		read = func(ctx context.Context) (ledger.RoutingVersion, error) {
			return l.Routing.Version(ctx, below-1)
		}
	}
	v, err := read(ctx)
	if errors.Is(err, ledger.ErrNoRouting) {
		return []HistoryLine{}, nil
	}
	if err != nil {
		return nil, err
	}
	lines := []HistoryLine{}
	after, err := StoredRouting(&v)
	for err == nil {
		lines = append(lines, HistoryLine{
			Version: v.Version, Base: v.Base, CreatedAt: v.CreatedAt, Author: v.Author,
			Login: v.Login, Via: v.Via, Reason: v.Reason, EffectsOnly: v.Base != v.Version,
			Changes: []Line{},
		})
		if v.Version == 1 {
			break
		}
		if v, err = Version(ctx, l, v.Version-1); err != nil {
			break
		}
		var before *config.Routing
		if before, err = StoredRouting(&v); err != nil {
			break
		}
		lines[len(lines)-1].Changes = VersionDiff(before, after)
		if len(lines) == limit {
			break
		}
		after = before
	}
	return lines, err
}

// VersionDiff compares two versions. Where only one of them has an effective weight, the line shows
// the configured weight for the other, because draws use that one then.
func VersionDiff(before, after *config.Routing) []Line {
	lines := Lines(config.Diff(before, after))
	configured := func(doc *config.Routing) map[string]string {
		weights := map[string]string{}
		for i := range doc.Routes {
			for _, w := range doc.Routes[i].Weights {
				path := "routes." + doc.Routes[i].Name + ".effective_weights." + w.Channel
				weights[path] = w.Configured.String()
			}
		}
		return weights
	}
	old, now := configured(before), configured(after)
	for i := range lines {
		if lines[i].From == nil {
			lines[i].From = OrNil(old[lines[i].Path])
		}
		if lines[i].To == nil {
			lines[i].To = OrNil(now[lines[i].Path])
		}
	}
	return lines
}

// Summary says in one line what a version changed.
func (h *HistoryLine) Summary() string {
	words := Summary(h.Changes)
	switch {
	case h.EffectsOnly:
		return fmt.Sprintf("effect on version %d: %s", h.Base, words)
	case words == "" && h.Version == 1:
		return "the first document"
	case words == "":
		return "only comments or the layout"
	}
	return words
}
