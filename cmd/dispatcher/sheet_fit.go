package main

import (
	"io"
	"os"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"
)

// narrowest is the least width of a column of words; below it, the sheet is not shown as a table.
const narrowest = 8

// paragraphWidth is the width of text where there is room.
const paragraphWidth = 100

// terminalWidth is how many characters a line has; 0 when out is not a terminal or its width is
// unknown.
func terminalWidth(out io.Writer) int {
	f, ok := direct(out).(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// paragraph breaks a text into lines that fit the output.
func paragraph(out io.Writer, words string) string {
	if width := terminalWidth(out); width > 0 {
		return wrapped(words, min(width, paragraphWidth))
	}
	return wrapped(words, paragraphWidth)
}

// fitting is the sheet as a table of that width. It first omits the lines between columns, then
// breaks headers of several words above columns of figures, then narrows columns of words. Figures
// are never broken; the result is false when they leave no room. A width of 0 is no bound.
func (s sheet) fitting(width int) (sheet, bool) {
	if width <= 0 {
		return s, true
	}
	s.wrap = s.naturalWidths()
	if s.width() <= width {
		return s, true
	}
	if s.tight = true; s.width() <= width {
		return s, true
	}
	for _, column := range s.right {
		s.wrap[column] = s.figureWidth(column)
	}
	for s.width() > width {
		widest := s.widestWords()
		if widest == 0 {
			return s, false
		}
		s.wrap[widest]--
	}
	return s, true
}

// figureWidth is the width that a column of figures needs: for its cells, and for the longest word
// of its header.
func (s sheet) figureWidth(column int) (width int) {
	for _, row := range s.rows {
		width = max(width, text.LongestLineLen(row[column-1]))
	}
	for word := range strings.FieldsSeq(s.header[column-1]) {
		width = max(width, text.StringWidthWithoutEscSequences(word))
	}
	return min(width, s.wrap[column])
}

// naturalWidths are the widths of the columns, from 1, under the bounds that the sheet sets.
func (s sheet) naturalWidths() map[int]int {
	widths := make(map[int]int, len(s.header))
	for _, row := range append([][]string{s.header}, s.rows...) {
		for i, cell := range row {
			if most := s.wrap[i+1]; most > 0 {
				cell = wrapLines(cell, most)
			}
			for line := range strings.SplitSeq(cell, "\n") {
				widths[i+1] = max(widths[i+1],
					text.StringWidthWithoutEscSequences(strings.TrimRight(line, " ")))
			}
		}
	}
	return widths
}

// width is the width of the table with its frame: each column has a space on both sides, and a line
// to the next column unless the table is tight.
func (s sheet) width() int {
	n := 2
	for _, w := range s.wrap {
		n += w + 2
	}
	if !s.tight {
		n += len(s.wrap) - 1
	}
	return n
}

// widestWords is the widest column that can be narrowed; 0 when there is none.
func (s sheet) widestWords() (widest int) {
	for column := 1; column <= len(s.header); column++ {
		if !slices.Contains(s.right, column) && s.wrap[column] > narrowest &&
			s.wrap[column] > s.wrap[widest] {
			widest = column
		}
	}
	return widest
}

// records writes each row separately, one line for each column with content, for terminals that are
// too narrow for the table.
func (s sheet) records(width int) string {
	var out strings.Builder
	if s.title != "" {
		out.WriteString(text.WrapSoft(s.title, width) + "\n")
	}
	names, longest := make([]string, len(s.header)), 0
	for i, name := range s.header {
		names[i] = strings.Join(strings.Fields(name), " ")
		longest = max(longest, text.StringWidthWithoutEscSequences(names[i]))
	}
	longest = min(longest, max(width/3, 1))
	for _, row := range s.rows {
		out.WriteString(strings.Repeat("─", width) + "\n")
		for i, cell := range row {
			if cell != "" {
				writeField(&out, names[i], cell, longest, width)
			}
		}
	}
	out.WriteString(strings.Repeat("─", width) + "\n")
	return out.String()
}

// writeField writes one cell next to its name; both are broken if too long.
func writeField(out *strings.Builder, name, cell string, longest, width int) {
	left := strings.Split(text.WrapSoft(name, longest), "\n")
	right := strings.Split(wrapLines(cell, max(width-longest-2, 1)), "\n")
	for i := range max(len(left), len(right)) {
		line := text.Pad("", longest+2, ' ')
		if i < len(left) {
			line = text.Pad(left[i], longest+2, ' ')
		}
		if i < len(right) {
			line += right[i]
		}
		out.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}
