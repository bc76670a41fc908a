package pages

import (
	"bytes"
	"crypto/rand"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"math"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"dispatcher/cmd/dispatcher/internal/access"
	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/ledger"
)

//go:embed templates
var templateFiles embed.FS

// templates are the parsed pages by name, each with the layout.
type templates map[string]*template.Template

// parsed are the templates of all servers of the process.
var parsed = sync.OnceValues(parseTemplates)

func parseTemplates() (templates, error) {
	layout, err := template.New("layout.html").Funcs(functions).ParseFS(templateFiles,
		"templates/layout.html", "templates/parts.html")
	if err != nil {
		return nil, err
	}
	names, err := fs.Glob(templateFiles, "templates/*.html")
	if err != nil {
		return nil, err
	}
	out := templates{}
	for _, name := range names {
		base := path.Base(name)
		if base == "layout.html" || base == "parts.html" {
			continue
		}
		page, err := template.Must(layout.Clone()).ParseFS(templateFiles, name)
		if err != nil {
			return nil, err
		}
		out[strings.TrimSuffix(base, ".html")] = page
	}
	return out, nil
}

// shown is the data of every template.
type shown struct {
	Title  string
	Tab    string            // the page of the navigation that it belongs to
	Who    *access.Principal // nil on the login form
	CSRF   string
	Notice string // of what was done; empty for none
	Live   string // the stream that keeps the page up to date; empty for none
	V      any    // the data of the page itself
}

// May reports whether the user's role allows an action, given by its name.
func (s *shown) May(action string) bool {
	for _, a := range access.Actions() {
		if a.String() == action {
			return s.Who != nil && s.Who.Role.May(a)
		}
	}
	return false
}

// tabs maps pages to the tab of the navigation that they belong to. Others are tabs themselves.
var tabs = map[string]string{
	"route": "routes", "versions": "routes", "version": "routes", "edit": "routes",
	"channel": "channels", "message": "messages", "optouts": "messages",
	"pauses": "overview",
}

func (s *Server) shown(r *request, page, title string, value any) *shown {
	p := &shown{Title: title, Tab: page, V: value}
	if tab := tabs[page]; tab != "" {
		p.Tab = tab
	}
	if r.session != nil {
		p.Who, p.CSRF = &r.who, r.session.CSRF
		if _, live := s.livePages()[page]; live {
			p.Live = "/live/" + page
		}
		p.Notice = r.URL.Query().Get("done")
		if p.Notice != "" && !s.isNotice(r, p.Notice) {
			p.Notice = ""
		}
	}
	return p
}

// render writes a page. It renders into memory first, so that a failing template gives an error
// page and not half a page.
func (s *Server) render(
	w http.ResponseWriter, r *request, status int, page, title string, value any,
) {
	var out bytes.Buffer
	if err := s.pages[page].Execute(&out, s.shown(r, page, title, value)); err != nil {
		s.cfg.Log.Error().Err(err).Str("page", page).Msg("a page of the console cannot be made")
		http.Error(w, "this page cannot be made: see the log", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(out.Bytes()) // fails only if the browser has disconnected
}

// show answers with a page.
func (s *Server) show(w http.ResponseWriter, r *request, page, title string, value any) error {
	s.render(w, r, http.StatusOK, page, title, value)
	return nil
}

// part renders one template of a page, without the layout.
func (s *Server) part(r *request, page, name string, value any) ([]byte, error) {
	var out bytes.Buffer
	err := s.pages[page].ExecuteTemplate(&out, name, s.shown(r, page, "", value))
	return out.Bytes(), err
}

// fail answers with an error page that says why.
func (s *Server) fail(w http.ResponseWriter, r *request, status int, why string) {
	s.render(w, r, status, "problem", http.StatusText(status), why)
}

// notFound is the error of a page that does not exist; what is its text.
type notFound struct{ what string }

func (n notFound) Error() string { return n.what }

// failed answers with an error. It shows the text only if the user can do something about it; any
// other error goes to the log.
func (s *Server) failed(w http.ResponseWriter, r *request, err error) {
	if missing, ok := errors.AsType[notFound](err); ok {
		s.fail(w, r, http.StatusNotFound, missing.what)
		return
	}
	if errors.Is(err, control.ErrCursor) {
		s.fail(w, r, http.StatusNotFound, "The list has no such page: begin at its first one.")
		return
	}
	if status := statusOf(err); status != 0 {
		s.fail(w, r, status, sentence(err.Error()))
		return
	}
	if r.Context().Err() != nil {
		return
	}
	s.cfg.Log.Warn().Err(err).Str("path", r.Pattern).Msg("a page of the console failed")
	if ledger.Unavailable(err) {
		s.fail(w, r, http.StatusServiceUnavailable, "The database does not answer. Nothing is lost: "+
			"messages wait in Kafka. Try again in a few seconds.")
		return
	}
	s.fail(w, r, http.StatusInternalServerError, "That did not work. The log of this "+
		"instance says why. Look whether anything was changed before you try again.")
}

// statusOf is the status of an error that the user can do something about; 0 for others.
func statusOf(err error) int {
	if is[*control.Refused](err) {
		return http.StatusUnprocessableEntity
	}
	if is[*control.Unknown](err) {
		return http.StatusNotFound
	}
	if is[*control.Unpublished](err) {
		return http.StatusServiceUnavailable
	}
	if is[*control.Busy](err) {
		return http.StatusTooManyRequests
	}
	for _, known := range []func(error) bool{
		is[*control.Conflict], is[*control.Impossible], is[*control.NoRamp], is[*control.RampRunning],
		is[*control.RampMoved],
	} {
		if known(err) {
			return http.StatusConflict
		}
	}
	return 0
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// sentence turns the text of an error into a sentence.
func sentence(text string) string {
	if text == "" {
		return text
	}
	text = strings.ToUpper(text[:1]) + text[1:]
	if !strings.HasSuffix(text, ".") && !strings.HasSuffix(text, "?") {
		text += "."
	}
	return text
}

// functions are the functions of the templates.
var functions = template.FuncMap{
	"newKey":  rand.Text,
	"time":    timeCell,
	"ago":     ago,
	"age":     age,
	"percent": percent,
	"number":  number,
	"rate":    rate,
	"ms":      milliseconds,
	"cents":   cents,
	"str": func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	},
	"money":   report.Amount,
	"words":   func(s string) string { return strings.ReplaceAll(s, "_", " ") },
	"why":     report.WaitWords,
	"bar":     bar,
	"deref":   deref,
	"plural":  plural,
	"dict":    dict,
	"join":    strings.Join,
	"short":   func(s *string) string { return control.Shortened(*s) },
	"seconds": func(s float64) string { return duration(time.Duration(s * float64(time.Second))) },
	"yes":     func(b *bool) bool { return b != nil && *b },
	"list":    func(items ...string) []string { return items },
	"part":    func(n, of int64) float64 { return float64(n) / float64(max(of, 1)) },
}

// number formats a count with grouped digits; a dash for nil.
func number(n any) string {
	if p, ok := n.(*int64); ok {
		if p == nil {
			return "–"
		}
		n = *p
	}
	return grouped(fmt.Sprint(n))
}

// cents is an amount with two decimals.
func cents(micros int64) string {
	return grouped(strconv.FormatFloat(float64(micros)/1e6, 'f', 2, 64))
}

// plural is a count with a word in singular or plural.
func plural(n any, word string) string {
	text := fmt.Sprint(n)
	if text == "1" {
		return "1 " + word
	}
	return grouped(text) + " " + word + "s"
}

// dict makes a map of keys and values, to pass several values to a template.
func dict(pairs ...any) (map[string]any, error) {
	out := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		key, ok := pairs[i].(string)
		if !ok {
			return nil, fmt.Errorf("key %v is not text", pairs[i])
		}
		out[key] = pairs[i+1]
	}
	return out, nil
}

// deref is the value of a pointer to a number; 0 for nil.
func deref(p *float64) float64 {
	if p == nil {
		return 0
	}
	return *p
}

const minute = "15:04:05"

// timeCell is an instant in UTC: only the time if it is today, else with the date.
func timeCell(at any) template.HTML {
	t, ok := instant(at)
	if !ok {
		return "–"
	}
	t = t.UTC()
	text := t.Format("2 Jan 15:04:05")
	if t.Format(time.DateOnly) == time.Now().UTC().Format(time.DateOnly) {
		text = t.Format(minute)
	} else if t.Year() != time.Now().UTC().Year() {
		text = t.Format("2 Jan 2006 15:04")
	}
	html := fmt.Sprintf(`<time datetime="%s" title="%s UTC">%s</time>`, t.Format(time.RFC3339),
		t.Format("2 January 2006 15:04:05"), text)
	return template.HTML(html) //nolint:gosec // Digits and letters of Format alone.
}

// instant converts a time or a pointer to one; false for nil and the zero time.
func instant(at any) (time.Time, bool) {
	switch t := at.(type) {
	case time.Time:
		return t, !t.IsZero()
	case *time.Time:
		if t == nil {
			return time.Time{}, false
		}
		return *t, !t.IsZero()
	}
	return time.Time{}, false
}

// ago is the time since an instant, in one unit.
func ago(at any) string {
	t, ok := instant(at)
	if !ok {
		return "–"
	}
	return duration(time.Since(t)) + " ago"
}

// age is a number of seconds, written in one unit.
func age(seconds *float64) string {
	if seconds == nil {
		return "–"
	}
	return duration(time.Duration(*seconds * float64(time.Second)))
}

func duration(d time.Duration) string {
	switch {
	case d < 0:
		return "0 s"
	case d < time.Minute:
		return strconv.Itoa(int(d.Seconds())) + " s"
	case d < time.Hour:
		return strconv.Itoa(int(d.Minutes())) + " min"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d.Hours())) + " h"
	}
	return strconv.Itoa(int(d.Hours()/24)) + " days"
}

// exactly is a duration with all its units, such as 1 min 30 s.
func exactly(d time.Duration) string {
	var out []string
	for _, unit := range []struct {
		of   time.Duration
		name string
	}{{time.Hour, " h"}, {time.Minute, " min"}} {
		if n := d / unit.of; n > 0 {
			out, d = append(out, strconv.FormatInt(int64(n), 10)+unit.name), d%unit.of
		}
	}
	if d > 0 || len(out) == 0 {
		out = append(out, strconv.FormatFloat(d.Seconds(), 'f', -1, 64)+" s")
	}
	return strings.Join(out, " ")
}

// percent is a share as a percentage with one decimal; a dash for none.
func percent(share any) string {
	switch v := share.(type) {
	case *float64:
		if v != nil {
			return strconv.FormatFloat(100**v, 'f', 1, 64) + " %"
		}
	case float64:
		return strconv.FormatFloat(100*v, 'f', 1, 64) + " %"
	}
	return "–"
}

// rate is a number per second, with more decimals for a smaller number.
func rate(v any) string {
	var r float64
	switch of := v.(type) {
	case float64:
		r = of
	case *float64:
		if of == nil {
			return "–"
		}
		r = *of
	}
	digits := 1
	switch {
	case r == math.Trunc(r) && r >= 10:
		digits = 0
	case r > 0 && r < 1:
		digits = 2
	}
	return grouped(strconv.FormatFloat(r, 'f', digits, 64))
}

// milliseconds writes a duration in milliseconds; a small one has a decimal.
func milliseconds(v *float64) string {
	switch {
	case v == nil:
		return "–"
	case *v < 10:
		return strconv.FormatFloat(*v, 'f', 1, 64)
	}
	return grouped(strconv.FormatFloat(*v, 'f', 0, 64))
}

// grouped puts a thin space between thousands.
func grouped(digits string) string {
	whole, rest, point := strings.Cut(digits, ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	if _, err := strconv.ParseUint(whole, 10, 64); err != nil {
		return digits
	}
	for at := len(whole) - 3; at > 0; at -= 3 {
		whole = whole[:at] + "\u2009" + whole[at:]
	}
	if point {
		whole += "." + rest
	}
	return sign + whole
}
