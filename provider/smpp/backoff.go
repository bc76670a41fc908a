package smpp

import "time"

// backoff is the pause before the next connection after that many in a row came to
// nothing: evenly spread ("full jitter") between low and a ceiling that starts at
// twice low and doubles up to high. random is from [0, 1).
//
// The floor keeps a wrong password from becoming a tight loop; the jitter keeps all
// processes from coming back in the same moment after an outage.
func backoff(failures int, low, high time.Duration, random float64) time.Duration {
	ceiling := high
	if failures < 30 && low < high>>(failures+1) {
		ceiling = low << (failures + 1)
	}
	return low + time.Duration(random*float64(ceiling-low))
}
