package evidence

import (
	"context"
	"crypto/sha256"
	"slices"
	"strings"
	"time"

	"dispatcher/cmd/dispatcher/internal/audit"
	"dispatcher/cmd/dispatcher/internal/seal"
	"dispatcher/ledger"
	"dispatcher/ledger/migrations"
)

// DefinitionChange is a change of definitions that has an explanation.
type DefinitionChange struct {
	// After and By are the times of the two seals between which the definitions changed.
	After time.Time `json:"after"`
	By    time.Time `json:"by"`
	Names []string  `json:"names"`
	// Because are the migrations that were applied, and "PostgreSQL" if its version changed.
	Because []string `json:"because"`
}

// postgres is the name that the version of PostgreSQL has among definitions.
const postgres = "PostgreSQL"

// definitionState is what the log says of one definition.
type definitionState struct {
	// sealed is the hash of the newest leaf, and expected the last one that has an explanation; zero
	// while there is none.
	sealed, expected [ledger.HashSize]byte
	at               time.Time // of the newest leaf
	// after and by are the times of the seals between which it began to differ from expected; by is
	// zero while it does not differ.
	after, by time.Time
}

// definitionLog follows the definitions from seal to seal.
type definitionLog struct {
	*comparison
	states map[string]*definitionState
	// steps are all changes that migrations or another version of PostgreSQL explain.
	steps []DefinitionChange
}

// definitions compares the definitions of views and functions with those in the log, and each
// change in the log with the migrations that were applied at the time. The definitions of the first
// seal are not compared with anything.
func (c *comparison) definitions(ctx context.Context) error {
	l := definitionLog{comparison: c, states: map[string]*definitionState{}}
	var last time.Time // of the newest seal with definitions; zero while there is none
	err := c.Sealed.EachWithDefinitions(ctx, func(s *ledger.Seal) error {
		c.checkSeal(ctx, s)
		before, err := c.Seals.Number(ctx, s.Number-1)
		if err != nil {
			return err
		}
		all, err := seal.ReadLeaves(s.Leaves)
		if err != nil {
			return err
		}
		var changed []ledger.Definition
		for i := range all {
			if d := ledger.DefinitionOf(all[i].Seq, &all[i].Parts); d != nil {
				changed = append(changed, *d)
			}
		}
		after := time.Time{}
		if before != nil {
			after = before.At
		}
		l.step(changed, after, s.At, last.IsZero())
		last = s.At
		return nil
	})
	if err != nil {
		return err
	}
	if last.IsZero() {
		if c.format2 {
			c.Report([]audit.Mismatch{{
				What: WhatCheckpoint, Stored: "a log without the definitions of views and functions",
				Derived: "one that has them: it was continued for more than an hour",
			}})
		}
		return nil
	}
	now, err := c.Sealed.Definitions(ctx)
	if err != nil {
		return err
	}
	l.step(slices.DeleteFunc(slices.Clone(now), func(d ledger.Definition) bool {
		known := l.states[d.Name]
		return known != nil && known.sealed == d.Hash
	}), last, c.Now, false)
	l.compare(now)
	return nil
}

// step records the definitions that changed between two seals.
func (l *definitionLog) step(changed []ledger.Definition, after, by time.Time, first bool) {
	reasons := []string{}
	for i := range changed {
		if d := &changed[i]; d.Name == postgres || isMigration(d.Name) && ofThisBuild(d) {
			reasons = append(reasons, d.Name)
		}
	}
	explained := DefinitionChange{After: after, By: by, Because: reasons}
	for i := range changed {
		d := &changed[i]
		s := l.states[d.Name]
		if s == nil {
			s = &definitionState{}
			l.states[d.Name] = s
		}
		s.sealed, s.at = d.Hash, by
		switch {
		case isMigration(d.Name) && ofThisBuild(d), !isMigration(d.Name) &&
			(first || explains(reasons, d.Name)):
			s.expected, s.by = d.Hash, time.Time{}
			explained.Names = append(explained.Names, d.Name)
		case d.Hash != s.expected && s.by.IsZero():
			s.after, s.by = after, by
		case d.Hash == s.expected && !s.by.IsZero():
			if by.After(l.Day.From) {
				l.reportDefinition(d.Name, seal.Changed, "another definition from "+about(s.by)+" to "+
					about(by), "the same all the time: no migration changed it")
			}
			s.by = time.Time{}
		}
	}
	if first || len(explained.Names) == 0 {
		return
	}
	l.steps = append(l.steps, explained)
	if by.After(l.Day.From) {
		l.result.DefinitionChanges = append(l.result.DefinitionChanges, explained)
	}
}

// compare reports definitions that are not as the log and the migrations explain.
func (l *definitionLog) compare(now []ledger.Definition) {
	for i := range now {
		s := l.states[now[i].Name]
		if now[i].Name != postgres && !isMigration(now[i].Name) {
			l.result.Definitions++
		}
		if s.by.IsZero() {
			delete(l.states, now[i].Name)
			continue
		}
		what, stored := seal.Changed, "another definition, made between "
		derived := "that of before: no migration changed it"
		if s.expected == [ledger.HashSize]byte{} {
			what, stored = seal.Inserted, "a definition, made between "
			derived = "nothing: no migration made it"
			if isMigration(now[i].Name) {
				derived = "nothing: this build has no such migration"
			}
		}
		l.reportDefinition(now[i].Name, what, stored+about(s.after)+" and "+about(s.by), derived)
		delete(l.states, now[i].Name)
	}
	for name, s := range l.states {
		if !l.droppedAfter(name, s.at) {
			l.reportDefinition(name, seal.Deleted, "nothing", "what was sealed at "+about(s.at))
		}
	}
}

// droppedAfter reports whether a migration that was applied after a seal names a definition, and so
// may have dropped it.
func (l *definitionLog) droppedAfter(name string, at time.Time) bool {
	for _, change := range l.steps {
		if !change.By.Before(at) && explains(change.Because, name) {
			return true
		}
	}
	return false
}

func (c *comparison) reportDefinition(name, what, stored, derived string) {
	c.Report([]audit.Mismatch{{ID: name, What: what, Stored: stored, Derived: derived}})
}

// isMigration tells the files of migrations from the names of views and functions.
func isMigration(name string) bool { return strings.HasSuffix(name, ".sql") }

// ofThisBuild reports whether a migration is one of this build.
func ofThisBuild(d *ledger.Definition) bool {
	_, checksum := migrations.File(d.Name)
	sum := sha256.Sum256([]byte(checksum))
	return checksum != "" && d.Hash == [ledger.HashSize]byte(sum[:ledger.HashSize])
}

// explains reports whether migrations, or another version of PostgreSQL, explain that a definition
// changed. A migration explains what its text names.
func explains(reasons []string, name string) bool {
	if name == postgres {
		return true
	}
	name = strings.TrimPrefix(name, "view ")
	name, _, _ = strings.Cut(name, "(")
	return slices.ContainsFunc(reasons, func(reason string) bool {
		text, _ := migrations.File(reason)
		return reason == postgres || strings.Contains(text, name)
	})
}

func about(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z07:00") }
