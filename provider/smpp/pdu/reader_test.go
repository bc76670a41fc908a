package pdu

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"dispatcher/config/tier"
)

func TestReaderCutsTheSameFramesHoweverTheStreamIsSplit(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		var stream []byte
		var want [][]byte
		for range rapid.IntRange(1, 6).Draw(t, "frames") {
			size := rapid.SampledFrom([]int{0, 1, 100, 17000, MaxSize - 37}).Draw(t, "payload")
			frame, err := Append(nil, 0, 1,
				&SubmitSM{Message{TLVs: TLVs{{TagMessagePayload, make([]byte, size)}}}})
			if err != nil {
				t.Fatal(err)
			}
			stream, want = append(stream, frame...), append(want, frame)
		}
		reader := NewReader(&choppyReader{t: t, rest: stream})
		for i := range want {
			_, frame, err := reader.Next()
			if err != nil {
				t.Fatalf("frame %d: %v", i, err)
			}
			if !bytes.Equal(frame, want[i]) {
				t.Fatalf("frame %d differs", i)
			}
		}
		if _, _, err := reader.Next(); !errors.Is(err, io.EOF) {
			t.Fatalf("at the end: %v", err)
		}
	})
}

// choppyReader returns pieces of random sizes.
type choppyReader struct {
	t    *rapid.T
	rest []byte
}

func (c *choppyReader) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		return 0, io.EOF
	}
	n := rapid.SampledFrom([]int{1, 3, 15, 16, 17, 4000, 1 << 16}).Draw(c.t, "read")
	n = copy(p[:min(n, len(p))], c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

func TestReaderReportsTheEndWithinAFrame(t *testing.T) {
	t.Parallel()
	frame := AppendEmpty(nil, CommandEnquireLink, 0, 1)
	for n := 1; n < len(frame); n++ {
		if _, _, err := NewReader(bytes.NewReader(frame[:n])).Next(); !errors.Is(err,
			io.ErrUnexpectedEOF) {
			t.Errorf("after %d octets: %v", n, err)
		}
	}
	broken := errors.New("broken")
	if _, _, err := NewReader(iotest.ErrReader(broken)).Next(); !errors.Is(err, broken) {
		t.Errorf("the stream's error became %v", err)
	}
}

func TestReaderRefusesLengthsOutOfBounds(t *testing.T) {
	t.Parallel()
	for _, length := range []uint32{0, 15, MaxSize + 1, 0xFFFFFFFF} {
		frame := AppendEmpty(nil, CommandSubmitSM, 0, 1)
		binary.BigEndian.PutUint32(frame, length)
		if _, _, err := NewReader(bytes.NewReader(frame)).Next(); !errors.Is(err, ErrLength) {
			t.Errorf("length %d: %v", length, err)
		}
	}
}

func TestReadySaysWhetherAFrameIsBuffered(t *testing.T) {
	t.Parallel()
	frame := AppendEmpty(nil, CommandEnquireLink, 0, 1)
	reader := NewReader(bytes.NewReader(append(append(bytes.Clone(frame), frame...), 0, 0)))
	for i, want := range []bool{true, false} {
		if _, _, err := reader.Next(); err != nil {
			t.Fatal(err)
		}
		if got := reader.Ready(); got != want {
			t.Errorf("after frame %d: ready %v, want %v", i, got, want)
		}
	}
}

func TestReaderKnowsWhetherAPDUIsBegun(t *testing.T) {
	t.Parallel()
	frame := AppendEmpty(nil, CommandEnquireLink, 0, 1)
	ours, theirs := io.Pipe()
	defer func() { _ = ours.Close() }()
	begun := make(chan bool, 10)
	var reader *Reader
	reader = NewReader(readerFunc(func(p []byte) (int, error) {
		begun <- reader.Begun()
		return ours.Read(p)
	}))
	go func() {
		for _, piece := range [][]byte{frame[:3], frame[3:], frame, append(frame, 0)} {
			_, _ = theirs.Write(piece)
		}
		_ = theirs.Close()
	}()
	for range 3 {
		if _, _, err := reader.Next(); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := reader.Next(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	close(begun)
	var got []bool
	for b := range begun {
		got = append(got, b)
	}
	if want := []bool{false, true, false, false, true}; !slices.Equal(got, want) {
		t.Errorf("before each read: %v, want %v", got, want)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
