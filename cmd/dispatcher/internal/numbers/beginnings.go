package numbers

import (
	"iter"
	"regexp/syntax"
)

// beginningsOf yields every sequence of that many digits with which a full match of the pattern can
// begin. It runs the pattern's program over the digits as a nondeterministic automaton (Thompson,
// Regular Expression Search Algorithm, 1968), and follows only digits that can still match.
func beginningsOf(program *syntax.Prog, length int) iter.Seq[string] {
	return func(yield func(string) bool) {
		var digits []byte
		var extend func(places) bool
		extend = func(at places) bool {
			if len(digits) == length {
				return yield(string(digits))
			}
			for d := byte('0'); d <= '9'; d++ {
				next := at.step(program, rune(d))
				if len(next) == 0 {
					continue
				}
				digits = append(digits, d)
				if !extend(next) {
					return false
				}
				digits = digits[:len(digits)-1]
			}
			return true
		}
		extend(start(program))
	}
}

// begins reports whether a full match of the pattern can begin with some digits.
func begins(program *syntax.Prog, digits string) bool {
	at := start(program)
	for _, d := range digits {
		if at = at.step(program, d); len(at) == 0 {
			return false
		}
	}
	return true
}

// compile compiles a pattern. It panics if that fails; the patterns of the numbering plans compile.
func compile(pattern string) *syntax.Prog {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		panic("numbers: " + err.Error())
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		panic("numbers: " + err.Error())
	}
	return program
}

// places are the states of the automaton: instructions that wait for a character, or have matched.
type places map[uint32]struct{}

// start is the initial set of states.
func start(program *syntax.Prog) places {
	p := places{}
	p.add(program, uint32(program.Start)) //nolint:gosec // An index into the program.
	return p
}

// step is the set of states after a character.
func (p places) step(program *syntax.Prog, r rune) places {
	next := places{}
	for pc := range p {
		if i := &program.Inst[pc]; i.Op != syntax.InstMatch && i.MatchRune(r) {
			next.add(program, i.Out)
		}
	}
	return next
}

// add adds an instruction, and those reachable without a character.
func (p places) add(program *syntax.Prog, pc uint32) {
	if _, there := p[pc]; there {
		return
	}
	switch i := &program.Inst[pc]; i.Op {
	case syntax.InstAlt, syntax.InstAltMatch:
		p.add(program, i.Out)
		p.add(program, i.Arg)
	case syntax.InstCapture, syntax.InstNop, syntax.InstEmptyWidth:
		p.add(program, i.Out)
	case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL,
		syntax.InstMatch:
		p[pc] = struct{}{}
	case syntax.InstFail:
	}
}
