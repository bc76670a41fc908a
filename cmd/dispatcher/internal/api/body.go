package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"dispatcher/cmd/dispatcher/internal/access"
)

// What requests with a body may take of the memory at a time: all of them together, and those of
// one principal. Messages of senders have as much for themselves, so that they keep no operator
// from pausing.
const (
	memoryOfAll  = 128 << 20
	memoryOfEach = memoryOfAll / 2
)

// What a body counts as. Its bytes are copied a few times; those of a routing document, which has
// at most 1 MiB, become nodes of YAML. Each value of its JSON is decoded twice, and may get an
// error of its own.
const (
	memoryOfByte     = 4
	memoryOfDocument = 48
	memoryOfValue    = 300

	mostOfDocument = 1 << 20
)

// bodyPiece is how much of a body is read at once. It is counted before it is read, so a client
// that announces much and sends little takes little.
const bodyPiece = 4 << 10

var (
	errTooLarge = errors.New("the body is too large")
	errNoMemory = errors.New("requests take too much of the memory already")
)

// bodyKey is the key of a request's body in its context.
type bodyKey struct{}

// receive is the middleware that reads the body, and bounds what it takes of the memory. It runs
// after guard, because each principal has a share.
func (a *API) receive(ctx huma.Context, next func(huma.Context)) {
	o := ctx.Operation()
	if o.RequestBody == nil {
		next(ctx)
		return
	}
	r, w := humago.Unwrap(ctx)
	name, held, memory := caller(ctx.Context()).Name, int64(0), a.memory
	if o.Metadata[actionKey] == access.Send {
		memory = a.memoryOfSenders
	}
	defer func() { memory.Give(name, held) }()
	body, err := receiveBody(r.Body, o, func(n int64) error {
		switch {
		case held+n > memoryOfEach:
			return errTooLarge
		case !memory.Take(name, n):
			return errNoMemory
		}
		held += n
		return nil
	})
	slow, isNet := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, errTooLarge):
		a.deny(ctx, http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is too large: it has "+
			"more than %d bytes, or very many values", o.MaxBodyBytes))
	case errors.Is(err, errNoMemory):
		a.denyFor(ctx, time.Second, "too many large requests at a time; wait before the next one")
	case isNet && slow.Timeout():
		a.deny(ctx, http.StatusRequestTimeout, "the body did not arrive in time: send it again")
	case err != nil:
		a.deny(ctx, http.StatusBadRequest, "the body did not arrive whole: send it again")
	default:
		r = r.WithContext(context.WithValue(ctx.Context(), bodyKey{}, body))
		r.Body = io.NopCloser(bytes.NewReader(body))
		next(humago.NewContext(o, r, w))
	}
}

// receiveBody reads the body of an operation. take is called with what it counts as, in parts; its
// error ends the reading.
func receiveBody(from io.Reader, o *huma.Operation, take func(int64) error) ([]byte, error) {
	_, document := o.Metadata[documentKey]
	var body bytes.Buffer
	for more := true; more; {
		var perByte int64 = memoryOfByte
		if document && body.Len() < mostOfDocument {
			perByte = memoryOfDocument
		}
		if err := take(perByte * bodyPiece); err != nil {
			return nil, err
		}
		_, err := io.CopyN(&body, from, bodyPiece)
		if more = err == nil; err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if int64(body.Len()) > o.MaxBodyBytes {
			return nil, errTooLarge
		}
	}
	return body.Bytes(), take(memoryOfValue * values(body.Bytes()))
}

// values counts the values of a JSON text, at most one too many for each list and object.
func values(text []byte) int64 {
	n := int64(1)
	for inString, i := false, 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case !inString && (c == ',' || c == '[' || c == '{'):
			n++
		}
	}
	return n
}

// documentKey marks an operation with a routing document in its metadata.
const documentKey = "document"

// withDocument is for an operation with a routing document.
func withDocument(o *huma.Operation) { o.Metadata[documentKey] = true }
