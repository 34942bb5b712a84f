package cosmosemu

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// checkHeaders refuses values that the service refuses, and what would be answered
// wrongly here: a header that is not understood must not be passed over.
func (x *request) checkHeaders() *wireError {
	h := x.header
	if v := first(h, headerVersion); v != "" {
		if _, err := time.Parse(time.DateOnly, v); err != nil {
			return refuse(http.StatusBadRequest, "x-ms-version is %q: it must be the date of a version, such as 2020-07-15", v)
		}
	}
	if v := first(h, headerConsistency); v != "" && !slices.Contains(consistencyLevels, v) {
		return refuse(http.StatusBadRequest, "x-ms-consistency-level is %q: it must be one of %v", v, consistencyLevels)
	}
	if v := first(h, headerIndexing); v != "" && !oneOf(v, "Default", "Include", "Exclude") {
		return refuse(http.StatusBadRequest, "x-ms-indexing-directive is %q: it must be Default, Include or Exclude", v)
	}
	if v := first(h, headerContentFormat); v != "" {
		for format := range strings.SplitSeq(v, ",") {
			if !oneOf(strings.TrimSpace(format), "JsonText", "CosmosBinary", "HybridRow") {
				return refuse(http.StatusBadRequest, "x-ms-cosmos-supported-serialization-formats is %q: the formats are JsonText, CosmosBinary and HybridRow", v)
			}
		}
	}
	if v := first(h, headerTokenLimit); v != "" {
		if n, err := strconv.Atoi(v); err != nil || n < 1 {
			return refuse(http.StatusBadRequest, "x-ms-documentdb-responsecontinuationtokenlimitinkb is %q: it must be a positive number", v)
		}
	}
	if v := first(h, headerDirection); v != "" && !strings.EqualFold(v, "Forward") {
		return refuse(http.StatusBadRequest, "x-ms-enumeration-direction %q is not supported by this emulator: feeds are read forward", v)
	}
	return nil
}

func oneOf(text string, allowed ...string) bool {
	return slices.ContainsFunc(allowed, func(one string) bool { return strings.EqualFold(one, text) })
}

// checkTokenSize refuses a continuation token that is longer than the client can take.
func (x *request) checkTokenSize(token string) error {
	limit, err := strconv.Atoi(first(x.header, headerTokenLimit))
	if err == nil && len(token) > limit*1024 {
		return refuse(http.StatusBadRequest, "The continuation token has %d bytes, the request allows %d KB: sort by shorter values", len(token), limit)
	}
	return nil
}
