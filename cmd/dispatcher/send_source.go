package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"dispatcher/cmd/dispatcher/internal/numbers"
	"dispatcher/config"
)

// source is where messages come from. It is read twice: all of it is checked before
// any of it is sent.
type source struct {
	name   string
	file   io.ReadSeeker
	reader messageReader
	close  func()
}

// source opens what the flags name.
func (c *cli) source(f *sendFlags, s *config.Settings) (*source, error) {
	r, err := f.regionOr(s.DefaultRegion)
	if err != nil {
		return nil, usage(err)
	}
	src := &source{name: f.file, close: func() {}, reader: messageReader{region: r, allowUnknown: s.AllowUnknownFields}}
	src.reader.csv = f.input == "csv" || f.input == "" && strings.HasSuffix(strings.ToLower(f.file), ".csv")
	switch f.file {
	case "":
		err = src.one(f, r)
	case "-":
		src.name = "standard input"
		err = src.spool(c.in)
	default:
		err = src.open(f.file)
	}
	return src, err
}

// regionOr is the region of numbers without a country code: that of the flag, else the one of the process.
func (f *sendFlags) regionOr(standard string) (numbers.Region, error) {
	if f.region != "" {
		r, err := numbers.ParseRegion(f.region)
		if err != nil {
			return "", fmt.Errorf("--default-region %w", err)
		}
		return r, nil
	}
	r, err := numbers.ParseRegion(standard)
	if err != nil {
		return "", fmt.Errorf("%s_DEFAULT_REGION %w", config.Prefix, err)
	}
	return r, nil
}

// one makes a source of the message that the flags describe.
func (s *source) one(f *sendFlags, r numbers.Region) error {
	d, err := f.draft(r)
	if err != nil {
		return usage(err)
	}
	value, err := d.json()
	if err != nil {
		return usage(err)
	}
	s.file, s.reader.csv = bytes.NewReader(value), false
	return nil
}

func (s *source) open(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return usage(fmt.Errorf("--file: %w; correct the path", err))
	}
	if info, err := file.Stat(); err != nil || info.IsDir() {
		_ = file.Close() // nothing was written
		return usage(fmt.Errorf("--file: %s is a folder; name a file", name))
	}
	s.file, s.close = file, func() { _ = file.Close() } // nothing was written
	return nil
}

// spool keeps standard input in a temporary file, which only its owner may read, because
// it can be read but once.
func (s *source) spool(in io.Reader) error {
	file, err := os.CreateTemp("", "dispatcher-send-*")
	if err != nil {
		return fmt.Errorf("keep standard input: %w", err)
	}
	s.file, s.close = file, func() {
		_ = file.Close() // what it held was read
		_ = os.Remove(file.Name())
	}
	if _, err := io.Copy(file, in); err != nil {
		s.close()
		return fmt.Errorf("keep standard input in %s: %w", file.Name(), err)
	}
	return nil
}

// each reads the source from its start.
func (s *source) each(use func(candidate) error) error {
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("%s can only be read once: pass it through standard input with --file -: %w", s.name, err)
	}
	return s.reader.each(s.file, use)
}

// checked is what the first reading has found.
type checked struct {
	good, bad int64
	lastID    string
}

// mostReported bounds how many bad lines are written out.
const mostReported = 100

// checkAll holds every message to the rules of an envelope and reports the bad ones.
// It fails when there are any, unless they are to be skipped.
func (c *cli) checkAll(f *sendFlags, s *source) (checked, error) {
	var found checked
	err := s.each(func(m candidate) error {
		if m.problem == "" {
			found.good++
			found.lastID = m.id
			return nil
		}
		found.bad++
		switch {
		case f.file == "":
			return usage(fmt.Errorf("the message is not good: %s", m.problem))
		case found.bad <= mostReported:
			fmt.Fprintf(c.err, "%s:%d: %s\n", s.name, m.line, m.problem)
		}
		return nil
	})
	if err != nil {
		if f.file != "" {
			err = fmt.Errorf("%s:%w", s.name, err)
		}
		return found, err
	}
	if found.bad > mostReported {
		fmt.Fprintf(c.err, "%s: and %d more bad lines\n", s.name, found.bad-mostReported)
	}
	switch {
	case found.bad > 0 && !f.skipBad:
		return found, failed(fmt.Errorf("%d of %d lines cannot be sent, so nothing was: correct them, or send the others with --skip-bad", found.bad, found.bad+found.good))
	case found.good == 0:
		return found, failed(fmt.Errorf("%s holds no message that could be sent", s.name))
	}
	return found, nil
}
