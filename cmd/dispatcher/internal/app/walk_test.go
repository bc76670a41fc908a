package app

import (
	"maps"
	"os"
	"regexp"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dispatcher/admission"
	"dispatcher/config"
)

// mostFrames is the largest allowed number of our functions from the one that hands over a batch of
// records to the place where a channel is chosen and its slots are taken, both included. The former
// is the first on the stack of its goroutine.
const mostFrames = 8

// mostHandOffs is the largest allowed number of goroutines that a message passes to on its way from
// the decision to its settlement.
const mostHandOffs = 5

// handsOver is the function that hands over a batch of records.
const handsOver = "kafka.(*call).run"

// decisions are the functions that find out whether a channel can take a message, whether its
// limits have room, and that take slots of them.
var decisions = []string{
	"decide.(*assigner).exclusionOf", "admission.Fit", "admission.Take",
}

// walks collects the walks of a process from its records to their decisions.
type walks struct {
	mu   sync.Mutex
	seen map[string]bool // guarded by mu
}

// note adds the stack of a caller that decides about a record, up to the decision. Gauges and the
// due loop, which decides about messages that have waited, come here too.
func (w *walks) note() {
	stack := ourCallers()
	decision := -1
	for i, name := range stack {
		if slices.Contains(decisions, name) {
			decision = i
		}
	}
	if decision < 0 || !slices.Contains(stack, handsOver) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen[strings.Join(stack[:decision+1], " ")] = true
}

// tracingPolicy notes each walk to a limit with this policy.
type tracingPolicy struct {
	admission.Even
	walks *walks
}

func (p tracingPolicy) Pool(s *admission.Split, t *admission.Tally, n int64) (admission.Pool, bool) {
	p.walks.note()
	return p.Even.Pool(s, t, n)
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

// drawing is what DESIGN.md says of frames and hand-offs.
type drawing struct {
	walks    map[string]bool // to each decision, as walks notes them
	handOffs []string        // the functions that the goroutines run
	loops    map[string]bool // the functions of the other goroutines of pipeline and smpp
}

var (
	drawnFrame   = regexp.MustCompile(`^( *)((?:kafka|pipeline|decide|admission)\.\S+)`)
	drawnHandOff = regexp.MustCompile(`-> hand-off (\d+): (\S+)`)
	drawnLoop    = regexp.MustCompile("`((?:pipeline|smpp)\\.[^`]+)`")
)

// readDrawing reads the section "Frames and hand-offs" of DESIGN.md.
func readDrawing(t *testing.T) drawing {
	t.Helper()
	page, err := os.ReadFile("../../../../DESIGN.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "**Frames and hand-offs.**")
	section, _, _ = strings.Cut(section, "\n## ")
	_, tree, _ := strings.Cut(section, "```\n")
	tree, loops, found := strings.Cut(tree, "```\n")
	if !found {
		t.Fatal("DESIGN.md draws no frames")
	}
	d := drawing{walks: map[string]bool{}, loops: map[string]bool{}}
	var stack []string
	for line := range strings.Lines(tree) {
		if m := drawnFrame.FindStringSubmatch(line); m != nil {
			stack = append(stack[:min(len(m[1])/2, len(stack))], m[2])
			if slices.Contains(decisions, m[2]) {
				d.walks[strings.Join(stack, " ")] = true
			}
		}
		if m := drawnHandOff.FindStringSubmatch(line); m != nil {
			d.handOffs = append(d.handOffs, m[2])
			if want := strconv.Itoa(len(d.handOffs)); m[1] != want {
				t.Errorf("DESIGN.md numbers hand-off %s as %s", want, m[1])
			}
		}
	}
	for _, m := range drawnLoop.FindAllStringSubmatch(loops, -1) {
		d.loops[m[1]] = true
	}
	return d
}

var (
	profiled = regexp.MustCompile(`(?m)^#\t0x[0-9a-f]+\tdispatcher/(?:\S+/)?(\S+)\+0x`)
	closure  = regexp.MustCompile(`(\.func\d+|\.gowrap\d+|\.\d+)+$`)
)

// goroutines returns the functions of pipeline and smpp that goroutines with this label run, as
// package.function: the outermost one that has a name, else the one that started it.
func goroutines(t *testing.T, label string) map[string]bool {
	t.Helper()
	var profile strings.Builder
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		t.Fatal(err)
	}
	running := map[string]bool{}
	for stack := range strings.SplitSeq(profile.String(), "\n\n") {
		if !strings.Contains(stack, label) {
			continue
		}
		entry, in := "", ""
		for _, m := range profiled.FindAllStringSubmatch(stack, -1) { // the outermost is the last
			from, _, _ := strings.Cut(m[1], ".")
			if short := closure.ReplaceAllString(m[1], ""); short == m[1] || from != in {
				entry, in = short, from
			}
		}
		if in == "pipeline" || in == "smpp" {
			running[entry] = true
		}
	}
	return running
}

// TestTheWalkFromRecordToDecisionIsShort: in a running process, with a limit and without, on a
// route that draws and on one that ranks. DESIGN.md draws these frames, and every goroutine of
// pipeline and smpp.
func TestTheWalkFromRecordToDecisionIsShort(t *testing.T) {
	t.Parallel()
	const channels = `
channels:
  a: {{ONE}, limits: [{window: 1h, max: 1000}]}
  b: {{TWO}}
`
	queried := strings.NewReplacer("window: 20}}", "window: 20, query_after: 1h}}")
	documents := []string{
		channels + "routes: [{name: default, weights: {a: 1, b: 1}}]\n",
		channels + "routes: [{name: default, mode: round_robin, channels: [a, b]}]\n",
	}
	pprof.SetGoroutineLabels(pprof.WithLabels(t.Context(), pprof.Labels("process", t.Name())))
	s := newStageWith(t, documents[0], func(o *Options) {
		read := o.Routing
		o.Routing = func() (string, []byte, error) {
			name, text, err := read()
			return name, []byte(queried.Replace(string(text))), err
		}
	}, nil)
	drawn := readDrawing(t)
	running := map[string]bool{}
	for _, document := range documents {
		doc, err := config.ParseRouting("test", []byte(queried.Replace(s.address(document))))
		if err != nil {
			t.Fatal(err)
		}
		routing, err := Compile(doc, 1)
		if err != nil {
			t.Fatal(err)
		}
		w := &walks{seen: map[string]bool{}}
		routing.Channels[0].Policy = tracingPolicy{walks: w}
		routing.Channels[1].Segments = func(string) int { w.note(); return 1 }
		if err := s.app.dispatch.Apply(routing, nil); err != nil {
			t.Fatal(err)
		}
		for len(w.all()) < len(decisions) { // a message may wait for its channel first
			s.publish(10)
			s.settled()
			maps.Copy(running, goroutines(t, t.Name()))
		}
		for walk := range w.all() {
			frames := strings.Fields(walk)
			if frames[0] != handsOver || len(frames) > mostFrames {
				t.Errorf("got %d frames: %q", len(frames), frames)
			}
		}
		if diff := cmp.Diff(drawn.walks, w.all()); diff != "" {
			t.Errorf("frames (-DESIGN.md +process):\n%s", diff)
		}
	}
	if n := len(drawn.handOffs); n == 0 || n > mostHandOffs {
		t.Errorf("DESIGN.md draws %d hand-offs, of at most %d", n, mostHandOffs)
	}
	named := maps.Clone(drawn.loops)
	for _, name := range drawn.handOffs {
		named[name] = true
	}
	if diff := cmp.Diff(named, running); diff != "" {
		t.Errorf("goroutines of pipeline and smpp (-DESIGN.md +process):\n%s", diff)
	}
}

// all returns a copy of what was seen.
func (w *walks) all() map[string]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.seen)
}
