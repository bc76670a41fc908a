package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"dispatcher/cmd/dispatcher/internal/sandbox"
)

// TestFlagsOfTheSandboxMakeTheProfile: each flag sets its own value, and the others keep their
// defaults. The tests of internal/sandbox show what each value does.
func TestFlagsOfTheSandboxMakeTheProfile(t *testing.T) {
	t.Parallel()
	for flag, set := range map[string]func(*sandbox.Profile){
		"--latency=70ms":       func(p *sandbox.Profile) { p.Latency = 70 * time.Millisecond },
		"--jitter=60ms":        func(p *sandbox.Profile) { p.Jitter = 60 * time.Millisecond },
		"--rate=50":            func(p *sandbox.Profile) { p.Rate = 50 },
		"--reject=0.11":        func(p *sandbox.Profile) { p.Reject = 0.11 },
		"--refuse=0.12":        func(p *sandbox.Profile) { p.Refuse = 0.12 },
		"--throttle=0.13":      func(p *sandbox.Profile) { p.Throttle = 0.13 },
		"--lose=0.14":          func(p *sandbox.Profile) { p.Lose = 0.14 },
		"--cut=0.15":           func(p *sandbox.Profile) { p.Cut = 0.15 },
		"--receipts=0.16":      func(p *sandbox.Profile) { p.Receipts = 0.16 },
		"--receipt-delay=80ms": func(p *sandbox.Profile) { p.ReceiptDelay = 80 * time.Millisecond },
		"--delivered=0.17":     func(p *sandbox.Profile) { p.Delivered = 0.17 },
		"--early=0.18":         func(p *sandbox.Profile) { p.Early = 0.18 },
		"--duplicates=0.19":    func(p *sandbox.Profile) { p.Duplicates = 0.19 },
	} {
		f := &sandboxFlags{profile: sandbox.Usual()}
		flags := pflag.NewFlagSet("sandbox", pflag.ContinueOnError)
		f.add(flags)
		if err := flags.Parse([]string{flag}); err != nil {
			t.Error(err)
		}
		want := sandbox.Usual()
		set(&want)
		if diff := cmp.Diff(want, f.profile); diff != "" {
			t.Errorf("%s (-want +got):\n%s", flag, diff)
		}
	}
}

// TestFlagsOfBenchReachTheMeasurement: values that would measure nothing are refused.
func TestFlagsOfBenchReachTheMeasurement(t *testing.T) {
	t.Parallel()
	f := &benchFlags{}
	flags := pflag.NewFlagSet("bench", pflag.ContinueOnError)
	f.add(flags)
	err := flags.Parse([]string{
		"--messages=2000", "--rounds=2", "--faults", "--rate=50", "--seconds=3", "--latency=7ms",
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.check(); err != nil {
		t.Error(err)
	}
	if f.config.Messages != 2000 || f.config.Rounds != 2 || !f.faults || f.fault.Rate != 50 ||
		f.fault.During != 3*time.Second || f.fault.Latency != 7*time.Millisecond {
		t.Errorf("got %+v", f)
	}
	f = &benchFlags{}
	flags = pflag.NewFlagSet("bench", pflag.ContinueOnError)
	f.add(flags)
	if err := errors.Join(flags.Parse([]string{"--receipts", "--history=60", "--processes=4"}),
		f.check()); err != nil || !f.config.Receipts || f.config.History != 60 ||
		f.config.Processes != 4 {
		t.Errorf("got %+v, error %v", f, err)
	}
	for want, args := range map[string][]string{
		"--messages must be at least 1000": {"--messages", "999"},
		"--rounds at least 1":              {"--rounds", "0"},
		"--rate must be at least 10":       {"--faults", "--rate", "9"},
		"--seconds at least 1":             {"--faults", "--seconds", "0"},
		"exclude each other":               {"--faults", "--receipts"},
		"--codes goes neither with":        {"--codes", "--faults"},
		"--processes must be from 1 to 12": {"--processes", "13"},
		"--history must be 0 or at least":  {"--history", "59"},
		"--profile goes neither with":      {"--codes", "--profile", "."},
		"--latency not below 0":            {"--faults", "--latency", "-1ms"},
	} {
		got := dispatcher(t, "", nil, append([]string{"bench"}, args...)...)
		if got.code != exitUsage || !strings.Contains(got.err, want) {
			t.Errorf("%v: got %+v, want exit code %d and %q in the error", args, got, exitUsage, want)
		}
	}
}
