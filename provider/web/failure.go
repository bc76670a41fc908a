package web

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"syscall"

	"dispatcher/provider"
)

// withheld is the result of a submission whose time was over before a byte of it had left.
func withheld(code string) provider.Result {
	err := errors.New("its latest time came before it could leave")
	if code == provider.DeadlinePassed {
		err = errors.New("its deadline passed before it could leave")
	}
	return provider.Result{Outcome: provider.Refused, Code: code, Err: err}
}

// cause is the bounded word for an error of net/http.
func cause(err error) string {
	var unknownAuthority x509.UnknownAuthorityError
	var hostname x509.HostnameError
	var certificate *tls.CertificateVerificationError
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.Is(err, errPrivate):
		return "private_address"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), timeout(err):
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "ended"
	case errors.As(err, &unknownAuthority), errors.As(err, &hostname), errors.As(err, &certificate):
		return "tls"
	case errors.As(err, &dns):
		return "dns"
	case errors.As(err, &op) && op.Op == "dial":
		return "dial"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "connection_lost"
	case errors.Is(err, errTooLong):
		return "answer_too_long"
	}
	return "transport"
}

func timeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

// withoutURL takes the address off an error of net/http: its query may hold a number or a text. What is left names hosts
// at most.
func withoutURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}
