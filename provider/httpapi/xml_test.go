package httpapi_test

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"dispatcher/provider/httpapi"
)

// FuzzXMLBodiesKeepTheirStructure takes any body that the settings accept. With any text it has the
// same elements and attributes as with a harmless text.
func FuzzXMLBodiesKeepTheirStructure(f *testing.F) {
	for _, body := range []string{
		`<a to="{to}">{text}</a>`, `<?xml version="1.0"?><a b='{text}'><c>{to}</c></a>`,
		`<a><![CDATA[{text}]]>{to}</a>`, `<{text}>{to}</{text}>`,
		`<a {text}="{to}"/>`, `<a b={text}>{to}</a>`, `<!--{text}-->{to}`,
		`<a>{{text}}{text}{to}</a>`, `{to}{text}`, `<a xmlns="{text}">{to}</a>`,
		`<a>&{text};{to}</a>`,
	} {
		f.Add(body, `"'><b c="&]]>-->`)
	}
	base := parse(f, describe("form: {}"))
	request := base["request"].(map[string]any)
	delete(request, "form")
	f.Fuzz(func(t *testing.T, body, text string) {
		if !utf8.ValidString(text) || text == "" || body == "" {
			return
		}
		request["xml"] = body
		cfg, err := httpapi.ParseSettings(base, files.Environment(callback))
		if err != nil {
			return
		}
		c := httpapi.New(cfg)
		defer c.Close(t.Context()) //nolint:errcheck // It has sent nothing.
		var structures [2][]string
		for i, content := range []string{"harmless", text} {
			s := submission()
			s.Text = content
			r, err := httpapi.APIOf(c).Compose(s)
			if err != nil {
				t.Fatal(err)
			}
			structures[i] = structure(t, string(r.Body))
		}
		if !slices.Equal(structures[0], structures[1]) {
			t.Errorf("the structure is %q with the text, %q without", structures[1], structures[0])
		}
	})
}

// structure lists everything in a document except texts and values.
func structure(t testing.TB, body string) []string {
	t.Helper()
	var list []string
	for decoder := xml.NewDecoder(strings.NewReader(body)); ; {
		token, err := decoder.RawToken()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
		switch v := token.(type) {
		case xml.StartElement:
			list = append(list, "<"+v.Name.Space+":"+v.Name.Local)
			for _, a := range v.Attr {
				list = append(list, "@"+a.Name.Space+":"+a.Name.Local)
			}
		case xml.EndElement:
			list = append(list, ">"+v.Name.Space+":"+v.Name.Local)
		case xml.ProcInst:
			list = append(list, "?"+v.Target+string(v.Inst))
		case xml.Comment:
			list = append(list, "!"+string(v))
		case xml.Directive:
			list = append(list, "!!"+string(v))
		}
	}
}
