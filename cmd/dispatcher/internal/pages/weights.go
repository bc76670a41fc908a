package pages

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/config"
	"dispatcher/selector"
)

// weightField is the prefix of the form fields of weights.
const weightField = "weight-"

// weightsOf parses the weights of a form, in the order of the route's channels.
func weightsOf(form url.Values, route *config.Route) ([]config.Weight, error) {
	var out []config.Weight
	for _, channel := range route.Channels {
		text := strings.TrimSpace(form.Get(weightField + channel))
		if text == "" {
			continue
		}
		w, err := selector.ParseWeight(text)
		if err != nil {
			return nil, &control.Refused{Err: fmt.Errorf("channel %s: %w", channel, err)}
		}
		out = append(out, config.Weight{Channel: channel, Weight: w, Configured: w})
	}
	if len(out) == 0 {
		return nil, refuse("the form names no weight: reload the page, and write at least one")
	}
	return out, nil
}

// previewWeights shows the effect of the weights in the form, and changes nothing. For the script
// it renders the preview alone.
func (s *Server) previewWeights(w http.ResponseWriter, r *request) error {
	effect, err := s.effectOfForm(r)
	if problem, ok := errors.AsType[*control.Refused](err); ok {
		effect, err = &effectPage{Problem: sentence(problem.Error())}, nil
	}
	if err != nil {
		return err
	}
	part, err := s.part(r, "route", "effect", effect)
	if err != nil {
		return err
	}
	w.Header().Set("X-Part", "preview")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, err = bytes.NewReader(part).WriteTo(w)
	return err
}

func (s *Server) effectOfForm(r *request) (*effectPage, error) {
	now, before, weights, err := s.formWeights(r)
	if err != nil {
		return nil, err
	}
	draft, err := control.Begin(r.Context(), s.cfg.Ledger, nil, control.By{
		Author: r.who.Name, DryRun: true,
	})
	if err != nil {
		return nil, err
	}
	changed, err := draft.SetWeights(r.Context(), before.Name, weights)
	if err != nil {
		return nil, err
	}
	after, err := routeNamed(changed.InForce, before.Name)
	if err != nil {
		return nil, err
	}
	effect, err := effectOf(now, before, after)
	if err == nil {
		for _, w := range changed.Warnings {
			if !slices.Contains(effect.Warnings, w) {
				effect.Warnings = append(effect.Warnings, w)
			}
		}
	}
	return effect, err
}

func (s *Server) setWeights(w http.ResponseWriter, r *request) error {
	_, route, weights, err := s.formWeights(r)
	if err != nil {
		return err
	}
	draft, err := s.draft(r)
	if err != nil {
		return err
	}
	done, err := draft.SetWeights(r.Context(), route.Name, weights)
	if err != nil {
		return err
	}
	return s.changed(w, r, routePath(route.Name), done)
}

func routePath(route string) string { return "/routes/" + url.PathEscape(route) }

// formWeights finds the route of a form, and reads the form's weights.
func (s *Server) formWeights(
	r *request,
) (now *snapshot, route *config.Route, weights []config.Weight, err error) {
	if now, err = s.facts.read(r.Context()); err != nil {
		return nil, nil, nil, err
	}
	if route, err = routeNamed(now.doc, r.PathValue("route")); err != nil {
		return nil, nil, nil, err
	}
	weights, err = weightsOf(r.PostForm, route)
	return now, route, weights, err
}

// startRamp starts a ramp to the weights of the form.
func (s *Server) startRamp(w http.ResponseWriter, r *request) error {
	_, route, weights, err := s.formWeights(r)
	if err != nil {
		return err
	}
	plan := &control.RampPlan{Route: route.Name, To: weights, MaxDeviation: 0.05, Least: 100}
	if plan.Steps, err = strconv.Atoi(r.PostFormValue("steps")); err != nil || plan.Steps < 1 {
		return refuse("write in how many steps")
	}
	minutes, err := strconv.ParseFloat(r.PostFormValue("minutes"), 64)
	if err != nil || !(minutes > 0 && minutes <= longestRamp.Minutes()) {
		return refuse("write over how many minutes, up to 30 days")
	}
	plan.Every = time.Duration(minutes*float64(time.Minute)) / time.Duration(plan.Steps)
	failing, err := strconv.ParseFloat(r.PostFormValue("errors"), 64)
	if err != nil || !(failing >= 0 && failing <= 100) {
		return refuse("write from how many percent of errors on the ramp is held")
	}
	plan.MaxErrors = failing / 100
	draft, err := s.draft(r)
	if err != nil {
		return err
	}
	started, err := draft.StartRamp(r.Context(), plan)
	if err != nil {
		return err
	}
	return s.ramped(w, r, route.Name, started)
}

// longestRamp bounds the duration of a ramp that the form starts.
const longestRamp = 30 * 24 * time.Hour

func (s *Server) ramped(
	w http.ResponseWriter, r *request, route string, done *control.RampStarted,
) error {
	s.facts.forget()
	if done.Unchanged {
		return s.done(w, r, routePath(route), "There was nothing to do.")
	}
	return s.done(w, r, routePath(route), done.Ramp.Sentence())
}

func (s *Server) steerRamp(w http.ResponseWriter, r *request) error {
	to, ok := control.SteeredTo[r.PostFormValue("move")]
	if !ok {
		return refuse("choose to hold, resume or cancel the ramp")
	}
	by, err := byOf(r)
	if err != nil {
		return err
	}
	// The form sends no version: the ramp may have made a new one since the page was shown.
	draft, err := control.Begin(r.Context(), s.cfg.Ledger, nil, *by)
	if err != nil {
		return err
	}
	done, err := draft.SteerRamp(r.Context(), r.PathValue("route"), to)
	if err != nil {
		return err
	}
	return s.ramped(w, r, r.PathValue("route"), done)
}
