package access_test

import (
	"testing"

	"dispatcher/cmd/dispatcher/internal/access"
)

func TestNobodyHoldsMoreThanTheirShare(t *testing.T) {
	t.Parallel()
	s := access.NewShares(10, 6)
	for i, step := range []struct {
		name string
		n    int64
		want bool
	}{
		{"anna", 6, true},
		{"anna", 1, false},
		{"bob", 5, false},
		{"bob", 4, true},
		{"eve", 1, false},
		{"anna", -2, true},
		{"eve", 2, true},
		{"bob", 1, false},
		{"bob", -4, true},
		{"bob", 4, true},
	} {
		if step.n < 0 {
			s.Give(step.name, -step.n)
		} else if got := s.Take(step.name, step.n); got != step.want {
			t.Errorf("step %d: %s takes %d: %t, want %t", i, step.name, step.n, got, step.want)
		}
	}
}
