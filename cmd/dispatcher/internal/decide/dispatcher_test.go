package decide

import (
	"fmt"
	"time"

	"dispatcher/cmd/dispatcher/internal/envelope"
)

// jobsNamed are n records with ids prefix-0, prefix-1, ...
func jobsNamed(prefix string, n int) []Job {
	jobs := make([]Job, n)
	for i := range jobs {
		m := envelope.Message{ID: fmt.Sprintf("%s-%d", prefix, i), To: "+447700900123", Text: "Your code is 123456"}
		jobs[i] = Job{Lane: "bulk", Produced: time.Now(), Message: m, Raw: m.Append(nil), Origin: Origin{Topic: "sms.bulk", Offset: int64(i)}}
	}
	return jobs
}
