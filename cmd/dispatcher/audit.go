package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dispatcher/cmd/dispatcher/internal/app"
	"dispatcher/cmd/dispatcher/internal/audit"
	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/evidence"
	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/selector"
)

func (c *cli) auditCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Derive the choices of a day again, and check the guarantees",
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(c.auditVerifyCommand(), c.auditProofCommand(), c.auditKeyCommand(),
		c.auditInvariantsCommand())
	return cmd
}

func (c *cli) auditVerifyCommand() *cobra.Command {
	var as format
	var day string
	var sample int
	var keyless bool
	var sealKeys, checkpoint string
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Derive each stored choice of a day again: draw, interval, ranking, price",
		Long: `Takes each message that was received on the day and makes its choices again: the
route and the segments from its envelope, the draw from its id and the draw key, the interval from
the routing version, the ranking from the state that was stored with it, the price from the
version. The version has to have been in force at the time. What differs from the record is
counted by kind, the first 1000 are listed, and the exit code is 1. Nothing is changed.

Of messages whose number and text were removed because DISPATCHER_PAYLOAD_RETENTION was over, all
is checked that does not follow from these, and the rest is counted and named: what can be checked
decides about the exit code. Stored numbers and texts are compared with the hashes of their
messages, also with a login that may not read them.

The draw keys are those of DISPATCHER_DRAW_KEY_FILE: keep the old ones in it, below the current
one. Who has none gives --without-keys: then draws are taken as they are on record, and all else is
checked, also that each draw is in the interval of the channel that it chose.`,
		Args: cobra.NoArgs,
		RunE: work(func(ctx context.Context, _ []string) error {
			if sample < 0 {
				return usage(errors.New("--sample must be above 0: how many messages of the day " +
					"to look at"))
			}
			return c.withLedger(ctx, func(l *database) error {
				return c.verify(ctx, l, &verifyFlags{day, sample, keyless, sealKeys, checkpoint, as})
			})
		}),
	}
	cmd.Flags().StringVar(&day, "day", "",
		"day such as 2026-11-21, in the time zone that was in force when it ended (default today)")
	cmd.Flags().IntVar(&sample, "sample", 0,
		"check only this many messages, evenly spread over the day and the same ones each time "+
			"(default all)")
	cmd.Flags().BoolVar(&keyless, "without-keys", false, "check all but the draws themselves")
	cmd.Flags().StringVar(&sealKeys, "seal-keys", "", "file with the verifier keys of the log of "+
		"hashes (default DISPATCHER_SEAL_KEY_FILE; without either the log is not looked at)")
	cmd.Flags().StringVar(&checkpoint, "checkpoint", "", "file with a checkpoint of the log that was "+
		"kept elsewhere: the log must still have it, and lead from the day to it")
	as.addTo(cmd.Flags())
	return cmd
}

// listedMismatches is how many differences are listed; all are counted.
const listedMismatches = 1000

// verification is the result of audit verify.
type verification struct {
	Day      string `json:"day"`
	Timezone string `json:"timezone"`
	Checked  int    `json:"checked"`
	Attempts int    `json:"attempts"`
	// Mismatched counts all differences and ByKind those of each kind. Mismatches lists the first of
	// them.
	Mismatched int              `json:"mismatched"`
	ByKind     map[string]int   `json:"by_kind"`
	Mismatches []audit.Mismatch `json:"mismatches"`
	// WithoutPayload counts the messages whose number and text are gone, and what could not be checked
	// for that reason.
	WithoutPayload audit.WithoutPayload `json:"without_payload"`
	// WithoutKey counts the messages that were not drawn again because keys are missing.
	WithoutKey int `json:"without_key,omitempty"`
	// Payloads counts the payloads that were compared with their messages, with any login.
	Payloads ledger.ComparedPayloads `json:"payloads"`
	// Sealed is the comparison with the log of hashes; nil when no key of the log was available.
	Sealed *evidence.Compared `json:"sealed"`
}

// verifyFlags say what to verify.
type verifyFlags struct {
	day     string
	sample  int
	keyless bool
	seals   string
	// checkpoint is a file with a checkpoint that was kept elsewhere.
	checkpoint string
	as         format
}

// add counts the differences of one message.
func (v *verification) add(found []audit.Mismatch) {
	v.Mismatched += len(found)
	for i := range found {
		v.ByKind[found[i].What]++
	}
	v.Mismatches = append(v.Mismatches,
		found[:min(len(found), listedMismatches-len(v.Mismatches))]...)
}

// verify derives the day again. It needs the keys of the day's draws.
func (c *cli) verify(ctx context.Context, l *database, f *verifyFlags) error {
	if f.checkpoint != "" && cmp.Or(f.seals, l.settings.SealKeyFile) == "" {
		return usage(errors.New("--checkpoint needs the verifier keys of the log: give --seal-keys, " +
			"or set DISPATCHER_SEAL_KEY_FILE"))
	}
	var keys []selector.Key
	var err error
	if !f.keyless {
		keys, err = drawKeys(l.settings, "the messages were drawn with, or give --without-keys")
		if err != nil {
			return err
		}
	}
	when, zone, err := businessDay(ctx, l, f.day, time.Now())
	if err != nil {
		return err
	}
	day := ledger.NewBusinessDay(when, zone)
	found := verification{
		Day: day.Date, Timezone: day.Zone,
		ByKind: map[string]int{}, Mismatches: []audit.Mismatch{},
	}
	verifier := audit.NewVerifier(keys, (&versions{ctx: ctx, ledger: l.Ledger}).edition)
	filter := ledger.ChoiceFilter{From: day.From, To: day.To, Sample: f.sample}
	minutes := func(at time.Time) int64 { return int64(at.Sub(day.From) / time.Minute) }
	show, wipe := c.progress("verifying minutes", minutes(day.To))
	err = l.Messages.EachChoice(ctx, filter, func(r *ledger.Record) error {
		show(minutes(r.Message.ReceivedAt))
		found.Checked++
		found.Attempts += len(r.Attempts)
		mismatches, err := verifier.Verify(r)
		found.add(mismatches)
		return err
	})
	wipe()
	if err != nil {
		return err
	}
	_, wipe = c.progress("comparing with payloads, limits and receipts", 1)
	defer func() { wipe() }()
	if err := found.compare(ctx, l, &day); err != nil {
		return err
	}
	if path := cmp.Or(f.seals, l.settings.SealKeyFile); path != "" {
		now, err := l.Clock(ctx)
		if err != nil {
			return err
		}
		wipe()
		show, wipe = c.progress("comparing hours with the log", int64(day.To.Sub(day.From)/time.Hour))
		s, err := verifySeals(ctx, l, path, f.checkpoint, day, now, found.add, show)
		if err != nil {
			return err
		}
		found.Sealed = &s
	}
	wipe()
	found.WithoutPayload, found.WithoutKey = verifier.WithoutPayload(), verifier.WithoutKey()
	return c.printVerification(&found, f.as)
}

// compare compares the day with payloads, limits, receipts and sums.
func (v *verification) compare(
	ctx context.Context, l *database, day *ledger.BusinessDay,
) (err error) {
	v.Payloads, err = l.Sealed.Payloads(ctx, day.From, day.To,
		func(changed []ledger.ChangedPayload) { v.add(changedPayloads(changed)) })
	if err != nil {
		return err
	}
	uncounted, err := l.Limits.Uncounted(ctx, day.From, day.To)
	if err != nil {
		return err
	}
	v.add(missedByLimits(uncounted))
	overspent, err := l.Limits.Overspent(ctx, day.From, day.To)
	if err != nil {
		return err
	}
	v.add(beyondBudgets(overspent))
	misfits, err := l.Receipts.Misfits(ctx, day.From, day.To)
	if err != nil {
		return err
	}
	v.add(misfitReceipts(misfits))
	sums, err := l.Sealed.WrongSums(ctx, day.Date)
	if err != nil {
		return err
	}
	v.add(wrongSums(day.Date, sums))
	return nil
}

// versions provides the routing versions of a day's choices to the auditor.
type versions struct {
	ctx    context.Context //nolint:containedctx // Lives for one command, as its callback.
	ledger *ledger.Ledger
}

// effectsOverlap is how long claims may still use a version after effects replaced it. Effects lock
// no channel, so a claim may have read the version before them until its transaction has committed.
const effectsOverlap = 5 * time.Second

// edition reads a version and when it was in force. A version that is missing, or can no longer be
// compiled, is not an error: the audit reports it.
func (v *versions) edition(version int64) (e audit.Edition, err error) {
	stored, err := v.ledger.Routing.Version(v.ctx, version)
	if errors.Is(err, ledger.ErrNoRouting) {
		return audit.Edition{Trouble: "no such version was applied"}, nil
	}
	if err != nil {
		return e, fmt.Errorf("%s: %w", config.VersionName(version), err)
	}
	e.From = stored.CreatedAt
	next, err := v.ledger.Routing.Version(v.ctx, version+1)
	switch {
	case err == nil:
		e.Until = next.CreatedAt
		if next.Base < next.Version {
			e.Overlap = effectsOverlap
		}
	case !errors.Is(err, ledger.ErrNoRouting):
		return e, fmt.Errorf("%s: %w", config.VersionName(version+1), err)
	}
	doc, err := control.StoredRouting(&stored)
	if err == nil {
		e.Bounded = boundedIn(doc)
		e.Routing, err = app.Compile(doc, version)
	}
	if err != nil {
		e.Routing, e.Trouble = nil, "its document cannot be used any more"
	} else if !reflect.DeepEqual(stored.Routes, decide.RouteSpecs(doc)) {
		e.Routing, e.Trouble = nil, "its routes are not those of its document"
	}
	return e, nil
}

// boundedIn are the channels whose document bounds their attempts in flight.
func boundedIn(doc *config.Routing) map[string]bool {
	bounded := make(map[string]bool, len(doc.Channels))
	for i := range doc.Channels {
		bounded[doc.Channels[i].Name] = doc.Channels[i].Active.Max > 0
	}
	return bounded
}

// title counts what was checked and what differs.
func (v *verification) title() string {
	var kinds strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(v.ByKind)) {
		fmt.Fprintf(&kinds, ", %d %s", v.ByKind[kind], kind)
	}
	differences := "differences"
	if v.Mismatched == 1 {
		differences = "difference"
	}
	title := fmt.Sprintf("%s, %s: %d messages and %d attempts derived again, %d %s: %s",
		v.Day, v.Timezone, v.Checked, v.Attempts, v.Mismatched, differences,
		strings.TrimPrefix(kinds.String(), ", "))
	if v.Mismatched > len(v.Mismatches) {
		title += fmt.Sprintf("; the first %d", len(v.Mismatches))
	}
	return title
}

func verificationSheet(v *verification, as format) sheet {
	s := list(as, v.Mismatches, []column[audit.Mismatch]{
		{key: "id", name: "message"},
		{key: "attempt"},
		{key: "what"},
		{key: "stored"},
		{key: "derived"},
	}...)
	s.title = v.title()
	return s
}

// printVerification lists the differences; the exit code says whether there are any.
func (c *cli) printVerification(v *verification, as format) error {
	s := verificationSheet(v, as)
	if as == formatTable && v.Mismatched == 0 {
		fmt.Fprintf(c.out, "%s, %s: %d messages and %d attempts derived again; every choice is as "+
			"it is on record\n", v.Day, v.Timezone, v.Checked, v.Attempts)
	} else if err := as.write(c.out, v, s); err != nil {
		return err
	}
	if as == formatTable {
		fmt.Fprint(c.out, v.gone())
		if v.WithoutKey > 0 {
			fmt.Fprintf(c.out, "%d messages were not drawn again: no keys\n", v.WithoutKey)
		}
		fmt.Fprint(c.out, v.payloads(), v.sealed())
	}
	if v.Mismatched > 0 {
		return failed(nil)
	}
	return nil
}
