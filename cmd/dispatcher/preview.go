package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/app"
	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// previewFlags are the arguments of preview.
type previewFlags struct {
	file, day string
	against   versionFlag // not given: compare with the record
	as        format
}

func (c *cli) previewCommand() *cobra.Command {
	f := &previewFlags{against: versionFlag{least: 1}}
	cmd := &cobra.Command{
		Use:   "preview --routing FILE",
		Short: "Show what a routing document's weights come to, alone or with a day's traffic",
		Long: `Shows the interval of every channel. That needs nothing but the document.

With --day or --against it also takes the messages of a day that has passed from the database and
tells what they would come to under the document: messages, segments and cost of each channel, and
how many would have had another first choice. The draws are made again, each message's under its
own key, with the keys of DISPATCHER_DRAW_KEY_FILE; a message whose key is not there is counted by
the shares of the weights. It does not apply price_cap, senders, allowed, allowed_countries, blocked
and limits, which pass a drawn channel over. Nothing is applied and nothing is sent.`,
		Args: cobra.NoArgs,
		RunE: work(func(ctx context.Context, _ []string) error {
			if f.file == "" {
				return usage(errors.New("--routing is missing: name a routing document"))
			}
			return c.preview(ctx, f)
		}),
	}
	cmd.Flags().StringVar(&f.file, "routing", "", "routing document")
	cmd.Flags().StringVar(&f.day, "day", "", "compare with the traffic of a day such as "+
		"2026-11-20 (with --against: yesterday unless given)")
	cmd.Flags().Var(&f.against, "against", "compare with what this routing version would choose, "+
		"not with what was recorded")
	f.as.addTo(cmd.Flags())
	return cmd
}

func (c *cli) preview(ctx context.Context, f *previewFlags) error {
	doc, err := checkedRouting("--routing", f.file)
	if err != nil {
		return err
	}
	preview, err := report.NewPreview(doc)
	if err != nil {
		return err
	}
	if f.day != "" || f.against.given {
		if preview.Traffic, err = c.traffic(ctx, f, doc); err != nil {
			return err
		}
	}
	var settings *config.Settings
	if s, err := c.load(); err == nil { // their faults do not concern the document
		settings = &s
	}
	preview.Warnings = exposures(doc, settings)
	if f.as != formatJSON {
		for _, warning := range preview.Warnings {
			fmt.Fprintln(c.err, "Warning:", warning)
		}
	}
	switch as := f.as; {
	case preview.Traffic == nil || as == formatJSON:
		return as.write(c.out, preview, previewSheet(&preview, as))
	case as == formatCSV:
		return as.write(c.out, preview, trafficSheet(preview.Traffic, as))
	}
	previewSheet(&preview, formatTable).draw(c.out)
	return c.printTraffic(preview.Traffic)
}

func previewSheet(p *report.Preview, as format) sheet {
	type row struct {
		report.RoutePreview
		report.IntervalPreview
	}
	var rows []row
	for _, route := range p.Routes {
		for _, iv := range route.Intervals {
			rows = append(rows, row{route, iv})
		}
	}
	return list(as, rows, []column[row]{
		{key: "route"},
		{key: "mode"},
		{key: "size"},
		{key: "channel"},
		{key: "weight", right: true},
		{key: "low"},
		{key: "high"},
		{key: "share", style: share},
	}...)
}

// traffic evaluates the messages of a day under a document.
func (c *cli) traffic(
	ctx context.Context, f *previewFlags, doc *config.Routing,
) (*report.Traffic, error) {
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
	l, err := c.openLedger(ctx, s)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	w := weighing{now: decide.NewChooser(routing, keys)}
	if f.against.given {
		if err := w.compareWith(ctx, l, f.against.version, keys); err != nil {
			return nil, l.sentence(err)
		}
	}
	w.counter = report.NewTrafficCounter(doc, day.Format(time.DateOnly), doc.Timezone.String(),
		w.against)
	filter := ledger.ChoiceFilter{
		From: admission.Day.Start(day, doc.Timezone),
		To:   admission.Day.End(day, doc.Timezone),
	}
	if err := l.Messages.EachChoice(ctx, filter, w.add); err != nil {
		return nil, l.sentence(err)
	}
	traffic := w.counter.Traffic()
	traffic.SoFar = filter.To.After(time.Now())
	return traffic, nil
}

// previewDay is noon of the given day, else of yesterday. Future days have no traffic.
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
	return drawKeys(s, "the messages were drawn with")
}

// keysIfReadable are the keys for a command that shows less without them.
func keysIfReadable(s *config.Settings) []selector.Key {
	keys, err := keysAtHand(s)
	if err != nil {
		return nil
	}
	return keys
}

// weighing counts what a document would choose for each message of a day.
type weighing struct {
	counter *report.TrafficCounter
	now     *decide.Chooser
	then    *decide.Chooser // nil: compare with the record
	against *int64
	old     *config.Routing // the document of then
	shares  map[string]map[string]float64
}

// compareWith compares with a version instead of the record.
func (w *weighing) compareWith(
	ctx context.Context, l *database, version int64, keys []selector.Key,
) error {
	stored, err := storedVersion(ctx, l, version)
	if err != nil {
		return err
	}
	if w.old, err = control.StoredRouting(&stored); err != nil {
		return err
	}
	routing, err := app.Compile(w.old, version)
	if err != nil {
		return err
	}
	w.against = &version
	w.then = decide.NewChooser(routing, keys)
	w.shares = map[string]map[string]float64{}
	for i := range w.old.Routes {
		w.shares[w.old.Routes[i].Name] = report.Shares(w.old, w.old.Routes[i].Name)
	}
	return nil
}

// add counts one message.
func (w *weighing) add(r *ledger.Record) error {
	if r.PayloadGone || r.PayloadHidden {
		w.counter.Skip()
		return nil
	}
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

// printTraffic prints the figures and how they were found.
func (c *cli) printTraffic(t *report.Traffic) error {
	fmt.Fprintln(c.out)
	trafficSheet(t, formatTable).draw(c.out)
	fmt.Fprintln(c.out, wrapped(strings.Join(trafficSentences(t), " "), 100))
	return nil
}

// trafficSentences say how many messages would have moved and how that was found.
func trafficSentences(t *report.Traffic) []string {
	var gone []string
	if t.WithoutPayload > 0 {
		gone = []string{fmt.Sprintf("%d messages are not counted, because their numbers and texts "+
			"are not kept any more, or this login may not read them.", t.WithoutPayload)}
	}
	if t.Messages == 0 {
		return append([]string{fmt.Sprintf("There is no message of %s for which a route was found.",
			t.Day)}, gone...)
	}
	out := append([]string{movedSentence(t)}, gone...)
	if t.SoFar {
		out = append(out, fmt.Sprintf("%s is not over yet: these are its messages so far.", t.Day))
	}
	if t.ByShare > 0 {
		out = append(out, fmt.Sprintf(
			"%d messages were counted by the shares of the weights alone, because "+
				"DISPATCHER_DRAW_KEY_FILE does not hold the key that drew them (%s).",
			t.ByShare, strings.Join(t.MissingKeys, ", ")))
	}
	if t.Undecided > 0 {
		out = append(out, fmt.Sprintf("%d fall to routes that choose by turn, load or score, "+
			"which cannot be told beforehand.", t.Undecided))
	}
	if t.Unroutable > 0 {
		out = append(out, fmt.Sprintf("%d would be dead letters: no route takes them, or they "+
			"have too many segments for it.", t.Unroutable))
	}
	if t.WithoutCountry > 0 {
		out = append(out, fmt.Sprintf("The numbers of %d have no country that is known: what the "+
			"document says of countries does not fit them.", t.WithoutCountry))
	}
	if len(t.NotHonored) > 0 {
		out = append(out, fmt.Sprintf(
			"These are first choices as they are drawn, without %s of the document and without "+
				"limits, "+
				"so some of these messages would go elsewhere, or nowhere.",
			strings.Join(t.NotHonored, ", ")))
	}
	return out
}

func movedSentence(t *report.Traffic) string {
	compared := "what was recorded"
	if t.Against != nil {
		compared = config.VersionName(*t.Against)
	}
	if t.Compared == 0 {
		return "No draw could be compared with " + compared +
			", so nobody can say how many messages would have moved."
	}
	return fmt.Sprintf("Of %d messages whose draw could be compared with %s, %d would have had "+
		"another first choice.", t.Compared, compared, t.Moved)
}

// trafficSheet has one row per route and channel; unknown figures are empty.
func trafficSheet(t *report.Traffic, as format) sheet {
	type row struct {
		route string
		report.ChannelTraffic
	}
	var rows []row
	for i := range t.Routes {
		for j := range t.Routes[i].Channels {
			rows = append(rows, row{t.Routes[i].Route, t.Routes[i].Channels[j]})
		}
	}
	before := "before"
	if t.Against != nil {
		before = "version " + number(*t.Against)
	}
	s := list(as, rows, []column[row]{
		{name: "route", cell: func(r *row) any { return r.route }},
		{key: "channel"},
		{key: "messages", right: true, cell: func(r *row) any { return figure(r.Messages) }},
		{key: "segments", right: true, cell: func(r *row) any { return figure(r.Segments) }},
		{key: "cost_micros", name: "cost", style: micros},
		{key: "currency", head: " "},
		{
			name: "before_messages", head: before + ": messages", right: true,
			cell: func(r *row) any { return figure(r.BeforeMessages) },
		},
		{name: "before_segments", head: "segments", right: true, cell: func(r *row) any {
			return figure(r.BeforeSegments)
		}},
		{key: "before_cost_micros", name: "before_cost", head: "cost", style: micros},
		{key: "before_currency", head: " "},
	}...)
	s.title = fmt.Sprintf("%s, %s: %d messages", t.Day, t.Timezone, t.Messages)
	return s
}

// figure writes a number with a decimal only if it has one; an unknown number is empty.
func figure(f *float64) string {
	if f == nil {
		return ""
	}
	if *f == float64(int64(*f)) {
		return strconv.FormatInt(int64(*f), 10)
	}
	return strconv.FormatFloat(*f, 'f', 1, 64)
}
