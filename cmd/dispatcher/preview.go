package main

import (
	"context"
	"errors"
	"strconv"

	"github.com/spf13/cobra"

	"dispatcher/cmd/dispatcher/internal/report"
)

func (c *cli) previewCommand() *cobra.Command {
	as := format(formatTable)
	var file string
	cmd := &cobra.Command{
		Use:   "preview --routing FILE",
		Short: "Show the intervals that a routing document's weights come to",
		Args:  cobra.NoArgs,
		RunE: work(func(context.Context, []string) error {
			if file == "" {
				return usage(errors.New("--routing is missing: name a routing document"))
			}
			doc, err := readRouting("--routing", file)
			if err != nil {
				return err
			}
			preview, err := report.NewPreview(doc)
			if err != nil {
				return err
			}
			return as.print(c.out, preview, previewSheet(&preview))
		}),
	}
	cmd.Flags().StringVar(&file, "routing", "", "routing document")
	cmd.Flags().Var(&as, "format", "output format")
	return cmd
}

func previewSheet(p *report.Preview) sheet {
	s := sheet{header: []string{"route", "mode", "size", "channel", "weight", "low", "high", "share"}, right: []int{3, 5, 6, 7, 8}}
	for _, route := range p.Routes {
		for _, iv := range route.Intervals {
			s.rows = append(s.rows, []string{
				route.Route, route.Mode, strconv.FormatUint(route.Size, 10), iv.Channel, iv.Weight.String(),
				bound(iv.Low), bound(iv.High), share(iv.Share),
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

// share writes a part of 1 as CSV and tables show it.
func share(f float64) string { return strconv.FormatFloat(f, 'f', 4, 64) }
