package main

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/cmd/dispatcher/internal/status"
)

// column is one column of a list that a command prints, over rows of a struct that is also its
// JSON. A field is named once: by its JSON key, which is also the column's name in CSV and in
// tables.
type column[R any] struct {
	key   string // JSON key of the field that has the value
	name  string // instead of the key
	head  string // header in tables, instead of the name
	only  format // formatTable or formatCSV; empty for both
	style style  // how to write the value if its type does not say
	width int    // most characters in a table; 0 is no bound
	right bool   // aligned right although its cells are texts; numbers always are
	left  bool   // never aligned right

	cell func(row *R) any // instead of the field's value
}

// style is how a value is written.
type style uint8

const (
	byType style = iota
	share        // of a whole: percent in tables
	micros       // money without its currency
	zoned        // a time in the form of sentences
)

// instant is the form of times in tables and sentences.
const instant = "2006-01-02 15:04:05 UTC"

// keys are columns with nothing but a key.
func keys[R any](only format, keys ...string) []column[R] {
	columns := make([]column[R], len(keys))
	for i, key := range keys {
		columns[i] = column[R]{key: key, only: only}
	}
	return columns
}

// list makes a sheet from rows, for a table or for CSV.
func list[R any](as format, rows []R, columns ...column[R]) sheet {
	columns = slices.DeleteFunc(slices.Clone(columns), func(c column[R]) bool {
		return c.only != "" && (c.only == formatCSV) != (as == formatCSV)
	})
	s := sheet{wrap: map[int]int{}}
	fields := make([]reflect.StructField, len(columns))
	for i := range columns {
		c := &columns[i]
		s.header = append(s.header, c.title(as))
		if c.cell == nil {
			fields[i] = fieldOf(reflect.TypeFor[R](), c.key)
		}
		if c.right || c.cell == nil && !c.left && isFigure(fields[i].Type) {
			s.right = append(s.right, i+1)
		}
		if c.width > 0 {
			s.wrap[i+1] = c.width
		}
	}
	for r := range rows {
		row, of := make([]string, len(columns)), reflect.ValueOf(&rows[r]).Elem()
		for i := range columns {
			var value any
			if cell := columns[i].cell; cell != nil {
				value = cell(&rows[r])
			} else {
				value = of.FieldByIndex(fields[i].Index).Interface()
			}
			row[i] = as.cell(columns[i].style, value)
		}
		s.rows = append(s.rows, row)
	}
	return s
}

// title is the column's name in CSV, or its header in a table.
func (c *column[R]) title(as format) string {
	switch {
	case as != formatCSV && c.head != "":
		return c.head
	case c.name != "":
		return c.name
	}
	return c.key
}

// valueOf is the value of a field of the struct that row points to.
func valueOf(row any, key string) any {
	v := reflect.ValueOf(row).Elem()
	return v.FieldByIndex(fieldOf(v.Type(), key).Index).Interface()
}

// fieldOf finds a field by its JSON key. It panics for an unknown key, which is a bug of the
// command.
func fieldOf(t reflect.Type, key string) reflect.StructField {
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name == key {
			return f
		}
	}
	panic(fmt.Sprintf("%s has no field with the JSON key %q", t, key))
}

// isFigure reports whether values of a type are numbers, which are aligned right.
func isFigure(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() >= reflect.Int && t.Kind() <= reflect.Float64 ||
		t == reflect.TypeFor[status.Quantity]()
}

// cell writes one value. An unknown value, nil, is empty.
func (f format) cell(as style, value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	case time.Time:
		return f.time(as, v)
	case fmt.Stringer:
		if p := reflect.ValueOf(value); p.Kind() == reflect.Pointer {
			break // it may be nil
		}
		return v.String()
	}
	v := reflect.ValueOf(value)
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return ""
		}
		return f.cell(as, v.Elem().Interface())
	}
	switch {
	case v.CanInt() && as == micros:
		return report.Money(v.Int())
	case v.CanInt():
		return number(v.Int())
	case v.CanUint():
		return strconv.FormatUint(v.Uint(), 10)
	case v.CanFloat() && as == share:
		return f.share(new(v.Float()))
	case v.CanFloat():
		return f.fraction(new(v.Float()))
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		return string(v.Bytes())
	}
	return fmt.Sprint(value)
}

// time writes a time: as RFC 3339 in CSV; in a table without a zone, which the header names.
func (f format) time(as style, t time.Time) string {
	switch {
	case f == formatCSV:
		return t.Format(time.RFC3339)
	case as == zoned:
		return t.UTC().Format(instant)
	}
	return t.UTC().Format(time.DateTime)
}

// allKeys are columns for all fields of a struct, in their order.
func allKeys[R any]() (columns []column[R]) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[R]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		columns = append(columns, column[R]{key: name})
	}
	return columns
}
