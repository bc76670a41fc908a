package app

import (
	"os"
	"regexp"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"dispatcher/admission"
	"dispatcher/config"
)

// mostFrames is the largest allowed number of our functions from the Kafka record to its decision,
// both included.
const mostFrames = 8

// mostOuterFrames is the largest allowed number of our functions below those on the stack of the
// lane's goroutine.
const mostOuterFrames = 2

// mostHandOffs is the largest allowed number of goroutines that a message passes to on its way from
// the decision to its settlement.
const mostHandOffs = 5

// poll is the function that polls records, and decision the one that decides on one message.
const (
	poll     = "kafka.(*reader).turn"
	decision = "decide.(*assigner).decide"
)

// tracingPolicy records the stack of the first decision about a record that calls it. The gauges
// call it too, and so does the due loop, about messages that have waited.
type tracingPolicy struct {
	admission.Even
	callers *atomic.Pointer[[]string]
}

func (p tracingPolicy) Split(s *admission.PolicyInput) admission.Split {
	if callers := ourCallers(); slices.Contains(callers, poll) &&
		slices.Contains(callers, decision) {
		p.callers.CompareAndSwap(nil, &callers)
	}
	return p.Even.Split(s)
}

// ourCallers returns the functions of this module on the stack, outermost first, as
// package.function.
func ourCallers() (names []string) {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	for more := true; more; {
		var frame runtime.Frame
		frame, more = frames.Next()
		if strings.HasPrefix(frame.Function, "dispatcher/") {
			names = append(names, frame.Function[strings.LastIndexByte(frame.Function, '/')+1:])
		}
	}
	slices.Reverse(names)
	return names
}

// handOff is a hand-off in DESIGN.md, with the function of the goroutine that gets the message.
var handOff = regexp.MustCompile(`-> hand-off (\d+): (\S+)`)

// checkHandOffs compares the hand-offs that DESIGN.md draws with the goroutines of this process.
func checkHandOffs(t *testing.T, page string) {
	t.Helper()
	drawn := handOff.FindAllStringSubmatch(page, -1)
	if n := len(drawn); n == 0 || n > mostHandOffs {
		t.Errorf("DESIGN.md draws %d hand-offs, of at most %d", n, mostHandOffs)
	}
	var stacks strings.Builder
	if err := pprof.Lookup("goroutine").WriteTo(&stacks, 2); err != nil {
		t.Fatal(err)
	}
	for i, d := range drawn {
		if want := strconv.Itoa(i + 1); d[1] != want {
			t.Errorf("DESIGN.md numbers hand-off %s as %s", want, d[1])
		}
		if !strings.Contains(stacks.String(), d[2]+"(") {
			t.Errorf("no goroutine runs %s of hand-off %s in DESIGN.md", d[2], d[1])
		}
	}
}

// TestTheWalkFromRecordToDecisionIsShort: in a running process. DESIGN.md lists the same frames and
// hand-offs.
func TestTheWalkFromRecordToDecisionIsShort(t *testing.T) {
	t.Parallel()
	const document = `
channels: {a: {{ONE}, limits: [{window: 1h, max: 1000}]}}
routes: [{name: default, weights: {a: 1}}]
`
	s := newStage(t, document)
	doc, err := config.ParseRouting("test", []byte(s.address(document)))
	if err != nil {
		t.Fatal(err)
	}
	routing, err := Compile(doc, 1)
	if err != nil {
		t.Fatal(err)
	}
	policy := tracingPolicy{callers: &atomic.Pointer[[]string]{}}
	routing.Channels[0].Policy = policy
	if err := s.app.dispatch.Apply(routing, nil); err != nil {
		t.Fatal(err)
	}
	for policy.callers.Load() == nil { // on a busy machine a message may wait for its channel first
		s.publish(1)
		s.settled()
	}
	walk := *policy.callers.Load()
	from, to := slices.Index(walk, poll), slices.Index(walk, decision)
	if from > mostOuterFrames {
		t.Errorf("got %d outer frames: %q", from, walk[:from])
	}
	walk = walk[from : to+1]
	if len(walk) > mostFrames {
		t.Errorf("got %d frames: %q", len(walk), walk)
	}
	page, err := os.ReadFile("../../../../DESIGN.md")
	if err != nil {
		t.Fatal(err)
	}
	checkHandOffs(t, string(page))
	rest, before := string(page), ""
	for i, name := range walk {
		var drawn bool
		if before, rest, drawn = strings.Cut(rest, name); !drawn || i > 0 &&
			strings.Contains(before, "\n\n") {
			t.Fatalf("DESIGN.md does not draw %s after the frames before it", name)
		}
	}
}
