package pages

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	udiff "github.com/aymanbagabas/go-udiff"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/config"
	"dispatcher/ledger"
)

// mostVersions is how many versions one page lists.
const mostVersions = 25

// versionsPage lists versions of the routing, newest first.
type versionsPage struct {
	Versions []versionLine
	Before   int64 // where the next page begins; 0 for the last page
}

// versionLine is one version with what it changed.
type versionLine struct {
	Version     int64
	Author      string
	Login       string // of the database; empty where it is the author's name
	Via         string // api or console, where the author was authenticated
	Reason      string
	CreatedAt   time.Time
	EffectsOnly bool
	Changes     []control.Line
	Current     bool
}

// versionPage compares a version with the one in force, and offers to roll back to it.
type versionPage struct {
	versionLine
	InForce int64 // the number of the version in force
	Lines   []diffLine
	Back    []control.Line // what a rollback would change; Lines are the same in the texts
}

// diffLine is a line of a diff, with its CSS class.
type diffLine struct{ Class, Text string }

func (s *Server) versions(w http.ResponseWriter, r *request) error {
	current, err := s.cfg.Ledger.Routing.Current(r.Context())
	if err != nil {
		return err
	}
	before, err := strconv.ParseInt(r.URL.Query().Get("before"), 10, 64)
	if err != nil || before <= 1 || before > current.Version {
		before = current.Version + 1
	}
	lines, err := control.HistoryBefore(r.Context(), s.cfg.Ledger, before, mostVersions)
	if err != nil {
		return err
	}
	p := &versionsPage{}
	for i := range lines {
		line := newVersionLine(&lines[i])
		line.Current = line.Version == current.Version
		p.Versions = append(p.Versions, line)
	}
	if last := p.Versions[len(p.Versions)-1].Version; last > 1 {
		p.Before = last
	}
	return s.show(w, r, "versions", "Routing versions", p)
}

// newVersionLine is a version as the pages show it.
func newVersionLine(v *control.HistoryLine) versionLine {
	login, via := v.Login, ""
	if login == v.Author {
		login = ""
	}
	if v.Via == ledger.ViaAPI || v.Via == ledger.ViaConsole {
		login, via = "", string(v.Via) // the login is that of the dispatcher
	}
	return versionLine{
		Login: login, Via: via,
		Version: v.Version, Author: v.Author, Reason: v.Reason, CreatedAt: v.CreatedAt,
		EffectsOnly: v.EffectsOnly, Changes: v.Changes,
	}
}

// versionOf reads the version that a path names.
func (s *Server) versionOf(r *request) (ledger.RoutingVersion, error) {
	number, err := strconv.ParseInt(r.PathValue("version"), 10, 64)
	if err != nil {
		return ledger.RoutingVersion{}, notFound{
			"A version is a number, such as 7: choose one of the routing versions.",
		}
	}
	v, err := s.cfg.Ledger.Routing.Version(r.Context(), number)
	if errors.Is(err, ledger.ErrNoRouting) {
		return v, notFound{fmt.Sprintf("There is no routing version %d: "+
			"choose one of the list.", number)}
	}
	return v, err
}

func (s *Server) version(w http.ResponseWriter, r *request) error {
	v, err := s.versionOf(r)
	if err != nil {
		return err
	}
	current, err := s.cfg.Ledger.Routing.Current(r.Context())
	if err != nil {
		return err
	}
	lines, err := control.HistoryBefore(r.Context(), s.cfg.Ledger, v.Version+1, 1)
	if err != nil {
		return err
	}
	p := &versionPage{versionLine: newVersionLine(&lines[0]), InForce: current.Version}
	then, err := control.StoredRouting(&v)
	if err != nil {
		return err
	}
	now, err := control.StoredRouting(&current)
	if err != nil {
		return err
	}
	p.Back = control.VersionDiff(now, then)
	p.Lines = diffLines(udiff.Unified(config.VersionName(current.Version),
		config.VersionName(v.Version), current.Document, v.Document))
	return s.show(w, r, "version", "Routing version "+strconv.FormatInt(v.Version, 10), p)
}

// diffLines splits a unified diff into lines.
func diffLines(unified string) []diffLine {
	var out []diffLine
	for line := range strings.Lines(unified) {
		one := diffLine{Text: strings.TrimSuffix(line, "\n")}
		switch {
		case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"),
			strings.HasPrefix(line, "@@"):
			one.Class = "at"
		case strings.HasPrefix(line, "+"):
			one.Class = "add"
		case strings.HasPrefix(line, "-"):
			one.Class = "del"
		}
		out = append(out, one)
	}
	return out
}

func (s *Server) rollback(w http.ResponseWriter, r *request) error {
	draft, err := s.draft(r)
	if err != nil {
		return err
	}
	v, err := s.versionOf(r)
	if err != nil {
		return err
	}
	done, err := draft.Rollback(r.Context(), v.Version)
	if err != nil {
		return err
	}
	return s.changed(w, r, "/routing", done)
}
