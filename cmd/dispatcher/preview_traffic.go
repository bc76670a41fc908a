package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/app"
	"dispatcher/cmd/dispatcher/internal/dispatch"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// traffic weighs the messages of a day under a document.
func (c *cli) traffic(ctx context.Context, f *previewFlags, doc *config.Routing) (*report.Traffic, error) {
	s, err := c.settings(needPostgres)
	if err != nil {
		return nil, err
	}
	day, err := previewDay(f.day, doc.Timezone, time.Now())
	if err != nil {
		return nil, usage(err)
	}
	keys, err := keysAtHand(s)
	if err != nil {
		return nil, err
	}
	routing, err := app.Compile(doc, 0)
	if err != nil {
		return nil, err
	}
	l, err := openLedger(ctx, s)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	w := weighing{now: dispatch.NewChooser(routing, keys)}
	if f.against.given {
		if err := w.compareWith(ctx, l, s, f.against.version, keys); err != nil {
			return nil, err
		}
	}
	w.counter = report.NewTrafficCounter(doc, day.Format(time.DateOnly), doc.Timezone.String(), w.against)
	filter := ledger.ChoiceFilter{From: admission.Day.Start(day, doc.Timezone), To: admission.Day.End(day, doc.Timezone)}
	if err := l.EachChoice(ctx, filter, w.add); err != nil {
		return nil, usage(postgresTrouble(s, err))
	}
	traffic := w.counter.Traffic()
	traffic.SoFar = filter.To.After(time.Now())
	return traffic, nil
}

// previewDay is noon of the day that was named, else of yesterday. A day to come has no traffic.
func previewDay(day string, zone *time.Location, now time.Time) (time.Time, error) {
	now = now.In(zone)
	if day == "" {
		return time.Date(now.Year(), now.Month(), now.Day()-1, 12, 0, 0, 0, zone), nil
	}
	noon, err := parseDay(day, zone)
	if err == nil && admission.Day.Start(noon, zone).After(now) {
		err = fmt.Errorf("--day %s has not begun in %s: name a day that has", day, zone)
	}
	return noon, err
}

// keysAtHand are the keys of the key file; none when no file is named.
func keysAtHand(s *config.Settings) ([]selector.Key, error) {
	if s.DrawKeyFile == "" {
		return nil, nil
	}
	return drawKeys(s)
}

// keysIfReadable are those for a command that tells less without them.
func keysIfReadable(s *config.Settings) []selector.Key {
	keys, err := keysAtHand(s)
	if err != nil {
		return nil
	}
	return keys
}

// weighing is what each message of the day goes through.
type weighing struct {
	counter *report.TrafficCounter
	now     *dispatch.Chooser
	then    *dispatch.Chooser // nil: the record is compared with
	against *int64
	old     *config.Routing // the document of then
	shares  map[string]map[string]float64
}

// compareWith takes a version in place of the record.
func (w *weighing) compareWith(ctx context.Context, l *ledger.Ledger, s *config.Settings, version int64, keys []selector.Key) error {
	stored, err := storedVersion(ctx, l, s, version)
	if err != nil {
		return err
	}
	if w.old, err = storedRouting(&stored); err != nil {
		return err
	}
	routing, err := app.Compile(w.old, version)
	if err != nil {
		return err
	}
	w.against, w.then, w.shares = &version, dispatch.NewChooser(routing, keys), map[string]map[string]float64{}
	for i := range w.old.Routes {
		w.shares[w.old.Routes[i].Name] = report.Shares(w.old, w.old.Routes[i].Name)
	}
	return nil
}

// add counts one message.
func (w *weighing) add(r *ledger.Record) error {
	now := w.now.Choose(&r.Message)
	if w.then == nil {
		w.counter.Add(r, &now)
		return nil
	}
	then := w.then.Choose(&r.Message)
	var shares map[string]float64
	if then.Route != nil {
		shares = w.shares[then.Route.Name]
	}
	w.counter.AddAgainst(r, &now, &then, shares)
	return nil
}

// printTraffic shows the figures and what they rest on.
func (c *cli) printTraffic(t *report.Traffic) error {
	fmt.Fprintln(c.out)
	trafficSheet(t, formatTable).draw(c.out)
	fmt.Fprintln(c.out, wrapped(strings.Join(trafficSentences(t), " "), 100))
	return nil
}

// trafficSentences say how many would have moved and how that was found.
func trafficSentences(t *report.Traffic) []string {
	if t.Messages == 0 {
		return []string{fmt.Sprintf("There is no message of %s for which a route was found.", t.Day)}
	}
	out := []string{movedSentence(t)}
	if t.SoFar {
		out = append(out, fmt.Sprintf("%s is not over yet: these are its messages so far.", t.Day))
	}
	if t.ByShare > 0 {
		out = append(out, fmt.Sprintf(
			"%d messages were counted by the shares of the weights alone, because DISPATCHER_DRAW_KEY_FILE does not hold the key that drew them (%s).",
			t.ByShare, strings.Join(t.MissingKeys, ", ")))
	}
	if t.Undecided > 0 {
		out = append(out, fmt.Sprintf("%d fall to routes that choose by turn, load or score, which cannot be told beforehand.", t.Undecided))
	}
	if t.Unroutable > 0 {
		out = append(out, fmt.Sprintf("%d would be dead letters: no route takes them, or they have too many segments for it.", t.Unroutable))
	}
	if t.WithoutCountry > 0 {
		out = append(out, fmt.Sprintf("The numbers of %d have no country that is known: what the document says of countries does not fit them.", t.WithoutCountry))
	}
	if len(t.NotHonored) > 0 {
		out = append(out, fmt.Sprintf(
			"These are first choices as they are drawn, without %s of the document and without limits, "+
				"so some of these messages would go elsewhere, or nowhere.",
			strings.Join(t.NotHonored, ", ")))
	}
	return out
}

func movedSentence(t *report.Traffic) string {
	compared := "what was recorded"
	if t.Against != nil {
		compared = versionName(*t.Against)
	}
	if t.Compared == 0 {
		return "No draw could be compared with " + compared + ", so nobody can say how many messages would have moved."
	}
	return fmt.Sprintf("Of %d messages whose draw could be compared with %s, %d would have had another first choice.", t.Compared, compared, t.Moved)
}

// trafficSheet has one row per route and channel; figures that nobody knows beforehand are empty.
func trafficSheet(t *report.Traffic, as format) sheet {
	before := "before"
	if as == formatTable && t.Against != nil {
		before = "version " + number(*t.Against)
	}
	s := sheet{
		header: []string{
			"route", "channel", "messages", "segments", "cost", "currency",
			before + "_messages", before + "_segments", before + "_cost", before + "_currency",
		},
		right: []int{3, 4, 5, 7, 8, 9},
	}
	if as == formatTable {
		s.title = fmt.Sprintf("%s, %s: %d messages", t.Day, t.Timezone, t.Messages)
		s.header = []string{"route", "channel", "messages", "segments", "cost", "", before + ": messages", "segments", "cost", ""}
	}
	for i := range t.Routes {
		for j := range t.Routes[i].Channels {
			ch := &t.Routes[i].Channels[j]
			s.rows = append(s.rows, []string{
				t.Routes[i].Route, ch.Channel, figure(ch.Messages), figure(ch.Segments), money(ch.CostMicros), ch.Currency,
				figure(ch.BeforeMessages), figure(ch.BeforeSegments), money(ch.BeforeCostMicros), ch.BeforeCurrency,
			})
		}
	}
	return s
}

// money writes an amount; nothing for an unknown one.
func money(micros *int64) string {
	if micros == nil {
		return ""
	}
	return report.Money(*micros)
}

// figure writes a number with a decimal only where it has one; nothing for an unknown one.
func figure(f *float64) string {
	if f == nil {
		return ""
	}
	if *f == float64(int64(*f)) {
		return strconv.FormatInt(int64(*f), 10)
	}
	return strconv.FormatFloat(*f, 'f', 1, 64)
}
