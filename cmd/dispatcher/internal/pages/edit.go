package pages

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"

	udiff "github.com/aymanbagabas/go-udiff"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/config"
	"dispatcher/ledger"
)

const (
	editPath  = "/routing/edit"
	editTitle = "Routing document"
)

// mostEffects is the number of routes whose intervals a preview shows.
const mostEffects = 12

// editPage is the form with the whole routing document.
type editPage struct {
	Version  int64  // that the text is compared with, and that a change is based on
	Text     string // of the document
	Reason   string
	Problems []problemLine
	// Conflict says that somebody else has applied a document since; Theirs is what it changed.
	Conflict string
	Theirs   []control.Line
	Preview  *editPreview // nil before one was asked for
}

// editPreview is what applying a text would change.
type editPreview struct {
	Of       string // the hash of the text: only what was previewed is applied
	Outdated bool   // it is shown because another text was previewed before
	Changes  []control.Line
	Lines    []diffLine
	Effects  []*effectPage // of routes whose intervals change
	More     int           // further such routes
	Warnings []string
}

// Changed reports whether there is something to apply.
func (p *editPreview) Changed() bool { return len(p.Lines) > 0 }

// problemLine is one fault of the document. Line is 0 for a fault that belongs to no line.
type problemLine struct {
	Line      int
	Key, What string
	Source    string // the text of that line
}

func (s *Server) editForm(w http.ResponseWriter, r *request) error {
	v, _, err := control.InForce(r.Context(), s.cfg.Ledger)
	if err != nil {
		return err
	}
	return s.show(w, r, "edit", editTitle, &editPage{Version: v.Version, Text: v.Document})
}

// edit previews the document of the form, or applies the one that was previewed. A document that
// cannot be applied comes back in the form, so that nobody loses a text.
func (s *Server) edit(w http.ResponseWriter, r *request) error {
	p := &editPage{
		// Browsers send the lines of a text area with CR and LF.
		Text:   strings.ReplaceAll(r.PostFormValue("document"), "\r\n", "\n"),
		Reason: strings.TrimSpace(r.PostFormValue("reason")),
	}
	var err error
	if p.Version, err = strconv.ParseInt(r.PostFormValue("version"), 10, 64); err != nil {
		return refuse("the form does not say from which version it was made: reload the page")
	}
	apply := r.PostFormValue("do") == "apply"
	seen := !apply || r.PostFormValue("previewed") == hashOf(p.Text)
	draft, done, err := s.makeEdit(r, p, apply && seen)
	if conflict, ok := errors.AsType[*control.Conflict](err); ok {
		return s.showConflict(w, r, p, conflict)
	}
	if refused, ok := errors.AsType[*control.Refused](err); ok {
		p.Problems = problemLines(refused.Err, p.Text)
		s.render(w, r, http.StatusUnprocessableEntity, "edit", editTitle, p)
		return nil
	}
	if err != nil {
		return err
	}
	if apply && seen {
		return s.changed(w, r, "/routing", done)
	}
	p.Version = draft.Current.Version
	if p.Preview, err = s.previewEdit(r, p.Text, draft, done); err != nil {
		return err
	}
	p.Preview.Outdated = !seen
	return s.show(w, r, "edit", editTitle, p)
}

func (s *Server) makeEdit(
	r *request, p *editPage, apply bool,
) (*control.Draft, *control.Changed, error) {
	if apply && p.Reason == "" {
		return nil, nil, refuse("write a reason: the history shows it")
	}
	draft, err := control.Begin(r.Context(), s.cfg.Ledger, nil, control.By{
		Author: r.who.Name, Via: ledger.ViaConsole, Reason: p.Reason, Expect: &p.Version, DryRun: !apply,
		Force: true, // the preview shows comments and layout, so they are applied too
	})
	if err != nil {
		return nil, nil, err
	}
	done, err := draft.Make(r.Context(), func() (*config.Document, error) {
		return config.ParseDocument("document", []byte(p.Text))
	})
	return draft, done, err
}

// showConflict shows what somebody else has changed, and compares the text with that from now on.
func (s *Server) showConflict(
	w http.ResponseWriter, r *request, p *editPage, c *control.Conflict,
) error {
	p.Conflict = sentence(c.Error())
	if c.Newer.Version > 0 {
		old, err := control.Version(r.Context(), s.cfg.Ledger, c.Expected)
		if err != nil {
			return err
		}
		before, err := control.StoredRouting(&old)
		if err != nil {
			return err
		}
		after, err := control.StoredRouting(&c.Newer)
		if err != nil {
			return err
		}
		p.Theirs = control.VersionDiff(before, after)
	}
	p.Version = c.Current
	s.render(w, r, http.StatusConflict, "edit", editTitle, p)
	return nil
}

func (s *Server) previewEdit(
	r *request, text string, draft *control.Draft, done *control.Changed,
) (*editPreview, error) {
	p := &editPreview{Of: hashOf(text), Changes: done.Changes, Warnings: done.Warnings}
	p.Lines = diffLines(udiff.Unified(config.VersionName(draft.Current.Version), "this text",
		draft.Current.Document, text))
	now, err := s.facts.read(r.Context())
	if err != nil {
		return nil, err
	}
	for i := range done.InForce.Routes {
		after := &done.InForce.Routes[i]
		effect, err := effectOf(now, draft.InForce.Route(after.Name), after)
		switch {
		case err != nil:
			return nil, err
		case !effect.Changed:
		case len(p.Effects) == mostEffects:
			p.More++
		default:
			p.Effects = append(p.Effects, effect)
		}
	}
	return p, nil
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// problemLines are the problems of a joined error, each with the text of its line.
func problemLines(err error, text string) []problemLine {
	lines := strings.Split(text, "\n")
	var out []problemLine
	for _, e := range control.Problems(err) {
		one := problemLine{What: sentence(e.Error())}
		if p, ok := errors.AsType[*config.Problem](e); ok {
			one = problemLine{Line: p.Line, Key: p.Key, What: sentence(p.Text)}
			if p.Line > 0 && p.Line <= len(lines) {
				one.Source = lines[p.Line-1]
			}
		}
		out = append(out, one)
	}
	return out
}
