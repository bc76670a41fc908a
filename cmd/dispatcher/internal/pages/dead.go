package pages

import (
	"fmt"
	"net/http"
	"strings"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/ledger"
)

const (
	// mostReplayed is how many records the form replays at once.
	mostReplayed = 200
	// mostTold bounds the records for which a notice says why they were left out.
	mostTold = 5
)

// replayDead publishes dead records again: one, with or without a correction of one field, or those
// with a reason that were not replayed, mostReplayed at most. Unless "do" is "replay" it is a dry
// run.
func (s *Server) replayDead(w http.ResponseWriter, r *request) error {
	by, err := byOf(r)
	if err != nil {
		return err
	}
	by.DryRun = r.PostFormValue("do") != "replay"
	replayer, err := control.NewReplayer(r.Context(), control.ReplayConfig{
		Ledger: s.cfg.Ledger, Region: s.cfg.Region,
		AllowUnknown: s.cfg.AllowUnknown, Publish: s.cfg.Publish,
	})
	if err != nil {
		return err
	}
	how := &control.Replaying{By: *by}
	if err := correct(r, how); err != nil {
		return err
	}
	records, err := s.chosen(r, replayer)
	if err != nil {
		return err
	}
	published := 0
	var left []string
	for i := range records {
		done, err := replayer.Replay(r.Context(), &records[i], how)
		switch {
		case err != nil:
			return fmt.Errorf("replay %s after %d others: %w", done.Record, published, err)
		case done.Why != "":
			left = append(left, done.Record+" "+done.Why)
		default:
			published++
		}
	}
	return s.done(w, r, "/ambiguous", replayNotice(published, left, by.DryRun))
}

// correct adds the correction of one field that the form may ask for.
func correct(r *request, how *control.Replaying) error {
	field, value := r.PostFormValue("set"), r.PostFormValue("value")
	switch {
	case field == "" && value == "":
		return nil
	case field == "":
		return refuse("choose the field that gets the new value")
	case !strings.HasPrefix(r.PostFormValue("which"), "record:"):
		return refuse("choose one record: a correction is for one, not for all with a reason")
	}
	how.Changes = append(how.Changes, control.Correct(field, value))
	return nil
}

// chosen reads the records that the form names.
func (s *Server) chosen(r *request, replayer *control.Replayer) ([]ledger.DeadRecord, error) {
	kind, name, _ := strings.Cut(r.PostFormValue("which"), ":")
	switch kind {
	case "record":
		d, err := control.FindDead(r.Context(), s.cfg.Ledger, name)
		return []ledger.DeadRecord{d}, err
	case "reason":
		return replayer.Matching(r.Context(), &ledger.DeadFilter{Reason: name}, mostReplayed)
	}
	return nil, refuse("choose a record, or a reason")
}

// replayNotice says how many records were published, and why others were not.
func replayNotice(published int, left []string, dry bool) string {
	verb, records := "were", "records"
	if dry {
		verb = "would be"
	}
	if published == 1 {
		records = "record"
		verb = strings.Replace(verb, "were", "was", 1)
	}
	sentences := []string{fmt.Sprintf("%d %s %s published again", published, records, verb)}
	sentences = append(sentences, left[:min(len(left), mostTold)]...)
	if more := len(left) - mostTold; more > 0 {
		sentences = append(sentences, fmt.Sprintf("And %d more were left out", more))
	}
	return strings.Join(sentences, ". ") + "."
}
