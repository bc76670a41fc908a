package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dispatcher/cmd/dispatcher/internal/sandbox"
	"dispatcher/config"
)

type sandboxFlags struct {
	plan      string
	providers []string
	profile   sandbox.Profile
	routing   string
	secrets   string
	listen    string
	receipts  string
	as        format
}

func (c *cli) sandboxCommand() *cobra.Command {
	f := &sandboxFlags{profile: sandbox.Usual()}
	cmd := &cobra.Command{
		Use:   "sandbox",
		Short: "Play carriers on this machine: SMPP and the API of every vendor, with receipts",
		Long: `Plays scripted carriers on loopback until Ctrl-C, and then says what they have
seen. They take messages as the real ones do, answer as the profile says and call back with signed
receipts; nothing is sent to anybody. With --routing it writes a routing document with an account
at each of them, good for "dispatcher run" at once:

  dispatcher sandbox --routing sandbox.yaml
  # in another terminal, over a new data folder:
  DISPATCHER_ROUTING_FILE=sandbox.yaml dispatcher run --embedded

The secrets of the accounts are files in DISPATCHER_SECRETS_DIR, from which the dispatcher takes
them.

Ratios are parts of 1 and are kept evenly. deploy/sandbox.yaml shows a plan with a profile for
each carrier.`,
		Args: cobra.NoArgs,
	}
	cmd.RunE = work(func(ctx context.Context, _ []string) error {
		if f.plan != "" && cmd.Flags().Changed("providers") {
			return usage(errors.New("--plan and --providers exclude each other: the plan names " +
				"its carriers"))
		}
		return c.sandbox(ctx, f)
	})
	f.add(cmd.Flags())
	return cmd
}

func (f *sandboxFlags) add(flags *pflag.FlagSet) {
	p := &f.profile
	flags.StringVar(&f.plan, "plan", "", "YAML file with the carriers; without it there is one of "+
		"each kind")
	flags.StringSliceVar(&f.providers, "providers", sandbox.Providers(),
		"kinds of carriers, without --plan")
	flags.DurationVar(&p.Latency, "latency", p.Latency, "delay of each answer")
	flags.DurationVar(&p.Jitter, "jitter", p.Jitter,
		"random delay of up to this much on top of --latency")
	flags.IntVar(&p.Rate, "rate", p.Rate,
		"throttle submits above this many in a second; 0 is no limit")
	flags.Float64Var(&p.Reject, "reject", p.Reject,
		"part of the submits that is rejected, as if the message were at fault")
	flags.Float64Var(&p.Refuse, "refuse", p.Refuse,
		"part of the submits that is refused, as if the carrier were at fault")
	flags.Float64Var(&p.Throttle, "throttle", p.Throttle, "part of the submits that is throttled")
	flags.Float64Var(&p.Lose, "lose", p.Lose, "part of the submits that is never answered")
	flags.Float64Var(&p.Cut, "cut", p.Cut, "part of the submits whose connection is dropped")
	flags.Float64Var(&p.Receipts, "receipts", p.Receipts,
		"part of the accepted submits that gets a receipt")
	flags.DurationVar(&p.ReceiptDelay, "receipt-delay", p.ReceiptDelay,
		"time from the answer to the receipt")
	flags.Float64Var(&p.Delivered, "delivered", p.Delivered,
		"part of the receipts that say delivered; the others say undelivered")
	flags.Float64Var(&p.Early, "early", p.Early, "part of the receipts that come before the answer")
	flags.Float64Var(&p.Duplicates, "duplicates", p.Duplicates,
		"part of the receipts that come twice")
	flags.StringVar(&f.routing, "routing", "",
		"write a routing document with these carriers to this file")
	flags.StringVar(&f.secrets, "secrets", "",
		"folder for the secrets of the accounts (default DISPATCHER_SECRETS_DIR, or else secrets "+
			"in DISPATCHER_DATA_DIR)")
	flags.StringVar(&f.listen, "listen", "127.0.0.1:0", "address of the status page")
	flags.StringVar(&f.receipts, "receipts-url", "",
		"where the dispatcher takes receipts (default DISPATCHER_PUBLIC_URL, or else the address "+
			"of DISPATCHER_RECEIPTS_LISTEN)")
	f.as.addTo(flags)
}

func (c *cli) sandbox(ctx context.Context, f *sandboxFlags) error {
	cfg, err := f.config(c.load)
	if err != nil {
		return usage(err)
	}
	running, err := sandbox.Start(cfg)
	if err != nil {
		return usage(err)
	}
	defer running.Close()
	page, err := running.Serve(ctx, f.listen)
	if err != nil {
		return usage(err)
	}
	defer page.Close() //nolint:errcheck // nobody looks any more
	if f.routing != "" {
		if err := running.WriteRouting(f.routing); err != nil {
			return err
		}
	}
	if err := c.sandboxEndpoints(f, running, page.URL()); err != nil {
		return err
	}
	<-ctx.Done()
	return c.sandboxCounts(f, running.Counts())
}

// config is the configuration that the flags describe.
func (f *sandboxFlags) config(
	load func() (config.Settings, error),
) (sandbox.Config, error) {
	settings, err := load()
	if err != nil {
		return sandbox.Config{}, err
	}
	cfg := sandbox.Config{
		Folder:   cmp.Or(f.secrets, settings.Secrets().Path()),
		Receipts: cmp.Or(f.receipts, settings.PublicURL, "http://"+settings.ReceiptsListen),
	}
	if u, err := url.Parse(cfg.Receipts); err != nil || u.Host == "" || u.Scheme != "http" &&
		u.Scheme != "https" || u.RawQuery != "" || u.Fragment != "" {
		return cfg, errors.New("--receipts-url is not an http or https URL without a query; " +
			"write for example http://127.0.0.1:8081")
	}
	if err := f.check(); err != nil {
		return cfg, err
	}
	if f.plan == "" {
		cfg.Plan = sandbox.Each(f.providers, f.profile)
		return cfg, cfg.Plan.Validate()
	}
	text, err := os.ReadFile(f.plan)
	if err != nil {
		return cfg, fmt.Errorf("--plan: %w; correct the path", err)
	}
	if cfg.Plan, err = sandbox.ParsePlan(text, f.profile); err != nil {
		return cfg, fmt.Errorf("%s: %w", f.plan, err)
	}
	return cfg, nil
}

// check reports faults with the names of the flags.
func (f *sandboxFlags) check() error {
	faults := []error{f.profile.Check(func(key string) string {
		return "--" + strings.ReplaceAll(key, "_", "-")
	})}
	if err := sandbox.CheckLoopback(f.listen); err != nil {
		faults = append(faults, fmt.Errorf("--listen: %w", err))
	}
	if f.plan == "" && len(f.providers) == 0 {
		faults = append(faults, errors.New("--providers: names none"))
	}
	for i, word := range f.providers {
		if err := sandbox.CheckProvider(word); err != nil {
			faults = append(faults, fmt.Errorf("--providers: %w", err))
		} else if slices.Contains(f.providers[:i], word) {
			faults = append(faults, fmt.Errorf("--providers: %q is there twice; a --plan can have "+
				"several carriers of a kind, each with a name of its own", word))
		}
	}
	return errors.Join(faults...)
}

// sandboxEndpoints prints where the carriers listen; as JSON on one line, because another line
// follows at the end.
func (c *cli) sandboxEndpoints(f *sandboxFlags, s *sandbox.Sandbox, page string) error {
	if f.as == formatJSON {
		return json.NewEncoder(c.out).Encode(struct {
			Carriers []sandbox.Endpoint `json:"carriers"`
			Page     string             `json:"page"`
			Routing  string             `json:"routing,omitempty"`
			Secrets  string             `json:"secrets"`
		}{s.Endpoints(), page, f.routing, s.Secrets()})
	}
	endpoints := list(f.as, s.Endpoints(),
		keys[sandbox.Endpoint]("", "channel", "provider", "address")...)
	if err := f.as.write(c.out, nil, endpoints); err != nil {
		return err
	}
	if f.as == formatCSV {
		return nil
	}
	fmt.Fprintf(c.out, "\nWhat they see: %s\n", page)
	if f.routing != "" {
		fmt.Fprintln(c.out, "In another terminal:")
		fmt.Fprintf(c.out, "  # a dispatcher over a data folder that has no routing yet\n  "+
			"DISPATCHER_SECRETS_DIR=%s DISPATCHER_ROUTING_FILE=%s %s run --embedded\n",
			quoted(s.Secrets()), quoted(f.routing), c.self())
		c.suggest("or one that runs already with that DISPATCHER_SECRETS_DIR",
			"routing apply "+f.routing+" --reason 'trying the sandbox'")
	}
	fmt.Fprintln(c.out, "Ctrl-C ends them.")
	return nil
}

// sandboxCounts prints what the carriers have seen.
func (c *cli) sandboxCounts(f *sandboxFlags, counts []sandbox.Count) error {
	unread := 0
	for _, n := range counts {
		unread += n.Unread
	}
	var err error
	if f.as == formatJSON {
		err = json.NewEncoder(c.out).Encode(map[string]any{"summary": counts})
	} else {
		err = f.as.write(c.out, nil, countSheet(counts, f.as))
	}
	if err != nil {
		return err
	}
	if unread > 0 {
		return failed(fmt.Errorf("%d requests could not be read by their carrier: an account of an "+
			"older sandbox, or a fault of an adapter", unread))
	}
	return nil
}

// countSheet has a row for each carrier. In a table the header is broken into lines, so that it
// fits a terminal.
func countSheet(counts []sandbox.Count, as format) sheet {
	s := list(as, counts, []column[sandbox.Count]{
		{key: "channel", width: 16},
		{key: "submitted", head: "sub-\nmitted"},
		{key: "accepted", head: "accep-\nted"},
		{key: "rejected", head: "rejec-\nted"},
		{key: "refused"},
		{key: "throttled", head: "throt-\ntled"},
		{key: "lost"},
		{key: "delivered", head: "deliv-\nered"},
		{key: "undelivered", head: "undeliv-\nered"},
		{key: "without_receipt", head: "no\nreceipt"},
		{key: "calls_refused", head: "calls\nrefused"},
		{key: "unread"},
	}...)
	s.tight = true
	return s
}
