package main

import (
	"context"
	"fmt"
	"strconv"

	udiff "github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/config"
)

// comparison is the difference of two routing documents.
type comparison struct {
	From    string         `json:"from"` // a version's number or a file's name
	To      string         `json:"to"`
	Changes []control.Line `json:"changes"`
	// Unified is the difference of the texts, in the format of patch.
	Unified string `json:"unified"`
}

// side is one of the two documents.
type side struct {
	name, document string
	routing        *config.Routing // with the effects of a version
	// without effects: a file has none, and takes over those in force when applied
	plain *config.Routing
	file  bool
}

func (c *cli) routingDiffCommand() *cobra.Command {
	var as format
	var found bool
	cmd := &cobra.Command{
		Use:   "diff FILE | diff VERSION [VERSION]",
		Short: "Compare two versions, or a file with the version in force",
		Long: `Shows what differs in meaning, then how the texts differ. With one file: from the
version in force to the file. With one version: from it to the version in force. With two: from
the first to the second. A number is a version; write ./3 for a file of that name.`,
		Args: arguments(1, 2),
		RunE: work(func(ctx context.Context, args []string) error {
			return c.withLedger(ctx, func(l *database) error {
				difference, err := c.compare(ctx, l, args)
				if err != nil {
					return err
				}
				if err := c.printComparison(difference, as); err != nil {
					return err
				}
				if found && len(difference.Changes) > 0 {
					return failed(nil)
				}
				return nil
			})
		}),
	}
	cmd.Flags().BoolVar(&found, "exit-code", false, "exit with 1 when the meaning differs")
	as.addTo(cmd.Flags())
	return cmd
}

// compare reads both sides.
func (c *cli) compare(ctx context.Context, l *database, args []string) (*comparison, error) {
	first, err := c.side(ctx, l, args[0])
	if err != nil {
		return nil, err
	}
	var second *side
	if len(args) == 2 {
		second, err = c.side(ctx, l, args[1])
	} else {
		second, err = c.side(ctx, l, "")
	}
	if err != nil {
		return nil, err
	}
	if len(args) == 1 && !isVersion(args[0]) {
		first, second = second, first
	}
	return &comparison{
		From: first.name, To: second.name, Changes: first.changesTo(second),
		Unified: udiff.Unified(label(first.name), label(second.name), first.document,
			second.document),
	}, nil
}

// side reads a version or a file; an empty arg is the version in force.
func (c *cli) side(ctx context.Context, l *database, arg string) (*side, error) {
	if arg != "" && !isVersion(arg) {
		doc, err := c.readDocument(arg)
		if err != nil {
			return nil, usage(err)
		}
		return &side{
			name: doc.Name, document: string(doc.Text), routing: doc.Routing,
			plain: doc.Routing, file: true,
		}, nil
	}
	v, err := currentVersion(ctx, l)
	if err == nil && arg != "" {
		var version int64
		if version, err = versionNamed(arg); err != nil {
			return nil, usage(err)
		}
		v, err = storedVersion(ctx, l, version)
	}
	if err != nil {
		return nil, err
	}
	doc, routing, err := control.Stored(&v)
	if err != nil {
		return nil, err
	}
	return &side{
		name: number(v.Version), document: v.Document, routing: routing,
		plain: doc.Routing,
	}, nil
}

// changesTo compares two versions with their effects, but a file with the document of a version.
func (s *side) changesTo(other *side) []control.Line {
	if s.file || other.file {
		return control.VersionDiff(s.plain, other.plain)
	}
	return control.VersionDiff(s.routing, other.routing)
}

// isVersion reports whether an argument is a version's number and not a file's name.
func isVersion(arg string) bool {
	_, err := strconv.ParseUint(arg, 10, 63)
	return err == nil
}

// label is the name of a side in the unified difference.
func label(name string) string {
	if isVersion(name) {
		return "version " + name
	}
	return name
}

func (c *cli) printComparison(d *comparison, as format) error {
	if as != formatTable {
		return as.write(c.out, d, changeSheet(d.Changes, as))
	}
	switch {
	case len(d.Changes) > 0:
		changeSheet(d.Changes, as).draw(c.out)
	case d.Unified != "":
		fmt.Fprintln(c.out, "Only comments or the layout differ.")
	default:
		fmt.Fprintf(c.out, "%s and %s are the same.\n", label(d.From), label(d.To))
	}
	if d.Unified != "" {
		fmt.Fprintf(c.out, "\n%s", d.Unified)
	}
	return nil
}
