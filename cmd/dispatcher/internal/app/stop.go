package app

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// stopper collects what has been started, so that it can be stopped in the opposite
// order. Each step gets the time that is left.
type stopper struct {
	steps []stopStep
}

type stopStep struct {
	name string
	stop func(context.Context) error
}

// add registers how to stop what has just been started.
func (s *stopper) add(name string, stop func(context.Context) error) {
	s.steps = append(s.steps, stopStep{name, stop})
}

// stop runs the steps, last started first, and goes on when one fails. It is idempotent.
func (s *stopper) stop(patience time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var errs []error
	for len(s.steps) > 0 {
		step := s.steps[len(s.steps)-1]
		s.steps = s.steps[:len(s.steps)-1]
		if err := step.stop(ctx); err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", step.name, err))
		}
	}
	return errors.Join(errs...)
}
