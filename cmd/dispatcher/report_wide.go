package main

import (
	"slices"

	"dispatcher/cmd/dispatcher/internal/report"
)

// wideLine is a line of a wide table: what each value of the last dimension carried.
type wideLine struct {
	head    []string
	carried map[string]int64
	sum     int64
}

func (l *wideLine) add(value string, n int64) {
	if l.carried == nil {
		l.carried = map[string]int64{}
	}
	l.carried[value] += n
	l.sum += n
}

// wideTable has a row for each period and the values of all dimensions but the last. The values of
// the last one are columns: what they carried, and its shares. Amounts in several currencies are in
// separate rows.
func wideTable(r *report.Range, in measure) sheet {
	dimensions := slices.DeleteFunc(slices.Clone(r.By[:len(r.By)-1]), func(d report.Dimension) bool {
		return d == report.ByCurrency
	})
	if in == inMoney {
		dimensions = append(dimensions, report.ByCurrency)
	}
	last := r.By[len(r.By)-1]
	var values []string
	var lines, totals []*wideLine
	at := func(lines *[]*wideLine, head []string) *wideLine {
		i := slices.IndexFunc(*lines, func(l *wideLine) bool { return slices.Equal(l.head, head) })
		if i < 0 {
			i = len(*lines)
			*lines = append(*lines, &wideLine{head: head})
		}
		return (*lines)[i]
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		n, _ := in.carried(row)
		head, all := []string{periodName(&row.RangePeriod)}, []string{"all"}
		for _, d := range dimensions {
			cell := format(formatTable).cell(byType, valueOf(row, string(d)))
			head = append(head, cell)
			if d != report.ByCurrency || in != inMoney {
				cell = ""
			}
			all = append(all, cell)
		}
		value := format(formatTable).cell(byType, valueOf(row, string(last)))
		if !slices.Contains(values, value) {
			values = append(values, value)
		}
		if in == inMoney && n == 0 {
			continue // a channel that carried nothing has no currency
		}
		at(&lines, head).add(value, n)
		at(&totals, all).add(value, n)
	}
	s := sheet{header: []string{string(r.Unit)}, wrap: map[int]int{}, tight: true}
	for _, d := range dimensions {
		s.header = append(s.header, string(d))
	}
	fixed := len(s.header)
	s.header = append(append(append(s.header, values...), "all"), values...)
	for at := fixed; at < len(s.header); at++ {
		s.right = append(s.right, at+1)
	}
	for _, l := range append(lines, totals...) {
		row := l.head
		for _, value := range values {
			row = append(row, in.text(l.carried[value]))
		}
		row = append(row, in.text(l.sum))
		for _, value := range values {
			row = append(row, report.Percent(float64(l.carried[value])/float64(max(l.sum, 1))))
		}
		s.rows = append(s.rows, row)
	}
	s.title = string(in) + " carried, and shares of them"
	switch in {
	case inAttempts:
		s.title = "attempts, and shares of them"
	case inMoney:
		s.title = "cost of what was carried, and shares of it"
	case inMessages, inSegments:
	}
	return s
}
