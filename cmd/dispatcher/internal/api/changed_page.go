package api

import (
	"dispatcher/cmd/dispatcher/internal/control"
)

// ChangedPage is the part of an answer that reports a page of messages, each changed by itself.
type ChangedPage struct {
	Left    []control.Left `json:"left" nullable:"false" doc:"those of this page that could not be changed"`
	Next    string         `json:"next,omitempty" doc:"cursor for the rest, also after a failure; absent on the last page and in a dry run"`
	Trouble string         `json:"trouble,omitempty" doc:"why the rest of this page was not tried; what was changed stays so"`
}

func noneLeft() ChangedPage { return ChangedPage{Left: []control.Left{}} }

// changed makes the answer about a page. If a failure came after some messages of the page had been
// changed or left, the answer reports it; otherwise it is returned as an error.
func changed[C any](
	a *API, page *control.Page[C], err error, cursor func(last C) string,
) (out ChangedPage, _ error) {
	if err != nil && page.Tried() == 0 {
		return out, oneWrite(err)
	}
	out.Left = append(noneLeft().Left, page.Left...)
	if err != nil {
		a.cfg.Log.Error().Err(err).Msg("a change of many messages by the API was not finished")
		out.Trouble = "the ledger failed: send the request with next as cursor for the rest"
	}
	if page.More {
		out.Next = cursor(page.Last)
	}
	return out, nil
}
