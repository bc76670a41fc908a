package config

import (
	"fmt"
	"strings"
	"time"
)

// Hours are times of the week, by the clock of a zone. An empty Hours contains every time.
type Hours []Span

// Span is a time of the day on some days of the week. One that ends before it begins continues into
// the next day.
type Span struct {
	Days     Days
	From, To int // minutes since midnight; To is not in the span, and at most 24 * 60
}

// Days is a set of days of the week; bit 0 is Sunday.
type Days uint8

const everyDay Days = 1<<7 - 1

const minutesOfDay = 24 * 60

// Has reports whether a day is one of them.
func (d Days) Has(day time.Weekday) bool { return d&(1<<day) != 0 }

// dayWords are the words of the document, by time.Weekday.
var dayWords = [7]string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// Contains reports whether a moment, in the zone that it has, is within the hours.
func (h Hours) Contains(at time.Time) bool { return len(h) == 0 || h.span(at) != nil }

// span is the first span that contains a moment; nil when none does.
func (h Hours) span(at time.Time) *Span {
	minute, today := at.Hour()*60+at.Minute(), at.Weekday()
	yesterday := (today + 6) % 7
	for i := range h {
		s := &h[i]
		switch {
		case s.From < s.To:
			if s.Days.Has(today) && s.From <= minute && minute < s.To {
				return s
			}
		case s.Days.Has(today) && minute >= s.From, s.Days.Has(yesterday) && minute < s.To:
			return s
		}
	}
	return nil
}

// end is the first minute at or after a moment that is outside the hours; a week later for hours
// that never end. Far from the end, one step leads to 90 minutes before it, because clocks change
// by at most an hour.
func (h Hours) end(at time.Time) time.Time {
	last := at.AddDate(0, 0, 7)
	for at.Before(last) {
		s := h.span(at)
		if s == nil {
			return at
		}
		at = at.Truncate(time.Minute)
		left := (s.To - at.Hour()*60 - at.Minute() + minutesOfDay) % minutesOfDay
		if left > 120 { // the clocks are changed by an hour at most
			at = at.Add(time.Duration(left-90) * time.Minute)
		} else {
			at = at.Add(time.Minute)
		}
	}
	return last
}

// always reports whether the hours are the whole week.
func (h Hours) always() bool {
	for minute := range 7 * minutesOfDay {
		if !h.Contains(time.Date(2026, 1, 4, 0, minute, 0, 0, time.UTC)) {
			return false
		}
	}
	return len(h) > 0
}

// String is the span as a document writes it, with days before the times.
func (s *Span) String() string {
	at := func(minutes int) string { return fmt.Sprintf("%02d:%02d", minutes/60, minutes%60) }
	times := at(s.From) + "-" + at(s.To)
	if s.Days == everyDay {
		return times
	}
	var days []string
	for day := 1; day <= 7; {
		first := day
		for day <= 7 && s.Days.Has(time.Weekday(day%7)) {
			day++
		}
		switch word := dayWords[first%7]; day {
		case first:
			day++
		case first + 1:
			days = append(days, word)
		default:
			days = append(days, word+"-"+dayWords[(day-1)%7])
		}
	}
	return strings.Join(days, ",") + " " + times
}

// words are the spans as a document lists them.
func (h Hours) words() []string {
	out := make([]string, len(h))
	for i := range h {
		out[i] = h[i].String()
	}
	return out
}

const hoursForm = `write for example "mon-fri 08:00-18:00" or "22:00-08:00"`

// readHours reads a list of spans, or a single one.
func readHours(v value) Hours {
	items := v.items()
	if len(items) == 0 {
		v.fail("is an empty list; " + hoursForm)
	}
	var out Hours
	for _, item := range items {
		s, ok := item.text()
		if !ok {
			continue
		}
		span, err := parseSpan(s)
		if err != nil {
			item.fail("%q %v; %s", s, err, hoursForm)
			continue
		}
		out = append(out, span)
	}
	return out
}

func parseSpan(s string) (Span, error) {
	span, words := Span{Days: everyDay}, strings.Fields(s)
	if len(words) == 2 {
		days, err := parseDays(words[0])
		if err != nil {
			return span, err
		}
		span.Days, words = days, words[1:]
	}
	if len(words) != 1 {
		return span, fmt.Errorf("is not days and times")
	}
	from, to, ok := strings.Cut(words[0], "-")
	if !ok {
		return span, fmt.Errorf("has no end")
	}
	var err error
	if span.From, err = parseClock(from); err != nil {
		return span, err
	}
	if span.To, err = parseClock(to); err != nil {
		return span, err
	}
	switch span.From {
	case minutesOfDay:
		return span, fmt.Errorf("begins at 24:00, which is 00:00 of the next day")
	case span.To:
		return span, fmt.Errorf("ends when it begins; a whole day is 00:00-24:00")
	}
	return span, nil
}

// parseClock reads a time of the day from 00:00 to 24:00.
func parseClock(s string) (minutes int, err error) {
	if at, err := time.Parse("15:04", s); err == nil && len(s) == len("15:04") {
		return at.Hour()*60 + at.Minute(), nil
	}
	if s == "24:00" {
		return minutesOfDay, nil
	}
	return 0, fmt.Errorf("has no time of day in %q", s)
}

// parseDays reads days separated by commas; a dash means all days from one to another.
func parseDays(s string) (Days, error) {
	var days Days
	for part := range strings.SplitSeq(s, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, to := dayOf(first), dayOf(last)
		if from < 0 || to < 0 {
			return 0, fmt.Errorf("has no day of the week in %q", part)
		}
		for day := from; ; day = (day + 1) % 7 {
			days |= 1 << day
			if day == to {
				break
			}
		}
	}
	return days, nil
}

// dayOf is the day that a word names; -1 for none.
func dayOf(word string) int {
	for day, name := range dayWords {
		if strings.EqualFold(word, name) {
			return day
		}
	}
	return -1
}
