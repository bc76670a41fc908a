package ledger

import (
	"encoding/binary"
	"reflect"
	"slices"

	"github.com/jackc/pgx/v5/pgtype"
)

// flatArrays makes pgx write slices of the usual types as arrays in one piece. By itself it puts
// each element into an interface, which allocates it, finds the elements of a [][]byte by
// reflection, and lets the message grow element by element, which copies it again and again.
func flatArrays(types *pgtype.Map) {
	for _, name := range []string{
		"_text", "_bytea", "_int8", "_int4", "_int2", "_bool", "_timestamptz",
	} {
		t, _ := types.TypeForName(name)
		codec := flatCodec{t.Codec.(*pgtype.ArrayCodec)}
		types.RegisterType(&pgtype.Type{Name: name, OID: t.OID, Codec: codec})
	}
}

// flatCodec is the codec of an array type.
type flatCodec struct{ *pgtype.ArrayCodec }

// PlanEncode implements pgtype.Codec. What is no slice of the type of the elements is left to pgx.
func (c flatCodec) PlanEncode(
	types *pgtype.Map, oid uint32, format int16, value any,
) pgtype.EncodePlan {
	if plan, ok := flatPlans[reflect.TypeOf(value)]; ok &&
		plan.element() == c.ElementType.OID && format == pgtype.BinaryFormatCode {
		return plan
	}
	return c.ArrayCodec.PlanEncode(types, oid, format, value)
}

// flatPlans are the plans by the type of the slice.
var flatPlans = map[reflect.Type]interface {
	pgtype.EncodePlan
	element() uint32
}{
	reflect.TypeFor[[]string](): flatPlan[string]{
		pgtype.TextOID, func(s string) int { return len(s) },
		func(to []byte, s string) []byte { return append(to, s...) },
	},
	reflect.TypeFor[[][]byte](): flatPlan[[]byte]{
		pgtype.ByteaOID, func(b []byte) int {
			if b == nil {
				return -1
			}
			return len(b)
		},
		func(to, b []byte) []byte { return append(to, b...) },
	},
	reflect.TypeFor[[]int64](): flatPlan[int64]{
		pgtype.Int8OID, func(int64) int { return 8 },
		func(to []byte, n int64) []byte { return binary.BigEndian.AppendUint64(to, uint64(n)) },
	},
	reflect.TypeFor[[]int32](): flatPlan[int32]{
		pgtype.Int4OID, func(int32) int { return 4 },
		func(to []byte, n int32) []byte { return binary.BigEndian.AppendUint32(to, uint32(n)) },
	},
	reflect.TypeFor[[]int16](): flatPlan[int16]{
		pgtype.Int2OID, func(int16) int { return 2 },
		func(to []byte, n int16) []byte { return binary.BigEndian.AppendUint16(to, uint16(n)) },
	},
	reflect.TypeFor[[]pgtype.Timestamptz](): flatPlan[pgtype.Timestamptz]{
		pgtype.TimestamptzOID, func(at pgtype.Timestamptz) int {
			if !at.Valid {
				return -1
			}
			return 8
		},
		func(to []byte, at pgtype.Timestamptz) []byte {
			return binary.BigEndian.AppendUint64(to, uint64(sinceEpoch(at.Time)))
		},
	},
	reflect.TypeFor[[]bool](): flatPlan[bool]{
		pgtype.BoolOID, func(bool) int { return 1 },
		func(to []byte, is bool) []byte {
			if is {
				return append(to, 1)
			}
			return append(to, 0)
		},
	},
}

// flatPlan writes a []T. size is that of an element in bytes, -1 for NULL.
type flatPlan[T any] struct {
	oid    uint32 // of the elements
	size   func(T) int
	append func(to []byte, element T) []byte
}

func (p flatPlan[T]) element() uint32 { return p.oid }

// Encode implements pgtype.EncodePlan. The format is that of array_send in PostgreSQL: the number
// of dimensions, no flags, the type of the elements, the length and the first index; then each
// element after its size. A nil slice is NULL.
func (p flatPlan[T]) Encode(value any, buf []byte) ([]byte, error) {
	list := value.([]T)
	if list == nil {
		return nil, nil
	}
	room := 20 + 4*len(list)
	for _, element := range list {
		room += max(p.size(element), 0)
	}
	buf = slices.Grow(buf, room)
	for _, n := range []uint32{1, 0, p.oid, uint32(len(list)), 1} {
		buf = binary.BigEndian.AppendUint32(buf, n)
	}
	for _, element := range list {
		size := p.size(element)
		if buf = binary.BigEndian.AppendUint32(buf, uint32(size)); size >= 0 {
			buf = p.append(buf, element)
		}
	}
	return buf, nil
}

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
	if p.room == nil || cap(p.room)-len(p.room) < len(element) {
		p.room = make([]byte, 0, max(pieceRoom, len(element)))
	}
	begin := len(p.room)
	p.room = append(p.room, element...)
	p.list = append(p.list, slices.Clip(p.room[begin:]))
	return nil
}

// texts reads an array of text. The elements of a row share one string.
type texts struct {
	room []byte
	ends []int // of each element in room
}

var (
	_ pgtype.ArraySetter  = (*texts)(nil)
	_ pgtype.BytesScanner = (*texts)(nil)
)

// SetDimensions implements pgtype.ArraySetter. It begins a row.
func (t *texts) SetDimensions([]pgtype.ArrayDimension) error {
	t.room, t.ends = t.room[:0], t.ends[:0]
	return nil
}

// ScanIndex implements pgtype.ArraySetter. Elements are read in order.
func (t *texts) ScanIndex(int) any { return t }

// ScanIndexType implements pgtype.ArraySetter.
func (t *texts) ScanIndexType() any { return t }

// ScanBytes implements pgtype.BytesScanner.
func (t *texts) ScanBytes(element []byte) error {
	t.room = append(t.room, element...)
	t.ends = append(t.ends, len(t.room))
	return nil
}

// list are the elements of the latest row.
func (t *texts) list() []string {
	all, begin, list := string(t.room), 0, make([]string, len(t.ends))
	for i, end := range t.ends {
		list[i], begin = all[begin:end], end
	}
	return list
}

// repeated reads a text that most rows repeat. It allocates one that differs from the row before.
type repeated[S ~string] struct{ to *S }

// ScanBytes implements pgtype.BytesScanner.
func (r *repeated[S]) ScanBytes(text []byte) error {
	if string(*r.to) != string(text) {
		*r.to = S(text)
	}
	return nil
}

// repeats reads into a text, see repeated.
func repeats[S ~string](to *S) *repeated[S] { return &repeated[S]{to} }
