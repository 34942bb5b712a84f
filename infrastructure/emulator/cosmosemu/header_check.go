package cosmosemu

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// oldVersions are the versions of the protocol before firstOpenVersion. From then on any
// date is accepted. Source: HttpConstants.Versions of Microsoft.Azure.Cosmos.Direct 3.44.
var oldVersions = []string{
	"2014-08-21", "2015-04-08", "2015-06-03", "2015-08-06", "2015-12-16", "2016-05-30", "2016-07-11", "2016-11-14",
	"2017-01-19", "2017-02-22", "2017-05-03", "2017-11-15", "2018-06-18", "2018-08-31", "2018-09-17",
}

const firstOpenVersion = "2018-12-31"

// usualVersions are those of the SDKs, which need no further check.
var usualVersions = []string{"2020-11-05", "2020-07-15", "2018-12-31"}

// checkHeaders refuses header values that the service refuses. It also refuses values
// that the emulator does not support, because ignoring them would give wrong answers.
func checkHeaders(h http.Header, op Operation) *wireError {
	if v := first(h, headerVersion); v != "" && !slices.Contains(usualVersions, v) {
		if _, err := time.Parse(time.DateOnly, v); err != nil || v < firstOpenVersion && !slices.Contains(oldVersions, v) {
			return refuse(http.StatusBadRequest, "x-ms-version is %q: it must be the date of a version, such as 2020-07-15", v)
		}
	}
	if v := first(h, headerConsistency); v != "" && !slices.Contains(consistencyLevels, v) {
		return refuse(http.StatusBadRequest, "x-ms-consistency-level is %q: it must be one of %v", v, consistencyLevels)
	}
	if v := first(h, headerIndexing); v != "" && !oneOf(v, "Default", "Include", "Exclude") {
		return refuse(http.StatusBadRequest, "x-ms-indexing-directive is %q: it must be Default, Include or Exclude", v)
	}
	if v := first(h, headerBodyFormat); v != "" && !oneOf(v, "JsonText", "CosmosBinary") {
		return refuse(http.StatusBadRequest, "x-ms-documentdb-content-serialization-format is %q: it must be JsonText or CosmosBinary", v)
	}
	if v := first(h, headerContentFormat); v != "" {
		for format := range strings.SplitSeq(v, ",") {
			if !oneOf(strings.TrimSpace(format), "JsonText", "CosmosBinary", "HybridRow") {
				return refuse(http.StatusBadRequest, "x-ms-cosmos-supported-serialization-formats is %q: the formats are JsonText, CosmosBinary and HybridRow", v)
			}
		}
	}
	if v := first(h, headerPreTrigger) + first(h, headerPostTrigger); v != "" {
		return refuse(http.StatusBadRequest, "The trigger %q does not exist: triggers are not supported by this emulator", v)
	}
	if v := first(h, headerTokenLimit); v != "" {
		if n, err := strconv.Atoi(v); err != nil || n < 1 {
			return refuse(http.StatusBadRequest, "The continuation token limit specified is not large enough: x-ms-documentdb-responsecontinuationtokenlimitinkb is %q, it must be a positive number", v)
		}
	}
	return checkDirection(h, op)
}

func oneOf(text string, allowed ...string) bool {
	return slices.ContainsFunc(allowed, func(one string) bool { return strings.EqualFold(one, text) })
}
