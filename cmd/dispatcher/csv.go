package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// writeCSV is the only way in which commands write CSV.
func writeCSV(out io.Writer, rows ...[]string) error {
	w := csv.NewWriter(out)
	for _, row := range rows {
		safe := make([]string, len(row))
		for i, field := range row {
			safe[i] = inert(field)
		}
		if err := w.Write(safe); err != nil {
			return fmt.Errorf("write CSV: %w", err)
		}
	}
	if w.Flush(); w.Error() != nil {
		return fmt.Errorf("write CSV: %w", w.Error())
	}
	return nil
}

// inert keeps a spreadsheet from taking a field for a formula: what begins one gets a single quote in front of it (OWASP, CSV Injection). A
// plain number stays a number.
func inert(field string) string {
	if field == "" || !strings.ContainsAny(field[:1], "=+-@\t\r") || plainNumber.MatchString(field) {
		return field
	}
	return "'" + field
}

// plainNumber is a number with or without sign, fraction and exponent.
var plainNumber = regexp.MustCompile(`^[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)
