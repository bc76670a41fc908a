package scoring

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"

	"dispatcher/cmd/dispatcher/internal/decide"
)

const (
	// maxAnswer bounds an answer in bytes; answers about many candidates may have answerShare for
	// each.
	maxAnswer   = 64 << 10
	answerShare = 256
)

// problem is what went wrong with a call; the zero problem means success.
type problem struct {
	word string
	// general says that the next call would probably fail as well, whatever it asks.
	general bool
}

// Error is the word.
func (p problem) Error() string { return p.word }

// post makes one call and writes the scores of its candidates into out. ctx ends with the deadline
// of the question.
func (c *Client) post(
	ctx context.Context, f *decide.Function, payload []byte, about []decide.ScoreCandidate,
	out []float64,
) problem {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, f.URL,
		bytes.NewReader(payload))
	if err != nil {
		return problem{decide.FunctionUnreachable, true} // the address cannot be called
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "dispatcher")
	if f.Token != "" {
		request.Header.Set("Authorization", "Bearer "+f.Token)
	}
	response, err := c.client(f).Do(request)
	if err != nil {
		return problem{wordOfTransport(err), true}
	}
	// The rest of the body is not waited for: closing drops the connection.
	defer response.Body.Close() //nolint:errcheck // Nothing depends on a clean goodbye.
	if response.StatusCode != http.StatusOK {
		return problem{decide.FunctionStatus, aboutTheFunction(response.StatusCode)}
	}
	raw, p := read(response, max(maxAnswer, answerShare*len(about)))
	if p.word != "" {
		return p
	}
	return problem{word: decode(raw, about, out)}
}

// read reads an answer of at most that many bytes.
func read(response *http.Response, most int) ([]byte, problem) {
	if response.ContentLength > int64(most) {
		return nil, problem{word: decide.FunctionTooLarge}
	}
	raw, err := io.ReadAll(io.LimitReader(response.Body, int64(most)+1))
	switch {
	case err != nil:
		return nil, problem{wordOfTransport(err), true}
	case len(raw) > most:
		return nil, problem{word: decide.FunctionTooLarge}
	}
	return raw, problem{}
}

// aboutTheFunction reports whether the function would probably answer any question with this
// status. The others are about one question, for example one with an odd label, and do not pause
// the function for all.
func aboutTheFunction(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusConflict, http.StatusRequestEntityTooLarge,
		http.StatusUnprocessableEntity:
		return false
	}
	return true
}

func wordOfTransport(err error) string {
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() || errors.Is(err,
		context.DeadlineExceeded) {
		return decide.FunctionTimeout
	}
	return decide.FunctionUnreachable
}
