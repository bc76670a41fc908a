package main

import (
	"io"
	"sync"
	"time"

	"github.com/cheggaaa/pb/v3"
)

// barTemplate is "publishing 250 / 1000 [--->____] 25.00% 800/s". sumTemplate, for work whose
// amount is not known, is "reading 250000 3s".
const (
	barTemplate pb.ProgressBarTemplate = `{{string . "prefix"}} {{counters .}} {{bar .}} ` +
		`{{percent .}} {{speed . "%s/s" " "}}`
	sumTemplate pb.ProgressBarTemplate = `{{string . "prefix"}} {{string . "done"}} {{etime .}}`
)

// progressAfter is how long a command works before it draws its progress.
const progressAfter = time.Second / 2

// progress returns two functions. show says how much of total is done, and wipe ends it for good.
// On a terminal they draw a progress bar when the work takes longer than progressAfter, without a
// terminal they do nothing. A total of 0 means that it is not known; with 1 only the time is shown.
func (c *cli) progress(what string, total int64) (show func(done int64), wipe func()) {
	if !isTerminal(c.err) {
		return func(int64) {}, func() {}
	}
	return drawProgress(direct(c.err), what, total)
}

func drawProgress(out io.Writer, what string, total int64) (show func(done int64), wipe func()) {
	template := barTemplate
	if total <= 1 {
		template = sumTemplate
	}
	bar := template.New(int(total)).Set("prefix", what).Set(pb.CleanOnFinish, true).SetWriter(out)
	var begun sync.Once // a late timer must not start it again
	timer := time.AfterFunc(progressAfter, func() { begun.Do(func() { bar.Start() }) })
	wipe = func() {
		timer.Stop()
		begun.Do(func() {})
		bar.Finish()
	}
	show = func(done int64) {
		if bar.SetCurrent(done); total == 0 {
			bar.Set("done", done)
		}
	}
	return show, wipe
}
