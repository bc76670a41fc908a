package reconcile

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// The rows of an XLSX file are read as a stream, as ECMA-376 describes it. A library that unpacks
// the file and decodes each cell by reflection takes several times as long for a million rows.

// xlsxUnpacked bounds what a part of a file may unpack to, in bytes.
const xlsxUnpacked = 8 << 30

// xlsxRows are the rows of the first sheet of an XLSX file. Cells are as they are stored, not as a
// spreadsheet shows them: times are numbers.
type xlsxRows struct {
	sheet  *xmlScanner
	shared sharedTexts
	cells  []string
	row    int
}

func openXLSX(name string, in io.Reader, o Options) (*Reader, error) {
	content, err := io.ReadAll(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	rows, closer, err := firstSheet(content)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read as XLSX (if it is a ZIP archive, give the file in "+
			"it): %w", name, err)
	}
	r, err := newReader(name, rows, o)
	if err != nil {
		_ = closer.Close()
		return nil, err
	}
	r.close = closer.Close
	return r, nil
}

// firstSheet opens the first sheet that the workbook lists.
func firstSheet(content []byte) (*xlsxRows, io.Closer, error) {
	archive, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		return nil, nil, err
	}
	parts := xlsxParts{archive}
	root, err := parts.related("")
	if err != nil {
		return nil, nil, err
	}
	book := root.of("officeDocument")
	var sheets struct {
		Sheets []struct {
			Attributes []xml.Attr `xml:",any,attr"`
		} `xml:"sheets>sheet"`
	}
	if err := parts.decode(book, &sheets); err != nil {
		return nil, nil, err
	}
	if len(sheets.Sheets) == 0 {
		return nil, nil, errors.New("it has no sheet")
	}
	related, err := parts.related(book)
	if err != nil {
		return nil, nil, err
	}
	rows := &xlsxRows{}
	if texts := related.of("sharedStrings"); texts != "" {
		if err := parts.read(texts, rows.shared.load); err != nil {
			return nil, nil, err
		}
	}
	target := ""
	for _, a := range sheets.Sheets[0].Attributes {
		if a.Name.Local == "id" && a.Name.Space != "" { // r:id
			target = related.byID(a.Value)
		}
	}
	sheet, err := parts.open(target)
	if err != nil {
		return nil, nil, err
	}
	rows.sheet = newXMLScanner(io.LimitReader(sheet, xlsxUnpacked))
	return rows, sheet, nil
}

// xlsxParts are the files in the archive.
type xlsxParts struct{ *zip.Reader }

func (p xlsxParts) open(name string) (io.ReadCloser, error) {
	for _, f := range p.File {
		if f.Name == name {
			return f.Open()
		}
	}
	return nil, fmt.Errorf("it has no part %q", name)
}

func (p xlsxParts) read(name string, use func(io.Reader) error) error {
	part, err := p.open(name)
	if err != nil {
		return err
	}
	defer part.Close() //nolint:errcheck // It was only read.
	return use(io.LimitReader(part, xlsxUnpacked))
}

func (p xlsxParts) decode(name string, into any) error {
	return p.read(name, func(in io.Reader) error {
		return xml.NewDecoder(in).Decode(into)
	})
}

// relations are the parts that another part names.
type relations struct {
	folder string
	All    []struct {
		ID     string `xml:"Id,attr"`
		Type   string `xml:"Type,attr"`
		Target string `xml:"Target,attr"`
	} `xml:"Relationship"`
}

// related reads the relations of a part; of the whole file for an empty name.
func (p xlsxParts) related(name string) (r relations, err error) {
	folder, file := path.Split(name)
	r.folder = folder
	return r, p.decode(folder+"_rels/"+file+".rels", &r)
}

// of is the part of a kind; empty for none.
func (r *relations) of(kind string) string {
	for _, one := range r.All {
		if strings.HasSuffix(one.Type, "/"+kind) {
			return r.target(one.Target)
		}
	}
	return ""
}

func (r *relations) byID(id string) string {
	for _, one := range r.All {
		if one.ID == id {
			return r.target(one.Target)
		}
	}
	return ""
}

// target is the name of a part: relative to the part that names it, or from the root.
func (r *relations) target(name string) string {
	if absolute, ok := strings.CutPrefix(name, "/"); ok {
		return absolute
	}
	return path.Join(r.folder, name)
}

// sharedTexts are the texts that cells refer to by number, one after the other.
type sharedTexts struct {
	all  []byte
	ends []int
}

// load reads the texts. A text may have several runs (t in r), and pronunciations (rPh), which do
// not count.
func (s *sharedTexts) load(in io.Reader) error {
	x := newXMLScanner(in)
	inText, spoken := false, false
	for {
		err := x.next(inText && !spoken)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		inText = x.begins && !x.ends && string(x.name) == "t"
		switch string(x.name) {
		case "rPh":
			spoken = !x.ends
		case "si":
			if x.ends {
				s.all = append(s.all, x.text...)
				s.ends, x.text = append(s.ends, len(s.all)), x.text[:0]
			}
		}
	}
}

func (s *sharedTexts) at(index string) (string, error) {
	i, err := strconv.Atoi(index)
	if err != nil || i < 0 || i >= len(s.ends) {
		return "", errors.New("a cell refers to a text that the file lacks")
	}
	from := 0
	if i > 0 {
		from = s.ends[i-1]
	}
	return string(s.all[from:s.ends[i]]), nil
}

// mostColumns is how many columns a sheet may have.
const mostColumns = 16384

// next reads a row. Rows and cells may lack their names ("A1"); they then follow the ones before.
func (x *xlsxRows) next() (int, []string, error) {
	x.cells = x.cells[:0]
	begun, kind, spoken, inText := false, "", false, false
	for {
		if err := x.sheet.next(inText && !spoken); err != nil {
			return 0, nil, fmt.Errorf("after row %d: %w", x.row, unexpected(err))
		}
		name := string(x.sheet.name)
		if x.sheet.begins {
			switch name {
			case "row":
				begun, x.row = true, numberOf(x.sheet.attribute("r"), x.row+1)
			case "c":
				if err := x.begin(); err != nil {
					return 0, nil, err
				}
				kind = string(x.sheet.attribute("t"))
			case "rPh":
				spoken = true
			}
		}
		inText = x.sheet.begins && !x.sheet.ends && (name == "v" || name == "t")
		if !x.sheet.ends {
			continue
		}
		switch name {
		case "rPh":
			spoken = false
		case "c":
			if err := x.set(kind); err != nil {
				return 0, nil, fmt.Errorf("row %d: %w", x.row, err)
			}
		case "row":
			if begun {
				return x.row, x.cells, nil
			}
		case "sheetData":
			return 0, nil, io.EOF
		}
	}
}

// unexpected is an error in place of io.EOF, which stands for the end of the rows.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// begin adds a cell, and empty ones that the file leaves out before it.
func (x *xlsxRows) begin() error {
	at := columnOf(x.sheet.attribute("r"), len(x.cells))
	if at >= mostColumns {
		return fmt.Errorf("row %d has more than %d columns", x.row, mostColumns)
	}
	for len(x.cells) <= at {
		x.cells = append(x.cells, "")
	}
	x.cells, x.sheet.text = x.cells[:at+1], x.sheet.text[:0]
	return nil
}

// set sets the last cell of the row to the text that was read.
func (x *xlsxRows) set(kind string) (err error) {
	if len(x.cells) == 0 {
		return errXML
	}
	text := string(x.sheet.text)
	if kind == "s" && text != "" {
		if text, err = x.shared.at(text); err != nil {
			return err
		}
	}
	if kind == "s" || kind == "inlineStr" || kind == "str" {
		text = unescaped(text)
	}
	x.cells[len(x.cells)-1] = text
	return nil
}

// xlsxEscape stands for a character that XML does not allow, such as _x000D_.
var xlsxEscape = regexp.MustCompile(`_x[0-9A-Fa-f]{4}_`)

func unescaped(text string) string {
	if !strings.Contains(text, "_x") {
		return text
	}
	return xlsxEscape.ReplaceAllStringFunc(text, func(code string) string {
		r, err := strconv.ParseUint(code[2:6], 16, 32)
		if err != nil {
			return code
		}
		return string(rune(r))
	})
}

func numberOf(text []byte, otherwise int) int {
	if n, err := strconv.Atoi(string(text)); err == nil && n > 0 {
		return n
	}
	return otherwise
}

// columnOf is the column of a cell named "AB12", from 0.
func columnOf(name []byte, otherwise int) int {
	column := 0
	for _, c := range name {
		if c < 'A' || c > 'Z' || column > mostColumns {
			break
		}
		column = column*26 + int(c-'A') + 1
	}
	if column == 0 {
		return otherwise
	}
	return column - 1
}
