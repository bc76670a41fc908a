package report

import (
	"encoding/json"
	"testing"
)

func TestPreviewIsTheContract(t *testing.T) {
	t.Parallel()
	p, err := NewPreview(document("default", "A", "34.5", "B", "1.3", "spare", "0", "C", "58.7",
		"D", "5.5"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"routes":[{"route":"default","mode":"weighted","size":1000,"intervals":[` +
		`{"channel":"A","weight":34.5,"low":0,"high":344,"share":0.345},` +
		`{"channel":"B","weight":1.3,"low":345,"high":357,"share":0.013},` +
		`{"channel":"spare","weight":0,"low":null,"high":null,"share":0},` +
		`{"channel":"C","weight":58.7,"low":358,"high":944,"share":0.587},` +
		`{"channel":"D","weight":5.5,"low":945,"high":999,"share":0.055}]}]}`
	if string(got) != want {
		t.Errorf("%s, want\n%s", got, want)
	}
}

func TestPreviewOfARouteThatDoesNotDrawHasNoIntervals(t *testing.T) {
	t.Parallel()
	weighted := document("spare", "a", "3", "b", "0")
	weighted.Routes[0].Mode = "longest_idle"
	doc := inMode("default", "round_robin", "A", "B")
	doc.Routes = append(doc.Routes, weighted.Routes...)
	p, err := NewPreview(doc)
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"routes":[{"route":"default","mode":"round_robin","size":0,"intervals":[` +
		`{"channel":"A","weight":null,"low":null,"high":null,"share":null},` +
		`{"channel":"B","weight":null,"low":null,"high":null,"share":null}]},` +
		`{"route":"spare","mode":"longest_idle","size":0,"intervals":[` +
		`{"channel":"a","weight":3,"low":null,"high":null,"share":null},` +
		`{"channel":"b","weight":0,"low":null,"high":null,"share":null}]}]}`
	if string(got) != want {
		t.Errorf("%s, want\n%s", got, want)
	}
}
