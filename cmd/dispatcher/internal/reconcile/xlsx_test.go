package reconcile

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/xuri/excelize/v2"
	"pgregory.net/rapid"

	"dispatcher/config/tier"
)

// archive returns an XLSX file of these parts.
func archive(t testing.TB, parts map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for name, text := range parts {
		part, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(part, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// rowsOf are the rows of the first sheet, each with its number.
func rowsOf(content []byte) (all []string, err error) {
	rows, closer, err := firstSheet(content)
	if err != nil {
		return nil, err
	}
	defer closer.Close() //nolint:errcheck // It was only read.
	for {
		n, cells, err := rows.next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, fmt.Sprintf("%d: %s", n, strings.Join(cells, "|")))
	}
}

const (
	related = `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">`
	kinds   = `http://schemas.openxmlformats.org/officeDocument/2006/relationships/`
)

// workbook has the parts of a file with two sheets. The second part named is the first one listed.
func workbook(sheet string) map[string]string {
	return map[string]string{
		"_rels/.rels": related + `<Relationship Id="a" Type="` + kinds + `officeDocument"
			Target="/books/b.xml"/></Relationships>`,
		"books/b.xml": `<w:workbook xmlns:w="http://schemas.openxmlformats.org/spreadsheetml/2006/main"
			xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><w:sheets>
			<w:sheet name="x" sheetId="9" r:id="two"/><w:sheet name="y" sheetId="1" r:id="one"/>
			</w:sheets></w:workbook>`,
		"books/_rels/b.xml.rels": related + `<Relationship Id="one" Type="` + kinds + `worksheet"
			Target="none.xml"/><Relationship Id="two" Type="` + kinds + `worksheet"
			Target="../sheets/2.xml"/><Relationship Id="t" Type="` + kinds + `sharedStrings"
			Target="texts.xml"/></Relationships>`,
		"books/texts.xml": `<sst><si><t>first</t></si><si><r><rPr><b/></rPr><t>in </t></r>
			<r><t xml:space="preserve">runs &amp; more</t></r><rPh><t>spoken</t></rPh></si>
			<si><t>a_x000D_b_x005F_x0041_</t></si><si><t/></si></sst>`,
		"sheets/2.xml": sheet,
	}
}

func TestCellsOfEveryKindAreRead(t *testing.T) {
	t.Parallel()
	got, err := rowsOf(archive(t, workbook(`<?xml version="1.0"?><worksheet><cols><col min="1"/></cols>
		<sheetData>
		<row r="2"><c r="A2" t="s"><v>0</v></c><c r="C2" t="s" s="7"><v>1</v></c></row>
		<row><c><v>45000.5</v></c><c t="b"><v>1</v></c><c/><c><v><![CDATA[<&>]]>&#65;&#x42;</v></c><c t="str"><f>A1&amp;"x"</f><v>sum</v></c></row>
		<!-- <row> --><x:row r="7" spans='1>2'/>
		<row r="8"><c r="B8" t="inlineStr"><is><r><t>in</t></r><r><t>line</t></r></is></c>
		<c r="AA8" t="s"><v>2</v></c><c t="s"><v>3</v></c></row>
		</sheetData><row r="9"><c><v>not a row</v></c></row></worksheet>`)))
	want := []string{
		"2: first||in runs & more", "3: 45000.5|1||<&>AB|sum", "7: ",
		"8: |inline" + strings.Repeat("|", 25) + "a\rb_x0041_|",
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v: %s", err, diff)
	}
}

func TestFilesThatAreNoXLSXAreRefused(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(map[string]string){
		`no part "_rels/.rels"`:           func(p map[string]string) { delete(p, "_rels/.rels") },
		`no part "sheets/2.xml"`:          func(p map[string]string) { delete(p, "sheets/2.xml") },
		"it has no sheet":                 func(p map[string]string) { p["books/b.xml"] = "<workbook/>" },
		`no part "books/text`:             func(p map[string]string) { delete(p, "books/texts.xml") },
		"after row 1: this is not XML":    func(p map[string]string) { p["sheets/2.xml"] = "<a><row><" },
		"after row 1: unexpected EOF":     func(p map[string]string) { p["sheets/2.xml"] = "<a><row>" },
		"after row 0: this is not XML in": func(p map[string]string) { p["sheets/2.xml"] = "</>" },
		"row 1: this is not XML":          func(p map[string]string) { p["sheets/2.xml"] = "<row></c>" },
		"unknown entity": func(p map[string]string) {
			p["sheets/2.xml"] = "<row><c><v>&nbsp;</v></c></row>"
		},
		"row 5: a cell refers to a text": func(p map[string]string) {
			p["sheets/2.xml"] = `<row r="5"><c t="s"><v>4</v></c></row>`
		},
		"row 5 has more than": func(p map[string]string) {
			p["sheets/2.xml"] = `<row r="5"><c r="ZZZZ5"><v>4</v></c></row>`
		},
	} {
		parts := workbook("<sheetData/>")
		change(parts)
		if _, err := rowsOf(archive(t, parts)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %q", err, want)
		}
	}
}

// BenchmarkXLSX reads ten thousand rows of six cells.
func BenchmarkXLSX(b *testing.B) {
	book := excelize.NewFile()
	w, err := book.NewStreamWriter("Sheet1")
	if err != nil {
		b.Fatal(err)
	}
	for i := range 10_000 {
		if err := w.SetRow(fmt.Sprintf("A%d", i+1), []any{
			fmt.Sprintf("reference-of-%032d", i), fmt.Sprintf("+4477%08d", i), "2026-11-21 10:00:30", 1,
			0.028, "GBP",
		}); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	var file bytes.Buffer
	if err := book.Write(&file); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		rows, err := rowsOf(file.Bytes())
		if err != nil || len(rows) != 10_000 {
			b.Fatal(len(rows), err)
		}
	}
}

// TestTheScannerReadsWhatXMLEscapes: whatever text a cell has.
func TestTheScannerReadsWhatXMLEscapes(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		var text, tail bytes.Buffer
		want := rapid.StringMatching(`[ -~äß€\n]{0,20}`).Draw(t, "text")
		if err := xml.EscapeText(&text, []byte(want)); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&tail, `<a b='>' c = "1"><v d:c="2">%s</v></a>`, &text)
		x := newXMLScanner(iotest.OneByteReader(&tail))
		for range 3 {
			if err := x.next(true); err != nil {
				t.Fatal(err)
			}
			if c := string(x.attribute("c")); (c == "1") != (string(x.name) == "a") {
				t.Fatalf("element %s has c = %q", x.name, c)
			}
		}
		if string(x.text) != want || string(x.name) != "v" || !x.ends {
			t.Fatalf("got %q before the end of %s, want %q", x.text, x.name, want)
		}
	})
}

func FuzzXLSXSheet(f *testing.F) {
	for _, text := range []string{
		"<row><c r=\"B1\" t=\"s\"><v>1</v></c></row>", "<!--x--><row/></sheetData>", "<a b='&'>&#1;",
		"<![CDATA[", "<c></c>", "</row>", "<c r='A'>",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(_ *testing.T, sheet []byte) {
		rows := &xlsxRows{sheet: newXMLScanner(bytes.NewReader(sheet))}
		for range 100 {
			if _, _, err := rows.next(); err != nil {
				return
			}
		}
	})
}
