package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"dispatcher/config"
)

func (c *cli) configCommand() *cobra.Command {
	as := format(formatTable)
	var file string
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show every setting with its value and source, or check a routing document",
		Long: `Shows every DISPATCHER_... variable with the value that this process would use and where
it comes from; secrets are hidden. It exits with 2 and a sentence for each problem when
the settings cannot work.

With --routing FILE it checks a routing document instead and reports each problem with its line.`,
		Args: cobra.NoArgs,
		RunE: work(func(context.Context, []string) error {
			if file != "" {
				return c.checkRouting(file, as)
			}
			return c.listSettings(as)
		}),
	}
	cmd.Flags().StringVar(&file, "routing", "", "routing document to check")
	cmd.Flags().Var(&as, "format", "output format")
	return cmd
}

// listSettings prints the settings, and then what is wrong with them.
func (c *cli) listSettings(as format) error {
	s, err := config.Load()
	if err != nil {
		return usage(err)
	}
	list := s.List()
	out := sheet{header: []string{"name", "value", "source", "help"}, wrap: map[int]int{1: 36, 2: 26, 4: 40}}
	for _, one := range list {
		out.rows = append(out.rows, []string{one.Name, one.Value, one.Source, one.Help})
	}
	if err := as.print(c.out, list, out); err != nil {
		return err
	}
	if err := s.Validate(true); err != nil {
		return usage(err)
	}
	return nil
}

// checkRouting says what is in a document, if it is good.
func (c *cli) checkRouting(file string, as format) error {
	doc, err := checkedRouting("--routing", file)
	if err != nil {
		return err
	}
	value := struct {
		File     string   `json:"file"`
		Timezone string   `json:"timezone"`
		Channels []string `json:"channels"`
		Routes   []string `json:"routes"`
		Lanes    []string `json:"lanes"`
	}{file, doc.Timezone.String(), doc.ChannelNames(), []string{}, doc.LaneNames()}
	for i := range doc.Routes {
		value.Routes = append(value.Routes, doc.Routes[i].Name)
	}
	return as.print(c.out, value, sheet{
		header: []string{"file", "timezone", "channels", "routes", "lanes"},
		rows: [][]string{{
			file, value.Timezone, fmt.Sprint(len(value.Channels)), fmt.Sprint(len(value.Routes)), fmt.Sprint(len(value.Lanes)),
		}},
		right: []int{3, 4, 5},
	})
}
