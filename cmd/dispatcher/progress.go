package main

import (
	"sync"

	"github.com/cheggaaa/pb/v3"
)

// barTemplate is "publishing 250 / 1000 [--->____] 25.00% 800/s".
const barTemplate pb.ProgressBarTemplate = `{{string . "prefix"}} {{counters .}} {{bar .}} ` +
	`{{percent .}} {{speed . "%s/s" " "}}`

// progress returns two functions. show draws a progress bar on a terminal, from its first call
// until total is reached. wipe removes it for good. Without a terminal both do nothing.
func (c *cli) progress(what string, total int64) (show func(done int64), wipe func()) {
	if total <= 1 || !isTerminal(c.err) {
		return func(int64) {}, func() {}
	}
	bar := barTemplate.New(int(total)).Set("prefix", what).Set(pb.CleanOnFinish, true).
		SetWriter(direct(c.err))
	var begun sync.Once // a late call must not start it again
	wipe = func() {
		begun.Do(func() {})
		bar.Finish()
	}
	show = func(done int64) {
		begun.Do(func() { bar.Start() })
		if bar.SetCurrent(done); done >= total {
			wipe()
		}
	}
	return show, wipe
}
