package ledger

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"dispatcher/ledger/ledgertest"
)

// connectFlat connects as the ledger does, to a database of the test.
func connectFlat(t *testing.T) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), ledgertest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	flatArrays(conn.TypeMap())
	return conn
}

// TestArraysArriveAsTheyWere: empty elements do not become NULL or nil, and the elements of earlier
// rows stay unchanged when more rows are read.
func TestArraysArriveAsTheyWere(t *testing.T) {
	t.Parallel()
	conn := connectFlat(t)
	long := []byte(strings.Repeat("x", pieceRoom+1))
	rows, err := conn.Query(t.Context(), `
		select $1::text[], $2::bigint[], b from (values (1, $3::bytea[]), (2, $4), (3, $5)) v(n, b)
		order by n`,
		[]string{"a", "", "ü"}, []int64{1, -1 << 62}, [][]byte{{}, []byte("one")},
		[][]byte{[]byte("two"), long}, [][]byte{})
	if err != nil {
		t.Fatal(err)
	}
	var words texts
	var numbers []int64
	var blobs pieces
	var read [][][]byte
	if _, err := pgx.ForEachRow(rows, []any{&words, &numbers, &blobs}, func() error {
		if diff := cmp.Diff([]string{"a", "", "ü"}, words.list()); diff != "" {
			t.Errorf("texts (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]int64{1, -1 << 62}, numbers); diff != "" {
			t.Errorf("numbers (-want +got):\n%s", diff)
		}
		read = append(read, slices.Clone(blobs.list))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][][]byte{
		{{}, []byte("one")}, {[]byte("two"), long}, {},
	}, read, cmpopts.EquateEmpty()); diff != "" || read[0][0] == nil {
		t.Errorf("octets (-want +got):\n%s", diff)
	}
}

// TestArraysOfEachTypeAreWritten: with what pgx writes itself, because the type of the elements
// differs, and with NULLs.
func TestArraysOfEachTypeAreWritten(t *testing.T) {
	t.Parallel()
	conn := connectFlat(t)
	var got string
	if err := conn.QueryRow(t.Context(), `
		select concat_ws(' ', $1::integer[], $2::smallint[], $3::boolean[], $4::bytea[],
		  $5::bigint[] is null, $6::integer[], $7::smallint[],
		  array(select extract(epoch from u.at) from unnest($8::timestamptz[]) u(at)))`,
		[]int32{-1, 1 << 30}, []int16{-1, 1 << 14}, []bool{true, false}, [][]byte{nil, {}, {255}},
		[]int64(nil), []int64{5}, []int16{},
		[]pgtype.Timestamptz{{}, instant(time.Unix(-1, 5000)), instant(time.Unix(1<<40, 0))},
	).Scan(&got); err != nil {
		t.Fatal(err)
	}
	want := `{-1,1073741824} {-1,16384} {t,f} {NULL,"\\x","\\xff"} t {5} {} ` +
		`{NULL,-0.999995,1099511627776.000000}`
	if got != want {
		t.Errorf("arrays arrived as %s, want %s", got, want)
	}
}

// TestArraysDoNotAllocateTheirElements: a hundred texts cost no more than one.
func TestArraysDoNotAllocateTheirElements(t *testing.T) {
	conn := connectFlat(t)
	allocations := func(n int) float64 {
		texts, blobs := make([]string, n), make([][]byte, n)
		for i := range texts {
			texts[i], blobs[i] = "text", []byte("octets")
		}
		room := make([]byte, 0, 1<<16)
		return testing.AllocsPerRun(100, func() {
			for oid, value := range map[uint32]any{1009: texts, 1001: blobs} { // text[], bytea[]
				if _, err := conn.TypeMap().Encode(oid, 1, value, room); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	if one, many := allocations(1), allocations(100); many > one {
		t.Errorf("%v allocations for a hundred elements, %v for one", many, one)
	}
}
