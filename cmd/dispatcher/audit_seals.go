package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"dispatcher/cmd/dispatcher/internal/audit"
	"dispatcher/cmd/dispatcher/internal/evidence"
	"dispatcher/cmd/dispatcher/internal/seal"
	"dispatcher/config"
	"dispatcher/ledger"
)

// verifySeals compares a day with the log of hashes, reports each difference, and calls done after
// each hour.
func verifySeals(
	ctx context.Context, l *database, keyFile, keptFile string, day ledger.BusinessDay,
	now time.Time, report func([]audit.Mismatch), done func(hours int64),
) (s evidence.Compared, err error) {
	lines, err := config.SealKeys(keyFile)
	if err != nil {
		return s, usage(err)
	}
	keys, err := seal.ParseKeys(keyFile, lines)
	if err != nil {
		return s, usage(err)
	}
	kept, err := keptCheckpoint(keys, keptFile)
	if err != nil {
		return s, usage(err)
	}
	return evidence.Compare(ctx, evidence.Config{
		Seals: l.Seals, Sealed: l.Sealed, Keys: keys, Kept: kept, Day: day, Now: now,
		Report: report, Done: done,
	})
}

// keptCheckpoint reads the checkpoint that was kept in a file; nil without one.
func keptCheckpoint(keys *seal.Keys, path string) (*evidence.Kept, error) {
	if path == "" {
		return nil, nil //nolint:nilnil // None was kept.
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	signed, err := keys.Open(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &evidence.Kept{Checkpoint: signed, File: path}, nil
}

// sealed is the comparison with the log in one line.
func (v *verification) sealed() string {
	s := v.Sealed
	if s == nil {
		return "not compared with the log of hashes: no key of it\n"
	}
	kinds := []string{fmt.Sprintf("%d messages", s.Messages)}
	switch {
	case s.Closings == 1:
		kinds = append(kinds, "the closing of the day")
	case s.Closings > 1:
		kinds = append(kinds, fmt.Sprintf("%d closings of the day", s.Closings))
	}
	if s.TopUps > 0 {
		kinds = append(kinds, counted(int64(s.TopUps), "top-up", "top-ups"))
	}
	if s.Reconciliations > 0 {
		kinds = append(kinds, counted(int64(s.Reconciliations), "signed reconciliation",
			"signed reconciliations"))
	}
	if s.OptOuts > 0 {
		kinds = append(kinds, counted(int64(s.OptOuts), "change of opt-outs", "changes of opt-outs"))
	}
	if s.Actions > 0 {
		kinds = append(kinds, counted(int64(s.Actions), "action", "actions"))
	}
	line := strings.Join(kinds, ", ")
	if last := len(kinds) - 1; last > 0 {
		line = strings.Join(kinds[:last], ", ") + " and " + kinds[last]
	}
	line += " compared with the log of hashes"
	if s.Unsealed > 0 {
		line += fmt.Sprintf("; %d are not in it yet", s.Unsealed)
	}
	line += "\n"
	if s.Definitions > 0 {
		line += fmt.Sprintf("%s and %s of views and functions compared with it",
			counted(s.Windows, "ended window of a limit", "ended windows of limits"),
			counted(int64(s.Definitions), "definition", "definitions"))
		if s.WindowsDropped > 0 {
			line += fmt.Sprintf("; %s dropped with time", counted(s.WindowsDropped, "window was",
				"windows were"))
		}
		line += "\n"
	}
	return line
}
