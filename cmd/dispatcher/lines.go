package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxLine bounds a line of JSON input: an envelope of 64 KiB with every character escaped.
const maxLine = 512 << 10

// eachLine calls use with every line that is not blank and its number from 1, until use or reading
// fails. The line is only valid during the call. A line longer than maxLine is cut there, which
// leaves invalid JSON for the decoder to refuse.
func eachLine(in io.Reader, use func(number int, line []byte) error) error {
	lines := bufio.NewReaderSize(in, maxLine)
	for number := 1; ; number++ {
		line, err := lines.ReadSlice('\n')
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
			return fmt.Errorf("read line %d: %w", number, err)
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			if err := use(number, line); err != nil {
				return err
			}
		}
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = lines.ReadSlice('\n')
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read line %d: %w", number, err)
		}
	}
}
