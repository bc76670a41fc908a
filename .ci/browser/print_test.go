package browser

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// pdfPage is the beginning of a page in a PDF, and not of the list of pages.
var pdfPage = regexp.MustCompile(`/Type\s*/Page\b`)

// TestAReportIsPrintedAsPDF: that of a month, as a person prints it. A test of the command writes
// the page.
func TestAReportIsPrintedAsPDF(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	cmd := exec.Command("go", "test", "-count=1", "-run", "^TestThePageNeedsNothingElse$",
		"./cmd/dispatcher")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "REPORT_PAGES="+folder)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ctx := browser(t)
	open(t, ctx, "file://"+filepath.Join(folder, "report-31.html"))
	if got := text(t, ctx, "h1"); got != "Report 2026-10-01 to 2026-10-31" {
		t.Fatalf("the page is %q", got)
	}
	if plots := value[int](t, ctx, `document.querySelectorAll("figure svg").length`); plots < 6 {
		t.Errorf("%d plots, in light and dark", plots)
	}
	yes := true
	printed, err := chromedp.Run(ctx,
		func(ctx context.Context, target *chromedp.Target) ([]byte, error) {
			r, err := cdp.Call(ctx, target, cdppage.PrintToPDF,
				cdppage.PrintToPDFParams{PreferCSSPageSize: &yes})
			if err != nil {
				return nil, err
			}
			return r.Data, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	if to := os.Getenv("PRINTED"); to != "" {
		if err := os.WriteFile(to, printed, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pages := len(pdfPage.FindAll(printed, -1))
	if !bytes.HasPrefix(printed, []byte("%PDF-")) || pages < 2 || pages > 30 || len(printed) < 20_000 {
		t.Errorf("%d pages and %d bytes, which begin with %.8q", pages, len(printed), printed)
	}
	t.Logf("%d pages, %d bytes", pages, len(printed))
}
