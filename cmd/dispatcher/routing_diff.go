package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"dispatcher/cmd/dispatcher/internal/control"
)

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
func (c *cli) compare(
	ctx context.Context, l *database, args []string,
) (*control.Comparison, error) {
	first, err := c.side(ctx, l, args[0])
	if err != nil {
		return nil, err
	}
	var second *control.Side
	if len(args) == 2 {
		second, err = c.side(ctx, l, args[1])
	} else {
		second, err = c.side(ctx, l, "")
	}
	if err != nil {
		return nil, err
	}
	if len(args) == 1 && !control.IsVersion(args[0]) {
		first, second = second, first
	}
	return control.Compare(first, second), nil
}

// side reads a version or a file; an empty arg is the version in force.
func (c *cli) side(ctx context.Context, l *database, arg string) (*control.Side, error) {
	if arg != "" && !control.IsVersion(arg) {
		doc, err := c.readDocument(arg)
		if err != nil {
			return nil, usage(err)
		}
		return control.FileSide(doc), nil
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
	return control.VersionSide(&v)
}

func (c *cli) printComparison(d *control.Comparison, as format) error {
	if as != formatTable {
		return as.write(c.out, d, changeSheet(d.Changes, as))
	}
	switch {
	case len(d.Changes) > 0:
		changeSheet(d.Changes, as).draw(c.out)
	case d.Unified != "":
		fmt.Fprintln(c.out, "Only comments or the layout differ.")
	default:
		fmt.Fprintf(c.out, "%s and %s are the same.\n", control.SideLabel(d.From),
			control.SideLabel(d.To))
	}
	if d.Unified != "" {
		fmt.Fprintf(c.out, "\n%s", d.Unified)
	}
	return nil
}
