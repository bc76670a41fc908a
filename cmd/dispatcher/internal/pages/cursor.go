package pages

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// pageRows is how many rows of a list a page shows. With more, pages of busy systems would take
// long to load.
const pageRows = 50

// cursorOf names the last row of a page, as cursors of the API do.
func cursorOf(numbers ...int64) string {
	texts := make([]string, len(numbers))
	for i, n := range numbers {
		texts[i] = strconv.FormatInt(n, 10)
	}
	return base64.RawURLEncoding.EncodeToString([]byte(strings.Join(texts, ".")))
}

// readCursor reads a cursor of n numbers; nil for an empty one, which means the first page.
func readCursor(cursor string, n int) ([]int64, error) {
	if cursor == "" {
		return nil, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	texts := strings.Split(string(raw), ".")
	if err != nil || len(texts) != n {
		return nil, notFound{"The list has no such page: begin at its first one."}
	}
	numbers := make([]int64, n)
	for i, text := range texts {
		if numbers[i], err = strconv.ParseInt(text, 10, 64); err != nil {
			return nil, notFound{"The list has no such page: begin at its first one."}
		}
	}
	return numbers, nil
}

// linkTo is the address of a page whose query differs in one value.
func linkTo(u *url.URL, name, value string) string {
	query := u.Query()
	query.Del("done") // the notice of what was done
	query.Set(name, value)
	return fmt.Sprintf("%s?%s", u.Path, query.Encode())
}
