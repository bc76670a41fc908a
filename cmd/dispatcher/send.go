package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dispatcher/cmd/dispatcher/internal/numbers"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/config"
)

// sendFlags are the arguments of send.
type sendFlags struct {
	file     string
	input    string // csv or jsonl; empty: by the file's name
	skipBad  bool
	lane     string
	topic    string
	region   string
	wait     bool
	timeout  time.Duration // of --wait
	as       format
	fields   map[string]*string // flags of one message, by envelope field
	labels   []string
	selector []string
	metadata []string
}

func (c *cli) sendCommand() *cobra.Command {
	f := sendFlags{fields: map[string]*string{}}
	cmd := &cobra.Command{
		Use:   "send",
		Short: "Put a message, or a file of messages, on a lane's topic",
		Long: `Publishes one message given by flags, or all messages of a file: CSV whose first row
names envelope fields (also label.KEY and metadata.KEY), or JSON lines. A file is checked
as a whole before anything is sent; with --skip-bad its good lines are sent all the same.

The id decides: who sends a file twice with the same ids sends each message once.

With --wait it follows one message on the status topic to its end, and exits with 0 only when it
was delivered, or accepted by a channel that sends no receipts.`,
		Example: `  dispatcher send --to +447700900123 --text "Your code is 123456" --lane otp
  dispatcher send --to +447700900123 --text "Hello" --wait --timeout 30s
  dispatcher send --file customers.csv --lane bulk --default-region GB
  generate | dispatcher send --file - --input jsonl`,
		Args: cobra.NoArgs,
		RunE: work(func(ctx context.Context, _ []string) error { return c.send(ctx, &f) }),
	}
	f.register(cmd.Flags())
	return cmd
}

func (f *sendFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.file, "file", "", "CSV or JSONL file of messages; - reads standard input")
	flags.StringVar(&f.input, "input", "", "csv or jsonl; by default the file's name decides, and "+
		"- is jsonl")
	flags.BoolVar(&f.skipBad, "skip-bad", false, "send the good lines of a file that has bad ones")
	flags.StringVar(&f.lane, "lane", "transactional", "lane, whose first topic is used")
	flags.StringVar(&f.topic, "topic", "", "topic, instead of the first one of --lane")
	flags.StringVar(&f.region, "default-region", "", "country of numbers without country code, "+
		"such as GB (default DISPATCHER_DEFAULT_REGION)")
	flags.BoolVar(&f.wait, "wait", false, "follow the message to its end on the status topic")
	flags.DurationVar(&f.timeout, "timeout", waitTimeout, "how long --wait waits")
	f.as.addTo(flags)
	for _, one := range []struct{ field, help string }{
		{"to", "recipient: a plus, country code and number"},
		{"text", "what the subscriber reads"},
		{"from", "sender id"},
		{"id", "your own id of the message, 1 to 64 characters (default a random one)"},
		{"tenant", "on whose behalf"},
		{"send_at", "earliest time, such as 2026-11-21T10:00:00Z"},
		{"expires_at", "latest time"},
		{"max_price", "most that the message may cost, such as 0.05"},
	} {
		f.fields[one.field] = flags.String(strings.ReplaceAll(one.field, "_", "-"), "", one.help)
	}
	flags.StringArrayVar(&f.labels, "label", nil, "key=value; may be repeated")
	flags.StringArrayVar(&f.selector, "selector", nil,
		`"key operator value" about a channel's labels; may be repeated`)
	flags.StringArrayVar(&f.metadata, "metadata", nil, "key=value that status events repeat; may "+
		"be repeated")
}

func (c *cli) send(ctx context.Context, f *sendFlags) error {
	if err := f.check(); err != nil {
		return usage(err)
	}
	s, err := c.settings(needKafka)
	if err != nil {
		return err
	}
	source, err := c.source(f, s)
	if err != nil {
		return err
	}
	defer source.close()
	checked, err := c.checkAll(f, source)
	if err != nil {
		return err
	}
	topic, err := c.topicOf(ctx, f, s)
	if err != nil {
		return err
	}
	var end *waiter
	if f.wait {
		if end, err = newWaiter(ctx, f, s); err != nil {
			return err
		}
		defer end.from.close()
	}
	began := time.Now()
	sent, err := c.publish(ctx, s, topic, source, checked.good)
	result := sendResult{
		Topic: topic, Sent: sent, Bad: checked.bad, NotSent: checked.good - sent,
		Seconds: time.Since(began).Seconds(), LastID: checked.lastID,
	}
	if err != nil && sent == 0 {
		return err
	}
	if end != nil && err == nil {
		return c.wait(ctx, f, end, &result)
	}
	if printed := c.printSent(f.as, &result); printed != nil || err != nil {
		return errors.Join(err, printed)
	}
	if checked.bad > 0 {
		return failed(nil) // each bad line was reported
	}
	return nil
}

// check refuses flags that exclude each other.
func (f *sendFlags) check() error {
	var given []string
	for name, value := range f.fields {
		if *value != "" {
			given = append(given, "--"+strings.ReplaceAll(name, "_", "-"))
		}
	}
	slices.Sort(given)
	for name, list := range map[string][]string{
		"--label": f.labels, "--selector": f.selector,
		"--metadata": f.metadata,
	} {
		if len(list) > 0 {
			given = append(given, name)
		}
	}
	switch {
	case f.file != "" && len(given) > 0:
		return fmt.Errorf("--file and %s exclude each other: the file holds the whole messages",
			given[0])
	case f.file == "" && (*f.fields["to"] == "" || *f.fields["text"] == ""):
		return errors.New("name --to and --text for one message, or --file for many")
	case f.wait && f.file != "":
		return errors.New("--wait follows one message, so it does not go with --file; " +
			"\"dispatcher tail\" follows many")
	case f.timeout <= 0:
		return errors.New("--timeout must be above 0")
	case f.input != "" && f.input != "csv" && f.input != "jsonl":
		return errors.New("--input must be csv or jsonl")
	}
	return nil
}

// draft is the message that the flags describe.
func (f *sendFlags) draft(r numbers.Region) (*draft, error) {
	d := newDraft()
	for name, value := range f.fields {
		if name == "to" {
			*value = r.E164(*value)
		}
		if err := d.set(name, *value); err != nil {
			return nil, fmt.Errorf("--%w", err)
		}
	}
	if *f.fields["id"] == "" {
		d.fields["id"] = strings.ToLower(rand.Text())
	}
	for prefix, list := range map[string][]string{"label.": f.labels, "metadata.": f.metadata} {
		for _, pair := range list {
			key, value, ok := strings.Cut(pair, "=")
			if !ok || value == "" {
				return nil, fmt.Errorf("--%s is not key=value", strings.TrimSuffix(prefix, "."))
			}
			if err := d.set(prefix+key, value); err != nil {
				return nil, err
			}
		}
	}
	for _, text := range f.selector {
		if err := d.addSelectors(text); err != nil {
			return nil, fmt.Errorf("--selector: %w", err)
		}
	}
	return d, nil
}

// topicOf is the named topic, or the first topic of the lane in the routing in force.
func (c *cli) topicOf(ctx context.Context, f *sendFlags, s *config.Settings) (string, error) {
	if f.topic != "" {
		return f.topic, nil
	}
	lanes, err := c.lanes(ctx, s)
	if err != nil {
		return "", err
	}
	names := make([]string, len(lanes))
	for i, lane := range lanes {
		if lane.Name == f.lane {
			return lane.Topics[0], nil
		}
		names[i] = lane.Name
	}
	return "", usage(fmt.Errorf("there is no lane %q; choose one of %s", f.lane, strings.Join(names,
		", ")))
}

// sendResult is what the command prints.
type sendResult struct {
	Topic   string  `json:"topic"`
	Sent    int64   `json:"sent"`
	Bad     int64   `json:"bad"`
	NotSent int64   `json:"not_sent"`
	Seconds float64 `json:"seconds"`
	LastID  string  `json:"last_id"`
}

func (c *cli) printSent(as format, r *sendResult) error {
	err := as.write(c.out, r, list(as, []sendResult{*r}, []column[sendResult]{
		{key: "topic"},
		{key: "sent"},
		{key: "bad"},
		{key: "not_sent"},
		{name: "seconds", right: true, cell: func(r *sendResult) any {
			return fmt.Sprintf("%.2f", r.Seconds)
		}},
		{key: "last_id"},
	}...))
	if err == nil && as == formatTable && r.Sent > 0 {
		_, err = io.WriteString(c.out, nextSteps(c.self(), r))
	}
	return err
}

// nextSteps says how to see what happened to the messages.
func nextSteps(self string, r *sendResult) string {
	s := "\nWhat became of it:\n  " + self + " explain " + quoted(r.LastID) + "\n"
	if r.Sent > 1 {
		s += "  " + self + " report daily\n"
	}
	return s
}

// quoted makes a word safe to copy into a shell.
func quoted(word string) string { return report.Quoted(word) }
