package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/app"
	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/reconcile"
	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// reconcileFlags are the arguments of "reconcile".
type reconcileFlags struct {
	channel, file, preset, currency, zone string
	columns                               []string
	dayFirst, decimalComma, keyless       bool
	from, to                              string
	complete, dryRun, leave, yes          bool
	tolerance                             time.Duration
	limit                                 int
	author, reason                        string
	as                                    format
}

func (c *cli) reconcileCommand() *cobra.Command {
	f := &reconcileFlags{}
	cmd := &cobra.Command{
		Use:   "reconcile CHANNEL --file FILE",
		Short: "Compare an invoice or a log of a provider with the ledger, and sign it off",
		Long: `Compares what a provider says that it took on a channel with the attempts on record,
line by line: an invoice or an export as CSV or XLSX, or the log of an SMSC. A line belongs to the
attempt that has its reference; a line without one, or with one that is not on record, to an attempt
to the same number, within --tolerance and of as many segments. Each line and each attempt counts
once.

Ambiguous submissions that the file proves taken, or not taken, are settled with --yes, as
"ambiguous settle" would; look at them with --dry-run first. Then the result is stored with who
signed it off. The same file for the same time a second time changes nothing, unless more can be
settled.

That a submission is not in the file proves that it was not taken only with --complete, --from and
--to: with these you say that the file has all of that time.`,
		Example: `  dispatcher reconcile b --file november.csv --from 2026-11-01 --to 2026-12-01 --dry-run
  dispatcher reconcile b --file november.csv --from 2026-11-01 --to 2026-12-01 --complete \
      --reason "invoice 4711" --yes
  dispatcher reconcile b --file x.xlsx --columns "reference=Message ID,number=To,price=Net" \
      --currency EUR --dry-run`,
		Args: arguments(1, 1),
		RunE: work(func(ctx context.Context, args []string) error {
			f.channel = args[0]
			if err := f.check(); err != nil {
				return misused(err)
			}
			return c.withLedger(ctx, func(l *database) error { return c.reconcile(ctx, l, f) })
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.file, "file", "", "CSV, XLSX or log (required)")
	flags.StringVar(&f.preset, "preset", "", "how the file names its columns: "+
		reconcile.PresetsForHelp()+" (default that of the channel's provider, else plain)")
	flags.StringSliceVar(&f.columns, "columns", nil,
		"columns by field, such as \"reference=Message ID\", in place of those of the preset; "+
			"the fields are the columns of the preset plain")
	flags.StringVar(&f.currency, "currency", "", "currency of prices for which the file names none")
	flags.StringVar(&f.zone, "timezone", "UTC", "zone of times for which the file names none")
	flags.BoolVar(&f.dayFirst, "day-first", false, "03/04/2026 is in April")
	flags.BoolVar(&f.decimalComma, "decimal-comma", false, "0,031 is less than one")
	flags.StringVar(&f.from, "from", "",
		"what the file is of: from this day, such as 2026-11-01, or time (default the first line)")
	flags.StringVar(&f.to, "to", "", "until before this day or time (default the last line)")
	flags.BoolVar(&f.complete, "complete", false,
		"the file has all that the provider took between --from and --to")
	flags.DurationVar(&f.tolerance, "tolerance", 15*time.Minute,
		"how far a line without reference may be from its attempt")
	flags.BoolVar(&f.keyless, "without-keys", false, "do not match by number")
	flags.BoolVar(&f.yes, "yes", false, "settle the ambiguous submissions that --dry-run lists")
	flags.BoolVar(&f.leave, "leave-ambiguous", false, "do not settle ambiguous submissions")
	flags.BoolVar(&f.dryRun, "dry-run", false, "only compare")
	flags.IntVar(&f.limit, "limit", 1000, "list at most this many differences; 0 lists all")
	flags.StringVar(&f.reason, "reason", "", "what is signed off, such as the number of the "+
		"invoice (required without --dry-run)")
	c.authorFlag(flags, &f.author)
	f.as.addTo(flags)
	return cmd
}

func (f *reconcileFlags) check() error {
	switch {
	case f.file == "":
		return errors.New("--file is missing: name the invoice or log")
	case !f.dryRun && strings.TrimSpace(f.reason) == "":
		return errors.New(`--reason is missing: write what you sign off, for example --reason ` +
			`"invoice 4711", or give --dry-run`)
	case strings.TrimSpace(f.author) == "":
		return errors.New("--author is empty: name who signs")
	case (f.from == "") != (f.to == ""):
		return errors.New("--from and --to go together")
	case f.complete && f.from == "":
		return errors.New("--complete needs --from and --to: the time of which the file has all")
	case f.tolerance < 0 || f.tolerance > 24*time.Hour:
		return errors.New("--tolerance must be between 0 and 24h")
	case f.yes && (f.leave || f.dryRun):
		return errors.New("--yes settles, which --leave-ambiguous and --dry-run do not")
	case f.limit < 0:
		return errors.New("--limit must not be negative")
	}
	return control.CheckReason(f.reason)
}

// options are those for reading the file.
func (f *reconcileFlags) options(routing *config.Routing) (o reconcile.Options, err error) {
	channel, err := control.ChannelOf(routing, f.channel)
	if err != nil {
		return o, err
	}
	preset := f.preset
	if preset == "" {
		preset = "plain"
		if p := channel.Provider; slices.Contains(reconcile.Presets(), p) {
			preset = p
		}
	}
	if o.Columns, err = reconcile.NewColumns(preset, f.columns); err != nil {
		return o, err
	}
	if o.Zone, err = time.LoadLocation(f.zone); err != nil {
		return o, fmt.Errorf("--timezone: %q is not a time zone; write for example Europe/London", f.zone)
	}
	o.Currency, o.DayFirst, o.DecimalComma = f.currency, f.dayFirst, f.decimalComma
	return o, nil
}

// period is the period in the flags; zero without one. Days are in the routing's zone.
func (f *reconcileFlags) period(zone *time.Location) (p ledger.Period, err error) {
	p = ledger.Period{Channel: f.channel, Complete: f.complete}
	if f.from == "" {
		return p, nil
	}
	for flag, at := range map[string]*time.Time{"from": &p.From, "to": &p.To} {
		value := map[string]string{"from": f.from, "to": f.to}[flag]
		if noon, failed := app.ParseDate(value, zone); failed == nil {
			*at = admission.Day.Start(noon, zone)
		} else {
			*at, err = time.Parse(time.RFC3339, value)
		}
		if err != nil {
			return p, fmt.Errorf("--%s: write a day such as 2026-11-01, or a time with its zone, such "+
				"as 2026-11-01T00:00:00Z", flag)
		}
		*at = at.UTC()
	}
	if !p.From.Before(p.To) {
		return p, errors.New("--to must be after --from")
	}
	return p, nil
}

// reconciler compares one file.
type reconciler struct {
	*reconcileFlags
	cli    *cli
	l      *database
	store  *ledger.Comparison
	period ledger.Period
	digest string
	found  reconciled
	sums   ledger.Compared
	proofs []ledger.Proof
	before *ledger.Reconciliation // of the same file, if there is one
}

func (c *cli) reconcile(ctx context.Context, l *database, f *reconcileFlags) error {
	r := &reconciler{reconcileFlags: f, cli: c, l: l}
	routing, err := currentRouting(ctx, l)
	if err != nil {
		return err
	}
	if r.period, err = f.period(routing.Timezone); err != nil {
		return usage(err)
	}
	options, err := f.options(routing)
	if err != nil {
		return usage(err)
	}
	if options.Columns.Unverified {
		r.found.Unverified = options.Columns.Preset
	}
	if r.store, err = l.Reconciliations.Compare(ctx); err != nil {
		return err
	}
	defer r.store.Close()
	if err := r.run(ctx, options); err != nil {
		return err
	}
	if err := r.found.show(c, routing.Timezone, f.as); err != nil || !r.found.differs() {
		return err
	}
	return failed(nil) // the list has been printed
}

// run compares the file, stores the result and lists it.
func (r *reconciler) run(ctx context.Context, options reconcile.Options) error {
	show, wipe := r.cli.progress("reading lines", 0)
	err := r.load(ctx, options, show)
	wipe()
	if err != nil {
		return err
	}
	_, wipe = r.cli.progress("comparing", 1)
	err = r.compare(ctx)
	wipe()
	if err != nil {
		return err
	}
	if !r.dryRun {
		show, wipe = r.cli.progress("settling", int64(len(r.proofs)))
		err = r.settleAndStore(ctx, show)
		wipe()
		if err != nil {
			return err
		}
	}
	return r.list(ctx)
}

// load reads the file into the database. Numbers are not stored.
func (r *reconciler) load(
	ctx context.Context, options reconcile.Options, done func(lines int64),
) error {
	var keys []selector.Key
	var err error
	if !r.keyless {
		keys, err = drawKeys(r.l.settings, "numbers are hashed with, or give --without-keys")
		if err != nil {
			return err
		}
	}
	in, err := os.Open(r.file)
	if err != nil {
		return usage(fmt.Errorf("--file: %w", err))
	}
	defer in.Close() //nolint:errcheck // It was only read.
	sum := sha256.New()
	content := io.TeeReader(in, sum)
	file, err := reconcile.Open(filepath.Base(r.file), content, options)
	if err != nil {
		return usage(err)
	}
	defer file.Close() //nolint:errcheck // It was only read.
	if !file.Has(reconcile.Time) && r.from == "" {
		return usage(errors.New("the file has no times, so say with --from and --to what it is of"))
	}
	hashes := decide.NewKeyedHashes(keys)
	var line reconcile.Line
	var read int64
	lines, first, last, err := r.store.Load(ctx, func(p *ledger.ProviderLine) (bool, error) {
		if err := file.Next(&line); err != nil {
			if errors.Is(err, io.EOF) {
				return false, nil
			}
			return false, usage(err)
		}
		read++
		done(read)
		numbers := p.Numbers[:0]
		if line.Number != "" {
			numbers = hashes.OfNumber(numbers, line.Number)
		}
		*p = ledger.ProviderLine{
			Row: line.Row, Reference: line.Reference, Numbers: numbers, At: line.At,
			Segments: line.Segments, Nanos: line.Nanos, Priced: line.Priced,
			Currency: line.Currency, Taken: line.Taken,
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	if lines == 0 {
		return usage(fmt.Errorf("%s has no message", filepath.Base(r.file)))
	}
	if _, err := io.Copy(io.Discard, content); err != nil {
		return err
	}
	r.digest, r.found.Skipped = hex.EncodeToString(sum.Sum(nil)), file.Skipped
	if r.from == "" {
		r.period.From, r.period.To = first, last.Add(time.Microsecond)
	}
	if r.period.From.IsZero() {
		return usage(errors.New("no line has a time, so say with --from and --to what the file is of"))
	}
	return nil
}

// compare matches lines and attempts, and adds up the differences.
func (r *reconciler) compare(ctx context.Context) error {
	if err := r.store.MatchReferences(ctx, r.l.Reconciliations, r.period); err != nil {
		return err
	}
	var pairs []ledger.LinePair
	pairer := reconcile.Pairer{Within: r.tolerance}
	take := func(found []reconcile.Pair) {
		for _, p := range found {
			pairs = append(pairs, ledger.LinePair(p))
		}
	}
	for u, err := range r.store.Unpaired(ctx) {
		if err != nil {
			return err
		}
		take(pairer.Add(reconcile.Candidate(u)))
	}
	take(pairer.End())
	if err := r.store.Match(ctx, pairs); err != nil {
		return err
	}
	var err error
	if r.sums, err = r.store.Result(ctx); err != nil {
		return err
	}
	if r.proofs, err = r.store.Proofs(ctx); err != nil {
		return err
	}
	r.before, err = r.l.Reconciliations.Signed(ctx, r.period, r.digest)
	return err
}

// settleAndStore settles what the file proves and stores the result, unless it was stored before
// and nothing could be settled.
func (r *reconciler) settleAndStore(ctx context.Context, done func(proofs int64)) error {
	proofs := r.proofs
	if !r.leave && len(proofs) > 0 {
		if err := r.settle(ctx, proofs, done); err != nil {
			return err
		}
		if r.found.Resolved > 0 {
			if err := r.compare(ctx); err != nil {
				return err
			}
		}
		r.proofs = proofs // the earlier ones, for the list
	}
	if r.before != nil && r.found.Resolved == 0 {
		return nil
	}
	signed := ledger.Reconciliation{
		Author: r.author, Reason: r.reason, Resolved: r.found.Resolved,
	}
	err := r.store.SignOff(ctx, r.digest, r.before, &r.sums, &signed)
	if errors.Is(err, ledger.ErrSigned) {
		return failed(err)
	}
	r.before, r.found.Changed = &signed, true
	return err
}

// settle settles ambiguous submissions one by one, as "ambiguous settle" does. If it fails, what it
// has settled stays settled, and the next run continues.
func (r *reconciler) settle(
	ctx context.Context, proofs []ledger.Proof, done func(proofs int64),
) error {
	may, err := r.l.Reconciliations.MayResolve(ctx)
	if err != nil {
		return err
	}
	if !may {
		return usage(fmt.Errorf("the file tells what became of %s, and this login may settle none: "+
			"have an operator give this command first, or give --leave-ambiguous",
			counted(int64(len(proofs)), "ambiguous submission", "ambiguous submissions")))
	}
	if !r.yes {
		return usage(fmt.Errorf("the file tells what became of %s, and nothing was changed: look at "+
			"the list of --dry-run, then settle them with --yes, or give --leave-ambiguous",
			counted(int64(len(proofs)), "ambiguous submission", "ambiguous submissions")))
	}
	for i := range proofs {
		done(int64(i))
		p := &proofs[i]
		how := settleFlags{as: "not_taken", author: r.author, reason: fmt.Sprintf(
			"%s; reconciled with file %.12s", r.reason, r.digest)}
		if p.Taken {
			how.as, how.reference = "taken", p.Reference
		}
		if p.Line > 0 {
			how.reason += fmt.Sprintf(", line %d", p.Line)
		}
		_, why, err := control.Settle(ctx, r.l.Ledger, p.ID, p.Attempt, how.settlement())
		switch {
		case err != nil:
			return err
		case why != "":
			r.found.Left = append(r.found.Left, control.Left{ID: p.ID, Why: why})
		default:
			r.found.Resolved++
		}
	}
	return nil
}
