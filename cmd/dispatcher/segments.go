package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"dispatcher/provider/sms"
)

// textSize is one answer of the segments command.
type textSize struct {
	Alphabet string `json:"alphabet"`
	Units    int    `json:"units"`
	Segments int    `json:"segments"`
}

func (c *cli) segmentsCommand() *cobra.Command {
	as := format(formatJSON)
	var substitute, wide bool
	cmd := &cobra.Command{
		Use:   "segments [TEXT]",
		Short: "Count the billed segments of a text",
		Long: `Counts how many segments a text is billed as: 160 septets or 70 16-bit units fit in
one, 153 or 67 in each of several. Without TEXT it reads JSON lines {"text": "..."}
and answers each with one line.`,
		Example: `  dispatcher segments "Your code is 123456"
  dispatcher segments < texts.jsonl`,
		Args: arguments(0, 1),
		RunE: work(func(_ context.Context, args []string) error {
			size := func(text string) textSize { return measure(text, substitute, wide) }
			if len(args) == 1 {
				return printSizes(c.out, as, []textSize{size(args[0])})
			}
			return countLines(c.in, c.out, as, size)
		}),
	}
	cmd.Flags().Var(&as, "format", "output format; json is one object per line")
	cmd.Flags().BoolVar(&substitute, "substitute", false, "replace look-alikes first, as a route with substitute does")
	cmd.Flags().BoolVar(&wide, "reference-16", false, "count with a 16-bit concatenation reference")
	return cmd
}

// measure counts one text.
func measure(text string, substitute, wide bool) textSize {
	if substitute {
		text = sms.Substitute(text)
	}
	reference := sms.Reference8
	if wide {
		reference = sms.Reference16
	}
	size := sms.Count(text, reference)
	return textSize{Alphabet: size.Alphabet.String(), Units: size.Units, Segments: size.Segments}
}

// countLines answers each line of in. As JSON it answers line by line, so that it can
// stand in a pipe; the other formats need all answers first.
func countLines(in io.Reader, out io.Writer, as format, size func(string) textSize) error {
	answers := bufio.NewWriter(out)
	var sizes []textSize
	err := eachLine(in, func(number int, line []byte) error {
		var given struct {
			Text *string `json:"text"`
		}
		if err := json.Unmarshal(line, &given); err != nil || given.Text == nil {
			return fmt.Errorf(`line %d is not a JSON object with a string under "text"`, number)
		}
		if as == formatJSON {
			return printSizes(answers, as, []textSize{size(*given.Text)})
		}
		sizes = append(sizes, size(*given.Text))
		return nil
	})
	if err == nil && as != formatJSON {
		err = printSizes(answers, as, sizes)
	}
	return errors.Join(err, answers.Flush())
}

// printSizes prints one compact JSON object per line, or all as one sheet.
func printSizes(out io.Writer, as format, sizes []textSize) error {
	if as == formatJSON {
		lines := json.NewEncoder(out)
		for _, s := range sizes {
			if err := lines.Encode(s); err != nil {
				return fmt.Errorf("write JSON: %w", err)
			}
		}
		return nil
	}
	s := sheet{header: []string{"alphabet", "units", "segments"}, right: []int{2, 3}}
	for _, size := range sizes {
		s.rows = append(s.rows, []string{size.Alphabet, strconv.Itoa(size.Units), strconv.Itoa(size.Segments)})
	}
	return as.print(out, nil, s)
}
