package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/config"
	"dispatcher/ledger"
)

func (c *cli) routingCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "routing",
		Short: "Show, apply, compare and roll back versions of the routing document",
		Long: `The routing document lives in the database, each version with who applied it, when
and why. A change is in force for every claim that starts after it, on all instances, without a
restart.`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(
		c.routingShowCommand(), c.routingApplyCommand(), c.routingDiffCommand(),
		c.routingHistoryCommand(), c.routingRollbackCommand(),
	)
	return cmd
}

func (c *cli) routingApplyCommand() *cobra.Command {
	f := &changeFlags{}
	cmd := &cobra.Command{
		Use:   "apply FILE --reason TEXT",
		Short: "Apply a routing document as a new version",
		Long: `Checks the document, shows what it changes and applies it. "-" reads it from
standard input. A document that means the same as the one in force is not applied, unless --force
asks for it: that keeps new comments.

Two people who edit at the same time: --expect-version N refuses when somebody applied a document
after version N, which yours was made from.`,
		Args: arguments(1, 1),
		RunE: work(func(ctx context.Context, args []string) error {
			return c.withRouting(ctx, f, func(ch *change) error {
				return ch.write(ch.Make(ctx, func() (*config.Document, error) {
					return c.readDocument(args[0])
				}))
			})
		}),
	}
	cmd.Flags().BoolVar(&f.force, "force", false,
		"also apply a document that differs only in comments or layout")
	f.addTo(cmd, c)
	return cmd
}

func (c *cli) routingRollbackCommand() *cobra.Command {
	f := &changeFlags{}
	cmd := &cobra.Command{
		Use:   "rollback VERSION --reason TEXT",
		Short: "Apply the document of an old version as a new one",
		Args:  arguments(1, 1),
		RunE: work(func(ctx context.Context, args []string) error {
			version, err := versionNamed(args[0])
			if err != nil {
				return usage(err)
			}
			return c.withRouting(ctx, f, func(ch *change) error {
				return ch.write(ch.Rollback(ctx, version))
			})
		}),
	}
	f.addTo(cmd, c)
	return cmd
}

// storedVersion reads one version of the history.
func storedVersion(ctx context.Context, l *database, version int64) (ledger.RoutingVersion, error) {
	v, err := control.Version(ctx, l.Ledger, version)
	return v, inCommands(err)
}

// maxDocument is more bytes than a routing document may have.
const maxDocument = 2 << 20

// readDocument reads a routing document from a file, or from standard input for "-".
func (c *cli) readDocument(path string) (*config.Document, error) {
	name, text, err := c.readInput(path)
	if err != nil {
		return nil, err
	}
	return config.ParseDocument(name, text)
}

// readInput reads a file, or standard input for "-".
func (c *cli) readInput(path string) (name string, text []byte, err error) {
	if path == "-" {
		text, err = io.ReadAll(io.LimitReader(c.in, maxDocument))
		return "standard input", text, err
	}
	text, err = os.ReadFile(path)
	if err != nil {
		return path, nil, fmt.Errorf("%w; correct the path", err)
	}
	return path, text, nil
}

// versionShown is one version of the routing with its document.
type versionShown struct {
	Version   int64           `json:"version"`
	Base      int64           `json:"base"` // the version that brought the document
	Author    string          `json:"author"`
	Via       ledger.Via      `json:"via"`
	Reason    string          `json:"reason"`
	CreatedAt time.Time       `json:"created_at"`
	Effects   json.RawMessage `json:"effects"` // null when the weights are those of the document
	Document  string          `json:"document"`
}

func (c *cli) routingShowCommand() *cobra.Command {
	var as format
	var version int64
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Print the routing document in force, as it was applied",
		Args:  cobra.NoArgs,
		RunE: work(func(ctx context.Context, _ []string) error {
			if version < 0 {
				return usage(fmt.Errorf("--version %d is not a version", version))
			}
			return c.withLedger(ctx, func(l *database) error {
				return c.showRouting(ctx, l, version, as)
			})
		}),
	}
	cmd.Flags().Int64Var(&version, "version", 0, "an older version (default the one in force)")
	as.addTo(cmd.Flags())
	return cmd
}

func (c *cli) showRouting(ctx context.Context, l *database, version int64, as format) error {
	read := currentVersion
	if version > 0 {
		read = func(ctx context.Context, l *database) (ledger.RoutingVersion, error) {
			return storedVersion(ctx, l, version)
		}
	}
	v, err := read(ctx, l)
	if err != nil {
		return err
	}
	return c.printVersion(&v, as)
}

// printVersion prints only the document if the output may be a file. On a terminal it also prints
// who applied it.
func (c *cli) printVersion(v *ledger.RoutingVersion, as format) error {
	shown := versionShown{
		Version: v.Version, Base: v.Base, Author: v.Author, Via: v.Via, Reason: v.Reason,
		CreatedAt: v.CreatedAt, Effects: v.Effects, Document: v.Document,
	}
	if as != formatTable {
		return as.write(c.out, shown, list(as, []versionShown{shown}, keys[versionShown]("",
			"version", "base", "author", "reason", "created_at", "effects", "document", "via")...))
	}
	if isTerminal(c.out) {
		fmt.Fprintf(c.err, "# version %d by %s at %s: %s\n", v.Version, v.Author,
			v.CreatedAt.Format(instant), v.Reason)
	}
	out := c.out
	if !isTerminal(out) {
		out = direct(out) // a file gets it unchanged
	}
	_, err := io.WriteString(out, v.Document)
	return err
}
