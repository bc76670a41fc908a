package providertest

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"dispatcher/config/tier"
	"dispatcher/provider"
)

func TestMain(m *testing.M) {
	tier.Parallel(8)
	goleak.VerifyTestMain(m)
}

func TestMemoryChannelConforms(t *testing.T) {
	t.Parallel()
	Run(t, memoryHarness(nil))
}

// recorder replaces the testing.TB of a check that should fail.
type recorder struct {
	testing.TB // for Context, Helper and the others
	mu         sync.Mutex
	failures   []string
	cleanups   []func()
}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) Error(args ...any) { r.Errorf("%s", fmt.Sprint(args...)) }

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

// failuresOf runs one check in a goroutine that Fatalf may end.
func failuresOf(t *testing.T, c check, h Harness) []string {
	t.Helper()
	r := &recorder{TB: t}
	var wg sync.WaitGroup
	wg.Go(func() {
		defer func() {
			for _, f := range slices.Backward(r.cleanups) {
				f()
			}
		}()
		c.run(r, h)
	})
	wg.Wait()
	return r.failures
}

func TestEachBrokenPromiseIsCaught(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		broken func(provider.Channel) provider.Channel
		by     []string // the checks that must fail
	}{
		{
			"double sender", func(c provider.Channel) provider.Channel { return doubleSender{c} },
			[]string{
				"LostReplyIsUnknownAndSentOnce", "CancelInFlightIsUnknown",
				"CutIsUnknownAndTheChannelComesBack",
			},
		},
		{
			"late resender", func(c provider.Channel) provider.Channel {
				return lateResender{
					c, make(chan provider.Submission, 1),
				}
			},
			[]string{"CutIsUnknownAndTheChannelComesBack"},
		},
		{
			"lying sender", func(c provider.Channel) provider.Channel { return lyingSender{c} },
			[]string{
				"LostReplyIsUnknownAndSentOnce", "CutIsUnknownAndTheChannelComesBack",
				"LostReplyOfOnePartIsUnknown",
			},
		},
		{
			"hopeful sender", func(c provider.Channel) provider.Channel { return hopefulSender{c} },
			[]string{
				"LostReplyIsUnknownAndSentOnce", "CancelInFlightIsUnknown",
				"CloseEndsWithItsContext",
			},
		},
		{
			"talkative sender",
			func(c provider.Channel) provider.Channel { return talkativeSender{c} },
			[]string{"RejectIsRejected", "DownPeerIsRefused"},
		},
		{
			"text sender", func(c provider.Channel) provider.Channel { return textSender{c} },
			[]string{"RefuseIsRefused", "LostReplyIsUnknownAndSentOnce"},
		},
		{
			"secret sender", func(c provider.Channel) provider.Channel { return secretSender{c} },
			[]string{"DownPeerIsRefused"},
		},
		{
			"crossed sender", func(c provider.Channel) provider.Channel {
				return crossedSender{
					c, new(sync.Mutex), new(string),
				}
			},
			[]string{
				"AcceptGivesTheReferenceOfThePeer", "ConcurrentSendsKeepTheirReferences",
				"LateAnswerBelongsToNobodyElse",
			},
		},
		{
			"shortening sender",
			func(c provider.Channel) provider.Channel { return shorteningSender{c} },
			[]string{"LongestReferenceIsTakenAndNoLongerOne"},
		},
		{
			"long sender", func(c provider.Channel) provider.Channel { return longSender{c} },
			[]string{"LongestReferenceIsTakenAndNoLongerOne"},
		},
		{
			"sender that ignores its context",
			func(c provider.Channel) provider.Channel { return ignoresContextSender{c} },
			[]string{"EndedContextSendsNothing"},
		},
		{
			"tardy sender", func(c provider.Channel) provider.Channel { return tardySender{c} },
			[]string{"PassedLatestLeavesNoByteAndIsRefusedLate", "PassedLatestLeavesNoSegment"},
		},
		{
			"vague sender", func(c provider.Channel) provider.Channel { return vagueSender{c} },
			[]string{"PassedLatestLeavesNoByteAndIsRefusedLate", "PassedLatestLeavesNoSegment"},
		},
		{
			"sender without a deadline",
			func(c provider.Channel) provider.Channel { return deadlineBlindSender{c} },
			[]string{
				"PassedDeadlineLeavesNoByteAndIsRefusedExpired",
				"DeadlineThatPassesWhileItWaitsLeavesNoByte", "PassedDeadlineLeavesNoSegment",
			},
		},
		{
			"quitting sender",
			func(c provider.Channel) provider.Channel { return quittingSender{c} },
			[]string{"BegunMessageIsFinishedAfterItsLatest"},
		},
		{
			"whole sender", func(c provider.Channel) provider.Channel { return wholeSender{c} },
			[]string{"OnlyMissingPartsAreSentAgain", "PartsOfAnotherCutAreRefused"},
		},
		{
			"recutting sender",
			func(c provider.Channel) provider.Channel { return recuttingSender{c} },
			[]string{"PartsOfAnotherCutAreRefused"},
		},
		{
			"regrouping sender",
			func(c provider.Channel) provider.Channel { return regroupingSender{c} },
			[]string{"OnlyMissingPartsAreSentAgain", "EverySegmentIsSentOnceWithItsReference"},
		},
		{
			"forgetful sender",
			func(c provider.Channel) provider.Channel { return forgetfulSender{c} },
			[]string{
				"EverySegmentIsSentOnceWithItsReference", "OnlyMissingPartsAreSentAgain",
				"LostReplyOfOnePartIsUnknown",
			},
		},
		{
			"blaming sender", func(c provider.Channel) provider.Channel { return blamingSender{c} },
			[]string{"ThrottleIsThrottledWithRetryAfter", "OnlyMissingPartsAreSentAgain"},
		},
		{
			"sender that loses Retry-After",
			func(c provider.Channel) provider.Channel { return lostRetryAfterSender{c} },
			[]string{"ThrottleIsThrottledWithRetryAfter"},
		},
		{
			"optimistic channel",
			func(c provider.Channel) provider.Channel { return optimisticChannel{c} },
			[]string{
				"DownPeerIsRefused", "CloseWaitsForSendsUnderWay", "CloseTwiceAndSendAfterClose",
			},
		},
		{
			"silent channel", func(c provider.Channel) provider.Channel { return silentChannel{c} },
			[]string{"DownPeerIsRefused", "CloseTwiceAndSendAfterClose"},
		},
		{
			"hasty closer", func(c provider.Channel) provider.Channel { return hastyCloser{c} },
			[]string{"CloseWaitsForSendsUnderWay"},
		},
		{
			"immortal channel",
			func(c provider.Channel) provider.Channel { return immortalChannel{c} },
			[]string{"CloseTwiceAndSendAfterClose"},
		},
		{
			"once closer", func(c provider.Channel) provider.Channel {
				return onceCloser{
					c, new(bool),
				}
			},
			[]string{"CloseTwiceAndSendAfterClose"},
		},
		{
			"mute", func(c provider.Channel) provider.Channel { return mute{c} },
			[]string{"RejectIsRejected", "LostReplyIsUnknownAndSentOnce"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := memoryHarness(c.broken)
			for _, check := range checks(h) {
				if !slices.Contains(c.by, check.name) {
					continue
				}
				failures := failuresOf(t, check, h)
				if len(failures) == 0 {
					t.Errorf("%s saw nothing", check.name)
				}
				if all := strings.Join(failures, "\n"); strings.Contains(all, "700900") ||
					strings.Contains(all, canary) {
					t.Errorf("%s shows a number or a text in its own failure", check.name)
				}
			}
		})
	}
}

// TestChannelsThatHangAreCaught is slow: each channel costs the whole timeout of the suite.
func TestChannelsThatHangAreCaught(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		broken func(provider.Channel) provider.Channel
		by     string
	}{
		"deaf sender": {
			func(c provider.Channel) provider.Channel { return deafSender{c} },
			"CancelInFlightIsUnknown",
		},
		"endless closer": {
			func(c provider.Channel) provider.Channel { return endlessCloser{c} },
			"CloseEndsWithItsContext",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := memoryHarness(c.broken)
			h.Timeout = 2 * time.Second
			for _, check := range checks(h) {
				if check.name == c.by && len(failuresOf(t, check, h)) == 0 {
					t.Errorf("%s saw nothing", check.name)
				}
			}
		})
	}
}

func TestSegmentChecksRunOnlyForAdaptersThatCut(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, c := range checks(Harness{Segments: true}) {
		if names[c.name] {
			t.Errorf("two checks are called %s", c.name)
		}
		names[c.name] = true
	}
	if all, single := len(names), len(checks(Harness{})); all != single+7 {
		t.Errorf("%d checks with segments, %d without; want seven more", all, single)
	}
}
