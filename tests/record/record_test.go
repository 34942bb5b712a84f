package record_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"feedbox/tests/record"
)

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("FEEDBOX_RESULTS", dir)
	t.Run("of a story", func(t *testing.T) {
		record.Write(t, record.Result{Fault: "F0", Name: "nothing", Seed: 7, Note: "no fault"})
		if files, _ := os.ReadDir(dir); len(files) > 0 {
			t.Errorf("%d records before the test ended", len(files))
		}
	})
	data, err := os.ReadFile(filepath.Join(dir, "F0-record-TestWrite_of_a_story.json"))
	if err != nil {
		t.Fatal(err)
	}
	var got record.Result
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	want := record.Result{Fault: "F0", Name: "nothing", Test: "TestWrite/of_a_story", Seed: 7, Note: "no fault", Commit: got.Commit}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
