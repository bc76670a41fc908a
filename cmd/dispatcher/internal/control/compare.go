package control

import (
	"context"
	"strconv"

	udiff "github.com/aymanbagabas/go-udiff"

	"dispatcher/config"
	"dispatcher/ledger"
)

// Comparison is the difference of two routing documents. Scripts rely on its JSON names.
type Comparison struct {
	From    string `json:"from" doc:"a version's number or a file's name"`
	To      string `json:"to"`
	Changes []Line `json:"changes" nullable:"false" doc:"what differs in meaning"`
	Unified string `json:"unified" doc:"the difference of the texts, in the format of patch"`
}

// Side is one of the two documents of a comparison.
type Side struct {
	name, document string
	routing        *config.Routing // with the effects of a version
	// without effects: a file has none, and takes over those in force when applied
	plain *config.Routing
	file  bool
}

// VersionSide is a version as a side.
func VersionSide(v *ledger.RoutingVersion) (*Side, error) {
	doc, routing, err := Stored(v)
	if err != nil {
		return nil, err
	}
	return &Side{
		name: strconv.FormatInt(v.Version, 10), document: v.Document, routing: routing,
		plain: doc.Routing,
	}, nil
}

// FileSide is a file as a side.
func FileSide(doc *config.Document) *Side {
	return &Side{
		name: doc.Name, document: string(doc.Text), routing: doc.Routing, plain: doc.Routing,
		file: true,
	}
}

// Compare compares two versions with their effects. A file has no effects, so it is compared with
// the document of a version alone.
func Compare(from, to *Side) *Comparison {
	before, after := from.routing, to.routing
	if from.file || to.file {
		before, after = from.plain, to.plain
	}
	return &Comparison{
		From: from.name, To: to.name, Changes: VersionDiff(before, after),
		Unified: udiff.Unified(SideLabel(from.name), SideLabel(to.name), from.document,
			to.document),
	}
}

// CompareVersions compares two versions. The error is an Unknown when one of them does not exist.
func CompareVersions(
	ctx context.Context, l *ledger.Ledger, from, to int64,
) (*Comparison, error) {
	var sides [2]*Side
	for i, number := range []int64{from, to} {
		v, err := Version(ctx, l, number)
		if err != nil {
			return nil, err
		}
		if sides[i], err = VersionSide(&v); err != nil {
			return nil, err
		}
	}
	return Compare(sides[0], sides[1]), nil
}

// IsVersion reports whether the name of a side is a version's number and not a file's name.
func IsVersion(name string) bool {
	_, err := strconv.ParseUint(name, 10, 63)
	return err == nil
}

// SideLabel is the name of a side in the unified difference.
func SideLabel(name string) string {
	if IsVersion(name) {
		return "version " + name
	}
	return name
}
