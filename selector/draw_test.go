package selector_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"

	"dispatcher/selector"
)

var testKey = func() selector.Key {
	k, err := selector.ParseKey(strings.Repeat("0123456789abcdef", 4))
	if err != nil {
		panic(err)
	}
	return k
}()

// auditorsDraw repeats a draw step by step, as the documentation describes it.
func auditorsDraw(id string, attempt uint32, size uint64) uint64 {
	mac := hmac.New(sha256.New, testKey[:])
	mac.Write([]byte(id + "\x00"))
	mac.Write(binary.BigEndian.AppendUint32(nil, attempt))
	x := new(big.Int).SetBytes(mac.Sum(nil)[:8])
	x.Mul(x, new(big.Int).SetUint64(size))
	return x.Rsh(x, 64).Uint64()
}

func TestDrawIsTheDocumentedFormula(t *testing.T) {
	t.Parallel()
	drawer := selector.NewDrawer(testKey)
	for i := range 1000 {
		id, attempt, size := fmt.Sprint("order-", i), i%5+1, uint64(1)<<(i%41)
		if got, want := drawer.Draw(id, attempt, size),
			auditorsDraw(id, uint32(attempt), size); got != want {
			t.Fatalf("draw of %s, %d in %d: %d, by hand %d", id, attempt, size, got, want)
		}
	}
}

func TestDrawDependsOnKeyIDAndAttempt(t *testing.T) {
	t.Parallel()
	other, err := selector.ParseKey(strings.Repeat("f", 64))
	if err != nil {
		t.Fatal(err)
	}
	a, b := selector.NewDrawer(testKey), selector.NewDrawer(other)
	const size = 1 << 40
	base := a.Draw("m", 1, size)
	if a.Draw("m", 1, size) != base {
		t.Error("the same draw gave two numbers")
	}
	if a.Draw("m", 2, size) == base || a.Draw("n", 1, size) == base || b.Draw("m", 1, size) == base {
		t.Error("attempt, id or key does not change the draw")
	}
	if a.KeyID() == b.KeyID() || len(a.KeyID()) != 8 ||
		strings.Contains(testKey.String(), "0123456789abcdef") {
		t.Error("the key id is the same for two keys, or shows the key")
	}
}

func TestHMACIsTheDocumentedFormula(t *testing.T) {
	t.Parallel()
	drawer := selector.NewDrawer(testKey)
	for _, data := range []string{"", "+447700900123", strings.Repeat("{}", 5000)} {
		mac := hmac.New(sha256.New, testKey[:])
		mac.Write([]byte("\x00number\x00" + data))
		want := int64(binary.BigEndian.Uint64(mac.Sum(nil)))
		if got := drawer.HMAC("number", []byte(data)); got != want {
			t.Errorf("%d bytes: %d, by hand %d", len(data), got, want)
		}
	}
	if drawer.HMAC("number", nil) == drawer.HMAC("envelope", nil) {
		t.Error("another use gives the same draw")
	}
}

func TestSaltIsTheDocumentedFormula(t *testing.T) {
	t.Parallel()
	drawer := selector.NewDrawer(testKey)
	for _, id := range []string{"", "order-7731", strings.Repeat("x", 300)} {
		mac := hmac.New(sha256.New, testKey[:])
		mac.Write([]byte("\x00salt\x00" + id))
		if got, want := drawer.Salt(id), mac.Sum(nil)[:16]; !bytes.Equal(got[:], want) {
			t.Errorf("%q: %x, by hand %x", id, got, want)
		}
	}
}

func TestParseKeyRefusesWhatIsNoSecret(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"", "abc", strings.Repeat("0", 64), strings.Repeat("g", 64), strings.Repeat("a", 66),
	} {
		if _, err := selector.ParseKey(s); err == nil {
			t.Errorf("a key of %d characters was accepted", len(s))
		}
	}
}

func TestSharesPassChiSquare(t *testing.T) {
	t.Parallel()
	table, drawer := mustTable(t, "25", "15", "60"), selector.NewDrawer(testKey)
	for _, n := range []int{15_000, 1_000_000} {
		counts := make([]int, 3)
		for i := range n {
			counts[table.Pick(drawer.Draw(fmt.Sprintf("message-%d", i), 1, table.Size()))]++
		}
		if p := chiSquareP(chiSquare(table, counts, n), 2); p < 0.001 {
			t.Errorf("%d draws: %v, p = %.5f", n, counts, p)
		}
	}
}

func BenchmarkDraw(b *testing.B) {
	drawer := selector.NewDrawer(testKey)
	b.ReportAllocs()
	for b.Loop() {
		drawer.Draw("order-7731-otp", 1, 100)
	}
}

// TestAStickyDrawIsInProportionToTheHash as docs/audit.md defines it.
func TestAStickyDrawIsInProportionToTheHash(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		hash       int64
		size, want uint64
	}{
		{0, 100, 0},
		{1 << 62, 100, 25},
		{math.MinInt64, 100, 50},
		{-1, 100, 99},
		{-1, 1, 0},
		{1<<62 - 1, 100, 24},
		{-1 << 62, 1 << 40, 3 << 38},
	} {
		if got := selector.StickyDraw(tc.hash, tc.size); got != tc.want {
			t.Errorf("%d of %d draws %d, want %d", tc.hash, tc.size, got, tc.want)
		}
	}
}
