package config_test

import (
	"strings"
	"testing"

	"feedbox/infrastructure/process/config"
)

func TestConsole(t *testing.T) {
	c, err := config.LoadConsole([]string{"FEEDBOX_CONSOLE_PREFIX=/ops", "FEEDBOX_CONSOLE_METRICS=http://a/metrics,http://b/metrics", "FEEDBOX_CONSOLE_MANAGEMENT=http://127.0.0.1:5300", "FEEDBOX_TRACE_URL=http://jaeger:16686/trace/{traceId}"})
	if err != nil || c.Listen != "127.0.0.1:8070" || len(c.Metrics) != 2 || c.Window == 0 {
		t.Fatalf("%+v, %v", c, err)
	}
	_, err = config.LoadConsole([]string{"FEEDBOX_CONSOLE_LISTEN=0.0.0.0:8070", "FEEDBOX_CONSOLE_PREFIX=ops/", "FEEDBOX_CONSOLE_METRICS=a", "FEEDBOX_CONSOLE_MANAGEMENT=b", "FEEDBOX_CONSOLE_WINDOW=1s", "FEEDBOX_TRACE_URL=http://jaeger"})
	for _, want := range []string{"FEEDBOX_CONSOLE_LISTEN is an address that others can reach", "FEEDBOX_CONSOLE_PREFIX is not a path", "FEEDBOX_CONSOLE_METRICS holds a", "FEEDBOX_CONSOLE_MANAGEMENT is not", "FEEDBOX_CONSOLE_WINDOW", "FEEDBOX_TRACE_URL is not a URL with {traceId}"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing from %v", want, err)
		}
	}
}

// A key of the API does not make its caller an operator of the page.
func TestOperatorsAreAListOfTheirOwn(t *testing.T) {
	api := []string{"FEEDBOX_AUTH=apikey", "FEEDBOX_AUTH_API_KEYS=shop:write:" + hash}
	if _, err := config.LoadConsole(api); err == nil || !strings.Contains(err.Error(), "FEEDBOX_CONSOLE_API_KEYS is not set") {
		t.Errorf("with the keys of the API alone: %v", err)
	}
	c, err := config.LoadConsole(append(api, "FEEDBOX_CONSOLE_API_KEYS=ann:read:"+strings.Repeat("cd", 32)))
	if err != nil || len(c.APIKeys.List()) != 1 || c.APIKeys.List()[0].Principal != "ann" {
		t.Errorf("keys %v, %v", c.APIKeys, err)
	}
	if _, err := config.LoadConsole([]string{"FEEDBOX_CONSOLE_API_KEYS=ann:read:" + hash}); err == nil || !strings.Contains(err.Error(), "FEEDBOX_CONSOLE_API_KEYS is set, but FEEDBOX_AUTH is none") {
		t.Errorf("with keys that are not used: %v", err)
	}
}
