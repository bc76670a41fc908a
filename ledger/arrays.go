package ledger

import (
	"slices"

	"github.com/jackc/pgx/v5/pgtype"
)

// array is a parameter that is an array without NULLs. pgx puts each element of a []string, an
// []int64 or a [][]byte into an interface, which allocates it, and finds the elements of a [][]byte
// by reflection. An array hands out pointers to its elements, of types that pgx asks for their
// values.
type array[T any] []T

var _ pgtype.ArrayGetter = array[text]{}

// Dimensions implements pgtype.ArrayGetter.
func (a array[T]) Dimensions() []pgtype.ArrayDimension {
	if a == nil {
		return nil
	}
	return []pgtype.ArrayDimension{{Length: int32(len(a)), LowerBound: 1}} //nolint:gosec // A batch.
}

// Index implements pgtype.ArrayGetter.
func (a array[T]) Index(i int) any { return &a[i] }

// IndexType implements pgtype.ArrayGetter.
func (a array[T]) IndexType() any { return new(T) }

// text, number and octets are elements of arrays.
type (
	text   string
	number int64
	octets []byte
)

// TextValue implements pgtype.TextValuer.
func (t *text) TextValue() (pgtype.Text, error) {
	return pgtype.Text{String: string(*t), Valid: true}, nil
}

// Int64Value implements pgtype.Int64Valuer.
func (n *number) Int64Value() (pgtype.Int8, error) {
	return pgtype.Int8{Int64: int64(*n), Valid: true}, nil
}

// BytesValue implements pgtype.BytesValuer.
func (o *octets) BytesValue() ([]byte, error) { return *o, nil }

// pieces reads an array of bytea. It copies the elements of all rows into shared blocks of at least
// pieceRoom bytes.
type pieces struct {
	list [][]byte // of the latest row
	room []byte
}

const pieceRoom = 64 << 10

var (
	_ pgtype.ArraySetter  = (*pieces)(nil)
	_ pgtype.BytesScanner = (*pieces)(nil)
)

// SetDimensions implements pgtype.ArraySetter. It begins a row.
func (p *pieces) SetDimensions([]pgtype.ArrayDimension) error {
	p.list = p.list[:0]
	return nil
}

// ScanIndex implements pgtype.ArraySetter. Elements are read in order.
func (p *pieces) ScanIndex(int) any { return p }

// ScanIndexType implements pgtype.ArraySetter.
func (p *pieces) ScanIndexType() any { return p }

// ScanBytes implements pgtype.BytesScanner. It copies an element.
func (p *pieces) ScanBytes(element []byte) error {
	if cap(p.room)-len(p.room) < len(element) {
		p.room = make([]byte, 0, max(pieceRoom, len(element)))
	}
	begin := len(p.room)
	p.room = append(p.room, element...)
	p.list = append(p.list, slices.Clip(p.room[begin:]))
	return nil
}
