package config

import (
	"net/url"
	"strings"
)

// Auth configures the authentication of callers. It has no API keys, because the operators
// of the page are a separate list from the callers of the API.
type Auth struct {
	Mode      string   `env:"AUTH" envDefault:"none" oneof:"none|apikey|entra" doc:"who may call the API, and open the operations page: none (everybody, on loopback addresses only), apikey or entra"`
	Insecure  bool     `env:"AUTH_INSECURE" envDefault:"false" doc:"allow FEEDBOX_AUTH=none on an address that others can reach"`
	Issuer    Address  `env:"AUTH_ISSUER" check:"anonymous" doc:"issuer of the tokens of mode entra, for example https://login.microsoftonline.com/TENANT/v2.0"`
	Audiences []string `env:"AUTH_AUDIENCE" doc:"audiences of the tokens of mode entra, separated by commas: application id URI or client id"`
}

// checkAuth checks c for a process that listens on the address listen, which variable sets,
// and has the API keys of the variable list.
func checkAuth(report *report, c Auth, variable, listen, list string, keys APIKeys) {
	const mode = "FEEDBOX_AUTH"
	switch c.Mode {
	case "none":
		if !IsLoopback(listen) && !c.Insecure && !report.faulty(variable) {
			report.add(mode, "is none, but "+variable+" is an address that others can reach",
				"set FEEDBOX_AUTH to apikey or entra, or FEEDBOX_AUTH_INSECURE=true if another guard stands before it")
		}
	case "apikey":
		if len(keys.list) == 0 && !report.faulty(list) {
			report.add(list, "is not set", "FEEDBOX_AUTH is apikey, so there must be a key")
		}
	case "entra":
		checkEntra(report, c)
	}
	if c.Mode != "apikey" && len(keys.list) > 0 {
		report.add(list, "is set, but FEEDBOX_AUTH is "+c.Mode, "set FEEDBOX_AUTH=apikey or remove the keys")
	}
	if c.Mode != "entra" && (c.Issuer != "" || len(c.Audiences) > 0) {
		report.add(mode, "is "+c.Mode+", but an issuer or audience is set", "set FEEDBOX_AUTH=entra or remove them")
	}
}

func checkEntra(report *report, c Auth) {
	u, err := url.Parse(string(c.Issuer))
	switch {
	case c.Issuer == "":
		report.add("FEEDBOX_AUTH_ISSUER", "is not set", "FEEDBOX_AUTH is entra, so the issuer must be known")
	case err != nil || u.Host == "" || u.RawQuery != "" || (u.Scheme != "https" && u.Scheme != "http"):
		report.add("FEEDBOX_AUTH_ISSUER", "is not a URL", "write for example https://login.microsoftonline.com/TENANT/v2.0")
	case u.Scheme == "http" && !IsLoopback(u.Host) && !IsLoopback(u.Host+":80"):
		report.add("FEEDBOX_AUTH_ISSUER", "is http", "signing keys must come over https")
	}
	if len(c.Audiences) == 0 || strings.TrimSpace(strings.Join(c.Audiences, "")) == "" {
		report.add("FEEDBOX_AUTH_AUDIENCE", "is not set", "FEEDBOX_AUTH is entra; without an audience any token of the issuer would do")
	}
}
