package app

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ownLoop is own for a part that never fails.
func (a *App) ownLoop(name string, run func(ctx context.Context)) {
	a.own(name, func(ctx context.Context) error { run(ctx); return nil })
}

// own runs a part in the background, and adds the step that ends it and waits for it to the stop
// order. An error of the part ends the process.
func (a *App) own(name string, run func(ctx context.Context) error) {
	ctx, cancel := context.WithCancel(a.background)
	done := make(chan struct{})
	a.work.Go(func() {
		defer close(done)
		if err := run(ctx); err != nil && ctx.Err() == nil {
			select {
			case a.failed <- fmt.Errorf("%s: %w", name, err):
			default:
			}
		}
	})
	a.stopper.add(name, func(stop context.Context) error {
		cancel()
		select {
		case <-done:
			return nil
		case <-stop.Done():
			return stop.Err()
		}
	})
}

// stopper has a step for each started part, and runs the steps in reverse order. Each step gets the
// time that is left.
type stopper struct {
	steps []stopStep
}

type stopStep struct {
	name string
	stop func(context.Context) error
}

// add registers how to stop what was just started.
func (s *stopper) add(name string, stop func(context.Context) error) {
	s.steps = append(s.steps, stopStep{name, stop})
}

// stop runs the steps, last started first, and goes on when one fails. It is idempotent.
func (s *stopper) stop(timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
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

// othersInterval is how often a pausing process checks whether others still work.
const othersInterval = time.Second

// pauseAfterCrashes closes begin: at once, or after a pause when the processes before this one
// crashed one after the other. Without the pause, a process in a crash loop would join the consumer
// groups each time and take partitions and attempts that working processes could handle. There is
// no pause when no other process works.
func (a *App) pauseAfterCrashes(ctx context.Context) error {
	if pause := a.identity.Pause; pause > 0 {
		over := time.After(pause)
		told := false
		for a.othersWork(ctx) {
			if !told {
				told = true
				a.log.Warn().Int("crashes", a.identity.EarlyEnds).Stringer("pause", pause).
					Msg("the processes before this one ended within seconds, without an orderly " +
						"stop; taking no messages for now, while others do")
			}
			select {
			case <-over:
				close(a.begin)
				return nil
			case <-time.After(othersInterval):
			case <-ctx.Done():
				return nil
			}
		}
		if err := a.ledger.Instances.BeginWork(ctx); err != nil && ctx.Err() == nil {
			a.log.Warn().Err(err).Msg("other processes do not see that this one takes messages")
		}
	}
	close(a.begin)
	return nil
}

// othersWork reports whether other processes work. It is also true when the database does not
// answer, because nothing can be sent then.
func (a *App) othersWork(ctx context.Context) bool {
	work, err := a.ledger.Instances.OthersWork(ctx, a.opts.Settings.DeadAfter)
	return work || err != nil
}

// mayBegin waits until this process may take messages; false means that ctx has ended.
func (a *App) mayBegin(ctx context.Context) bool {
	select {
	case <-a.begin:
		return true
	case <-ctx.Done():
		return false
	}
}

// memberName is the group instance id of this process, which its successor after a crash uses as
// well.
func (a *App) memberName() string { return fmt.Sprintf("dispatcher-%d", a.identity.Number) }
