package cosmosemu

import (
	"net/http"
	"strconv"
	"strings"
)

// maxItemCount reads the page size that the client asks for; 0 leaves it to the server.
func maxItemCount(h http.Header) (int, error) {
	text := first(h, headerMaxItemCount)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < -1 || n == 0 {
		return 0, refuse(http.StatusBadRequest, "x-ms-max-item-count is %q: it must be -1 or a positive number", text)
	}
	return max(n, 0), nil
}

// readsBackward reports whether the request reads a feed of items from its end. The .NET
// SDK sends the name of the direction or its number.
func readsBackward(h http.Header, op Operation) bool {
	v := first(h, headerDirection)
	return op == OpListItems && (strings.EqualFold(v, "Reverse") || v == "2")
}

// checkDirection refuses to read any other feed from its end.
func checkDirection(h http.Header, op Operation) *wireError {
	v := first(h, headerDirection)
	if v == "" || oneOf(v, "Forward", "1") || readsBackward(h, op) {
		return nil
	}
	return refuse(http.StatusBadRequest, "x-ms-enumeration-direction %q is not supported by this emulator: it is Forward or Reverse, and only the feed of items is read in reverse", v)
}

// checkTokenSize refuses to return a continuation token that is longer than the client
// accepts.
func checkTokenSize(h http.Header, token string) error {
	limit, err := strconv.Atoi(first(h, headerTokenLimit))
	if err == nil && len(token) > limit*1024 {
		return refuse(http.StatusBadRequest, "The continuation token limit specified is not large enough: the token has %d bytes, the request allows %d KB", len(token), limit)
	}
	return nil
}
