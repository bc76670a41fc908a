package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"dispatcher/ledger"
)

// versionShown is one version of the routing with its document.
type versionShown struct {
	Version   int64           `json:"version"`
	Base      int64           `json:"base"` // the version that brought the document
	Author    string          `json:"author"`
	Reason    string          `json:"reason"`
	CreatedAt time.Time       `json:"created_at"`
	Effects   json.RawMessage `json:"effects"` // null when the weights are those of the document
	Document  string          `json:"document"`
}

func (c *cli) routingShowCommand() *cobra.Command {
	as := format(formatTable)
	var version int64
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Print the routing document in force, as it was applied",
		Args:  cobra.NoArgs,
		RunE: work(func(ctx context.Context, _ []string) error {
			if version < 0 {
				return usage(fmt.Errorf("--version %d is no version", version))
			}
			return c.showRouting(ctx, version, as)
		}),
	}
	cmd.Flags().Int64Var(&version, "version", 0, "an older version (default the one in force)")
	cmd.Flags().Var(&as, "format", "output format")
	return cmd
}

func (c *cli) showRouting(ctx context.Context, version int64, as format) error {
	s, l, err := c.ledger(ctx)
	if err != nil {
		return err
	}
	defer l.Close()
	var v ledger.RoutingVersion
	if version > 0 {
		v, err = storedVersion(ctx, l, s, version)
	} else {
		v, err = currentVersion(ctx, l, s)
	}
	if err != nil {
		return err
	}
	return c.printVersion(&v, as)
}

// printVersion prints the document alone where it may go into a file, and who applied it beside
// it on a terminal.
func (c *cli) printVersion(v *ledger.RoutingVersion, as format) error {
	shown := versionShown{
		Version: v.Version, Base: v.Base, Author: v.Author, Reason: v.Reason, CreatedAt: v.CreatedAt, Effects: v.Effects, Document: v.Document,
	}
	if as != formatTable {
		return as.print(c.out, shown, sheet{
			header: []string{"version", "base", "author", "reason", "created_at", "effects", "document"},
			rows: [][]string{{
				number(v.Version), number(v.Base), v.Author, v.Reason, v.CreatedAt.Format(time.RFC3339), string(v.Effects), v.Document,
			}},
		})
	}
	if isTerminal(c.out) {
		fmt.Fprintf(c.err, "# version %d by %s at %s: %s\n", v.Version, v.Author, v.CreatedAt.Format(instant), v.Reason)
	}
	out := c.out
	if !isTerminal(out) {
		out = direct(out) // a file gets it byte for byte
	}
	_, err := io.WriteString(out, v.Document)
	return err
}
