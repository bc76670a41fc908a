package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/config"
)

// previewFlags are the arguments of preview.
type previewFlags struct {
	file, day string
	against   versionFlag // not given: the record
	as        format
}

func (c *cli) previewCommand() *cobra.Command {
	f := &previewFlags{as: formatTable, against: versionFlag{least: 1}}
	cmd := &cobra.Command{
		Use:   "preview --routing FILE",
		Short: "Show what a routing document's weights come to, alone or with a day's traffic",
		Long: `Shows the interval of every channel. That needs nothing but the document.

With --day or --against it also takes the messages of a day that has passed from the database and tells what
they would come to under the document: messages, segments and cost of each channel, and how many would have had
another first choice. The draws are made again, each message's under its own key, with the keys of
DISPATCHER_DRAW_KEY_FILE; a message whose key is not there is counted by the shares of the weights.
It does not apply price_cap, senders, blocked and limits, which pass a drawn channel over.
Nothing is applied and nothing is sent.`,
		Args: cobra.NoArgs,
		RunE: work(func(ctx context.Context, _ []string) error {
			if f.file == "" {
				return usage(errors.New("--routing is missing: name a routing document"))
			}
			return c.preview(ctx, f)
		}),
	}
	cmd.Flags().StringVar(&f.file, "routing", "", "routing document")
	cmd.Flags().StringVar(&f.day, "day", "", "compare with the traffic of a day such as 2026-11-20 (with --against: yesterday unless given)")
	cmd.Flags().Var(&f.against, "against", "compare with what this routing version would choose, not with what was recorded")
	cmd.Flags().Var(&f.as, "format", "output format")
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
	if s, err := config.Load(); err == nil { // what is wrong with them is no matter of the document
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
		return as.print(c.out, preview, previewSheet(&preview, as))
	case as == formatCSV:
		return as.print(c.out, preview, trafficSheet(preview.Traffic, as))
	}
	previewSheet(&preview, formatTable).draw(c.out)
	return c.printTraffic(preview.Traffic)
}

func previewSheet(p *report.Preview, as format) sheet {
	s := sheet{header: []string{"route", "mode", "size", "channel", "weight", "low", "high", "share"}, right: []int{3, 5, 6, 7, 8}}
	for _, route := range p.Routes {
		for _, iv := range route.Intervals {
			s.rows = append(s.rows, []string{
				route.Route, route.Mode, strconv.FormatUint(route.Size, 10), iv.Channel, decimal(iv.Weight),
				bound(iv.Low), bound(iv.High), as.share(iv.Share),
			})
		}
	}
	return s
}

// bound is one end of an interval; a channel of weight 0 has none.
func bound(n *uint64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatUint(*n, 10)
}
