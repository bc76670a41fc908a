package numbers

import (
	"iter"
	"regexp/syntax"
)

// beginningsOf yields every sequence of so many digits that begins a text which the pattern matches
// as a whole. It runs the pattern's own program over the digits, as an automaton that is in several
// places at once (Thompson, Regular Expression Search Algorithm, 1968), and follows only what may
// still match.
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

// begins reports whether a text that the pattern matches as a whole may begin with some digits.
func begins(program *syntax.Prog, digits string) bool {
	at := start(program)
	for _, d := range digits {
		if at = at.step(program, d); len(at) == 0 {
			return false
		}
	}
	return true
}

// compile makes the program of a pattern. It panics for one that does not compile: those of the
// numbering plans do.
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

// places are the instructions of a program that wait for a character, or have matched.
type places map[uint32]struct{}

// start is where an automaton begins.
func start(program *syntax.Prog) places {
	p := places{}
	p.add(program, uint32(program.Start)) //nolint:gosec // An index into the program.
	return p
}

// step is where the automaton is after a character.
func (p places) step(program *syntax.Prog, r rune) places {
	next := places{}
	for pc := range p {
		if i := &program.Inst[pc]; i.Op != syntax.InstMatch && i.MatchRune(r) {
			next.add(program, i.Out)
		}
	}
	return next
}

// add follows what needs no character.
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
