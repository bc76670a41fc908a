package main

import (
	"errors"
	"fmt"

	"dispatcher/cmd/dispatcher/internal/control"
)

// printMany prints the result of a command that changes many messages: the messages that were left
// as they are, and a sentence. In other formats than a table it prints the result alone.
func (c *cli) printMany(result any, left []control.Left, as format, sentence string) error {
	sheet := leftSheet(left, as)
	if as != formatTable {
		return as.write(c.out, result, sheet)
	}
	if len(left) > 0 {
		sheet.draw(c.out)
	}
	fmt.Fprintln(c.out, sentence)
	return nil
}

// leftSheet lists messages that were left as they are.
func leftSheet(messages []control.Left, as format) sheet {
	return list(as, messages, []column[control.Left]{
		{key: "id"},
		{key: "why", name: "why_it_was_left", head: "why it was left", width: 80},
	}...)
}

// printedLeft is the error of a command that changed many messages and printed the result: printed
// is the error of printing, err that of the change. If messages were left, the exit code says so.
func printedLeft(printed, err error, left []control.Left) error {
	if err != nil || printed != nil {
		return errors.Join(printed, err)
	}
	if len(left) > 0 {
		return failed(nil) // they have been listed
	}
	return nil
}
