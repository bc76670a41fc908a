package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"dispatcher/provider/sms"
)

// textSize is the result for one text.
type textSize struct {
	Alphabet string `json:"alphabet"`
	Units    int    `json:"units"`
	Segments int    `json:"segments"`
	// Locking and Single are the national tables that the text needs; absent for the default ones.
	Locking string `json:"locking,omitempty"`
	Single  string `json:"single,omitempty"`
	// Substituted is set when some characters were replaced by look-alikes.
	Substituted bool `json:"substituted,omitempty"`
	// Parts are the parts of the text; absent unless asked for.
	Parts []string `json:"parts,omitempty"`
}

// segmentsFlags are the options of the command.
type segmentsFlags struct {
	as         format
	substitute bool
	wide       bool
	split      bool
	locking    []string
	single     []string
}

func (c *cli) segmentsCommand() *cobra.Command {
	f := segmentsFlags{as: formatJSON}
	cmd := &cobra.Command{
		Use:   "segments [TEXT]",
		Short: "Count the billed segments of a text",
		Long: `Counts how many segments a text is billed as: 160 septets or 70 16-bit units fit in
one, 153 or 67 in each of several. Without TEXT it reads JSON lines {"text": "..."}
and answers each with one line.

With --locking and --single it counts as a channel does that takes the national tables
of these languages, or of all: they are used only where they make fewer segments.`,
		Example: `  dispatcher segments "Your code is 123456"
  dispatcher segments "Siparişiniz yola çıktı" --single turkish --locking turkish --split
  dispatcher segments < texts.jsonl`,
		Args: arguments(0, 1),
		RunE: work(func(_ context.Context, args []string) error {
			rules, err := f.rules()
			if err != nil {
				return usage(err)
			}
			size := func(text string) textSize { return f.measure(text, rules) }
			if len(args) == 1 {
				return f.write(c.out, []textSize{size(args[0])})
			}
			return f.countLines(c.in, c.out, size)
		}),
	}
	cmd.Flags().Var(&f.as, "format", "output format; json is one object per line")
	cmd.Flags().BoolVar(&f.substitute, "substitute", false,
		"first replace look-alikes, as a route with substitute does")
	cmd.Flags().BoolVar(&f.wide, "reference-16", false, "count with a 16-bit concatenation "+
		"reference")
	cmd.Flags().BoolVar(&f.split, "split", false,
		"also show the pieces that the text is split into")
	cmd.Flags().StringSliceVar(&f.locking, "locking", nil, "languages whose locking shift tables "+
		"may be used, such as turkish, or all")
	cmd.Flags().StringSliceVar(&f.single, "single", nil, "languages whose single shift tables may "+
		"be used, or all")
	return cmd
}

// rules are the rules for splitting texts from the flags.
func (f *segmentsFlags) rules() (sms.Rules, error) {
	var rules sms.Rules
	if f.wide {
		rules.Reference = sms.Reference16
	}
	var err error
	if rules.Tables.Locking, err = languages("locking", f.locking,
		sms.Language.HasLocking); err != nil {
		return rules, err
	}
	rules.Tables.Single, err = languages("single", f.single, func(sms.Language) bool {
		return true
	})
	return rules, err
}

// languages reads the languages of a flag; all stands for those that have such a table.
func languages(flag string, words []string, has func(sms.Language) bool) (sms.Languages, error) {
	var set sms.Languages
	for _, word := range words {
		if word == "all" {
			for _, each := range sms.LanguageWords() {
				if l, err := sms.ParseLanguage(each); err == nil && has(l) {
					set |= sms.LanguagesOf(l)
				}
			}
			continue
		}
		l, err := sms.ParseLanguage(strings.TrimSpace(word))
		if err != nil {
			return 0, fmt.Errorf("--%s: %w, or all", flag, err)
		}
		if !has(l) {
			return 0, fmt.Errorf("--%s: %s has no %s shift table; the default alphabet does for it",
				flag, l, flag)
		}
		set |= sms.LanguagesOf(l)
	}
	return set, nil
}

// measure counts one text.
func (f *segmentsFlags) measure(text string, rules sms.Rules) textSize {
	given := text
	if f.substitute {
		text = rules.Substitute(text)
	}
	m := rules.Split(text)
	size := textSize{
		Alphabet: m.Alphabet.String(), Units: m.Units, Segments: len(m.Segments),
		Substituted: text != given,
	}
	if m.Shift.Locking != sms.DefaultTables {
		size.Locking = m.Shift.Locking.String()
	}
	if m.Shift.Single != sms.DefaultTables {
		size.Single = m.Shift.Single.String()
	}
	if f.split {
		size.Parts = m.Segments
	}
	return size
}

// countLines answers each line of in. JSON is written line by line, so that it works in a pipe; the
// other formats need all answers first.
func (f *segmentsFlags) countLines(in io.Reader, out io.Writer, size func(string) textSize) error {
	answers := bufio.NewWriter(out)
	var sizes []textSize
	err := eachLine(in, func(number int, line []byte) error {
		var given struct {
			Text *string `json:"text"`
		}
		if err := json.Unmarshal(line, &given); err != nil || given.Text == nil {
			return fmt.Errorf(`line %d is not a JSON object with a string under "text"`, number)
		}
		if f.as == formatJSON {
			return f.write(answers, []textSize{size(*given.Text)})
		}
		sizes = append(sizes, size(*given.Text))
		return nil
	})
	if err == nil && f.as != formatJSON {
		err = f.write(answers, sizes)
	}
	return errors.Join(err, answers.Flush())
}

// write prints one compact JSON object per line, or all as one sheet, with columns for tables and
// parts if asked for.
func (f *segmentsFlags) write(out io.Writer, sizes []textSize) error {
	if f.as == formatJSON {
		lines := json.NewEncoder(out)
		for i := range sizes {
			if err := lines.Encode(&sizes[i]); err != nil {
				return fmt.Errorf("write JSON: %w", err)
			}
		}
		return nil
	}
	columns := keys[textSize]("", "alphabet", "units", "segments")
	if len(f.locking)+len(f.single) > 0 {
		columns = append(columns, keys[textSize]("", "locking", "single")...)
	}
	if f.split {
		columns = append(columns, column[textSize]{
			key: "parts", cell: func(size *textSize) any { return strings.Join(size.Parts, " | ") },
		})
	}
	return f.as.write(out, nil, list(f.as, sizes, columns...))
}
