package query_test

import (
	"reflect"
	"strconv"
	"testing"

	"feedbox/application/query"
)

func TestMapPageKeepsContinuationAndSession(t *testing.T) {
	got := query.MapPage(query.Page[int]{Items: []int{1, 2}, Continuation: "next", SessionToken: "0:-1#7"}, strconv.Itoa)
	if want := (query.Page[string]{Items: []string{"1", "2"}, Continuation: "next", SessionToken: "0:-1#7"}); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
