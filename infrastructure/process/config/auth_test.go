package config_test

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"feedbox/infrastructure/process/config"
)

var hash = strings.Repeat("ab", 32)

func apiEnviron(more ...string) []string {
	return append([]string{"FEEDBOX_COSMOS_ENDPOINT=https://contoso.documents.azure.com:443/"}, more...)
}

func TestAuthModes(t *testing.T) {
	for name, tc := range map[string]struct {
		environ []string
		want    string // part of the fault, "" is accepted
	}{
		"none on loopback":       {nil, ""},
		"none on IPv6 loopback":  {[]string{"FEEDBOX_API_LISTEN=[::1]:80"}, ""},
		"none on all addresses":  {[]string{"FEEDBOX_API_LISTEN=:8080"}, "FEEDBOX_AUTH is none, but FEEDBOX_API_LISTEN"},
		"none on a name":         {[]string{"FEEDBOX_API_LISTEN=api.example:8080"}, "FEEDBOX_AUTH is none, but FEEDBOX_API_LISTEN"},
		"none, told":             {[]string{"FEEDBOX_API_LISTEN=:8080", "FEEDBOX_AUTH_INSECURE=true"}, ""},
		"apikey":                 {[]string{"FEEDBOX_API_LISTEN=:8080", "FEEDBOX_AUTH=apikey", "FEEDBOX_AUTH_API_KEYS=a:read:" + hash + ", a:write:" + strings.Repeat("0F", 32)}, ""},
		"apikey without keys":    {[]string{"FEEDBOX_AUTH=apikey"}, "FEEDBOX_AUTH_API_KEYS is not set"},
		"keys without apikey":    {[]string{"FEEDBOX_AUTH_API_KEYS=a:read:" + hash}, "FEEDBOX_AUTH_API_KEYS is set, but FEEDBOX_AUTH is none"},
		"key without scope":      {[]string{"FEEDBOX_AUTH=apikey", "FEEDBOX_AUTH_API_KEYS=a:" + hash}, "cannot be read: entry 1 is not name:scope:hash"},
		"with audit":             {[]string{"FEEDBOX_AUTH=apikey", "FEEDBOX_AUTH_API_KEYS=a:read+audit:" + hash}, ""},
		"audit alone":            {[]string{"FEEDBOX_AUTH=apikey", "FEEDBOX_AUTH_API_KEYS=a:+audit:" + hash}, "entry 1 has neither the scope read nor write"},
		"unknown scope":          {[]string{"FEEDBOX_AUTH=apikey", "FEEDBOX_AUTH_API_KEYS=a:admin:" + hash}, "entry 1 has neither the scope read nor write"},
		"short hash":             {[]string{"FEEDBOX_AUTH=apikey", "FEEDBOX_AUTH_API_KEYS=a:read:abcd"}, "entry 1 has no SHA-256 hash"},
		"three keys of one name": {[]string{"FEEDBOX_AUTH=apikey", "FEEDBOX_AUTH_API_KEYS=a:read:" + hash + ",a:read:" + hash + ",a:read:" + hash}, "entry 3 is the third key"},
		"entra":                  {[]string{"FEEDBOX_API_LISTEN=:8080", "FEEDBOX_AUTH=entra", "FEEDBOX_AUTH_ISSUER=https://login.example/t/v2.0", "FEEDBOX_AUTH_AUDIENCE=api://a,b"}, ""},
		"entra without audience": {[]string{"FEEDBOX_AUTH=entra", "FEEDBOX_AUTH_ISSUER=https://login.example/t/v2.0"}, "FEEDBOX_AUTH_AUDIENCE is not set"},
		"entra without issuer":   {[]string{"FEEDBOX_AUTH=entra", "FEEDBOX_AUTH_AUDIENCE=a"}, "FEEDBOX_AUTH_ISSUER is not set"},
		"entra over http":        {[]string{"FEEDBOX_AUTH=entra", "FEEDBOX_AUTH_AUDIENCE=a", "FEEDBOX_AUTH_ISSUER=http://login.example"}, "FEEDBOX_AUTH_ISSUER is http"},
		"local issuer":           {[]string{"FEEDBOX_AUTH=entra", "FEEDBOX_AUTH_AUDIENCE=a", "FEEDBOX_AUTH_ISSUER=http://127.0.0.1:9000"}, ""},
		"issuer without entra":   {[]string{"FEEDBOX_AUTH_ISSUER=https://login.example"}, "FEEDBOX_AUTH is none, but an issuer"},
		"unknown mode":           {[]string{"FEEDBOX_AUTH=basic"}, "allowed are none, apikey, entra"},
		"short token key":        {[]string{"FEEDBOX_API_TOKEN_KEYS=YWJj"}, "key 1 has 3 bytes"},
		"token key not base64":   {[]string{"FEEDBOX_API_TOKEN_KEYS=%%%"}, "key 1 is not base64"},
		"no rate":                {[]string{"FEEDBOX_API_RATE_LIMIT=0"}, ""},
		"rate is not a number":   {[]string{"FEEDBOX_API_RATE_LIMIT=NaN"}, "FEEDBOX_API_RATE_LIMIT NaN is out of range"},
		"negative rate":          {[]string{"FEEDBOX_API_RATE_LIMIT=-1"}, "FEEDBOX_API_RATE_LIMIT -1 is out of range"},
		"public URL":             {[]string{"FEEDBOX_API_PUBLIC_URL=contoso"}, "FEEDBOX_API_PUBLIC_URL is not an http or https URL"},
		"bool":                   {[]string{"FEEDBOX_AUTH_INSECURE=yes"}, `FEEDBOX_AUTH_INSECURE "yes" is not true or false: write true or false`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := config.LoadAPI(apiEnviron(tc.environ...))
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), hash) {
				t.Errorf("the fault shows a hash: %v", err)
			}
		})
	}
}

func TestAuthValues(t *testing.T) {
	key := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32)))
	c, err := config.LoadAPI(apiEnviron("FEEDBOX_AUTH=apikey", "FEEDBOX_AUTH_API_KEYS=shop:write:"+hash, "FEEDBOX_API_TOKEN_KEYS="+key))
	if err != nil {
		t.Fatal(err)
	}
	keys := c.APIKeys.List()
	if len(keys) != 1 || keys[0].Principal != "shop" || !keys[0].Write || keys[0].Hash[0] != 0xab {
		t.Errorf("keys %v", keys)
	}
	if len(c.TokenKeys.List()) != 1 || string(c.TokenKeys.List()[0]) != strings.Repeat("k", 32) {
		t.Error("the token key was not read")
	}
	text := fmt.Sprintf("%v %+v %#v %x %v", c.APIKeys, c, c.TokenKeys, c.TokenKeys, c.Settings())
	if strings.Contains(text, hash) || strings.Contains(text, key) || strings.Contains(text, "kkkk") || strings.Contains(text, "6b6b") {
		t.Errorf("a secret is shown: %s", text)
	}
	for _, v := range config.Variables() {
		secret := slices.Contains([]string{"FEEDBOX_COSMOS_KEY", "FEEDBOX_POSTGRES_URL", "FEEDBOX_SERVICEBUS_CONNECTION_STRING", "FEEDBOX_RABBITMQ_URL", "FEEDBOX_AUTH_API_KEYS", "FEEDBOX_CONSOLE_API_KEYS", "FEEDBOX_API_TOKEN_KEYS", "FEEDBOX_PUSH_SECRET"}, v.Name)
		if v.Secret != secret {
			t.Errorf("%s: secret is %v", v.Name, v.Secret)
		}
	}
}

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
