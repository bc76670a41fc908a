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
			"sends again without an answer", func(c provider.Channel) provider.Channel { return resendingSender{c} },
			[]string{
				"LostReplyIsUnknownAndSentOnce", "CancelInFlightIsUnknown",
				"CutIsUnknownAndTheChannelComesBack",
			},
		},
		{
			"sends again before the next message", func(c provider.Channel) provider.Channel {
				return lateResender{
					c, make(chan provider.Submission, 1),
				}
			},
			[]string{"CutIsUnknownAndTheChannelComesBack"},
		},
		{
			"reports unknown as accepted", func(c provider.Channel) provider.Channel { return unknownAsAcceptedSender{c} },
			[]string{
				"LostReplyIsUnknownAndSentOnce", "CutIsUnknownAndTheChannelComesBack",
				"LostReplyOfOnePartIsUnknown",
			},
		},
		{
			"reports unknown as refused", func(c provider.Channel) provider.Channel { return unknownAsRefusedSender{c} },
			[]string{
				"LostReplyIsUnknownAndSentOnce", "CancelInFlightIsUnknown",
				"CloseEndsWithItsContext",
			},
		},
		{
			"shows the number",
			func(c provider.Channel) provider.Channel { return leaksNumberSender{c} },
			[]string{"RejectIsRejected", "DownPeerIsRefused"},
		},
		{
			"shows the text", func(c provider.Channel) provider.Channel { return leaksTextSender{c} },
			[]string{"RefuseIsRefused", "LostReplyIsUnknownAndSentOnce"},
		},
		{
			"shows the secret", func(c provider.Channel) provider.Channel { return leaksSecretSender{c} },
			[]string{"DownPeerIsRefused"},
		},
		{
			"reference of the previous message", func(c provider.Channel) provider.Channel {
				return previousReferenceSender{
					c, new(sync.Mutex), new(string),
				}
			},
			[]string{
				"AcceptGivesTheReferenceOfThePeer", "ConcurrentSendsKeepTheirReferences",
				"LateAnswerBelongsToNobodyElse",
			},
		},
		{
			"truncates references",
			func(c provider.Channel) provider.Channel { return truncatingSender{c} },
			[]string{"LongestReferenceIsTakenAndNoLongerOne"},
		},
		{
			"accepts long references", func(c provider.Channel) provider.Channel { return anyLengthSender{c} },
			[]string{"LongestReferenceIsTakenAndNoLongerOne"},
		},
		{
			"ignores the context",
			func(c provider.Channel) provider.Channel { return ignoresContextSender{c} },
			[]string{"EndedContextSendsNothing"},
		},
		{
			"ignores the latest time", func(c provider.Channel) provider.Channel { return ignoresLatestSender{c} },
			[]string{"PassedLatestLeavesNoByteAndIsRefusedLate", "PassedLatestLeavesNoSegment"},
		},
		{
			"late without a code", func(c provider.Channel) provider.Channel { return lateWithoutCodeSender{c} },
			[]string{"PassedLatestLeavesNoByteAndIsRefusedLate", "PassedLatestLeavesNoSegment"},
		},
		{
			"ignores the deadline",
			func(c provider.Channel) provider.Channel { return ignoresDeadlineSender{c} },
			[]string{
				"PassedDeadlineLeavesNoByteAndIsRefusedExpired",
				"DeadlineThatPassesWhileItWaitsLeavesNoByte", "PassedDeadlineLeavesNoSegment",
			},
		},
		{
			"stops at the latest time",
			func(c provider.Channel) provider.Channel { return stopsAtLatestSender{c} },
			[]string{"BegunMessageIsFinishedAfterItsLatest"},
		},
		{
			"sends the whole text", func(c provider.Channel) provider.Channel { return wholeTextSender{c} },
			[]string{"OnlyMissingPartsAreSentAgain", "PartsOfAnotherCutAreRefused"},
		},
		{
			"splits the text differently",
			func(c provider.Channel) provider.Channel { return recuttingSender{c} },
			[]string{"PartsOfAnotherCutAreRefused"},
		},
		{
			"new concatenation reference",
			func(c provider.Channel) provider.Channel { return regroupingSender{c} },
			[]string{"OnlyMissingPartsAreSentAgain", "EverySegmentIsSentOnceWithItsReference"},
		},
		{
			"reports no parts",
			func(c provider.Channel) provider.Channel { return withoutPartsSender{c} },
			[]string{
				"EverySegmentIsSentOnceWithItsReference", "OnlyMissingPartsAreSentAgain",
				"LostReplyOfOnePartIsUnknown",
			},
		},
		{
			"reports throttled as rejected", func(c provider.Channel) provider.Channel { return throttledAsRejectedSender{c} },
			[]string{"ThrottleIsThrottledWithRetryAfter", "OnlyMissingPartsAreSentAgain"},
		},
		{
			"sender that loses Retry-After",
			func(c provider.Channel) provider.Channel { return lostRetryAfterSender{c} },
			[]string{"ThrottleIsThrottledWithRetryAfter"},
		},
		{
			"always ready",
			func(c provider.Channel) provider.Channel { return alwaysReadyChannel{c} },
			[]string{
				"DownPeerIsRefused", "CloseWaitsForSendsUnderWay", "CloseTwiceAndSendAfterClose",
			},
		},
		{
			"no reason for not ready", func(c provider.Channel) provider.Channel { return withoutReasonChannel{c} },
			[]string{"DownPeerIsRefused", "CloseTwiceAndSendAfterClose"},
		},
		{
			"close does not wait", func(c provider.Channel) provider.Channel { return earlyCloser{c} },
			[]string{"CloseWaitsForSendsUnderWay"},
		},
		{
			"sends after close",
			func(c provider.Channel) provider.Channel { return openAfterCloseChannel{c} },
			[]string{"CloseTwiceAndSendAfterClose"},
		},
		{
			"second close fails", func(c provider.Channel) provider.Channel {
				return onceCloser{
					c, new(bool),
				}
			},
			[]string{"CloseTwiceAndSendAfterClose"},
		},
		{
			"no code and no error", func(c provider.Channel) provider.Channel { return unexplainedSender{c} },
			[]string{"RejectIsRejected", "LostReplyIsUnknownAndSentOnce"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := memoryHarness(c.broken)
			h.Timeout = time.Second // one of them hangs
			for _, check := range checks(h) {
				if !slices.Contains(c.by, check.name) {
					continue
				}
				failures := failuresOf(t, check, h)
				if len(failures) == 0 {
					t.Errorf("%s did not fail", check.name)
				}
				if all := strings.Join(failures, "\n"); strings.Contains(all, "700900") ||
					strings.Contains(all, canary) {
					t.Errorf("the failure of %s shows a number or a text", check.name)
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
		"send does not return": {
			func(c provider.Channel) provider.Channel { return hangingSender{c} },
			"CancelInFlightIsUnknown",
		},
		"close does not return": {
			func(c provider.Channel) provider.Channel { return hangingCloser{c} },
			"CloseEndsWithItsContext",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := memoryHarness(c.broken)
			h.Timeout = time.Second
			for _, check := range checks(h) {
				if check.name == c.by && len(failuresOf(t, check, h)) == 0 {
					t.Errorf("%s did not fail", check.name)
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
			t.Errorf("two checks have the name %s", c.name)
		}
		names[c.name] = true
	}
	if all, single := len(names), len(checks(Harness{})); all != single+7 {
		t.Errorf("%d checks with segments, %d without; want seven more", all, single)
	}
}
