package pages

import (
	"fmt"
	"net/url"
)

// pageRows is how many rows of a list a page shows. With more, pages of busy systems would take
// long to load.
const pageRows = 50

// linkTo is the address of a page whose query differs in one value.
func linkTo(u *url.URL, name, value string) string {
	query := u.Query()
	query.Del("done") // the notice of what was done
	query.Set(name, value)
	return fmt.Sprintf("%s?%s", u.Path, query.Encode())
}
