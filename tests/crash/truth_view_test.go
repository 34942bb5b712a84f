//go:build faults

package crash

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"feedbox/tests/servers"
	"feedbox/tests/testkit"
)

// views are the five places where an operator looks. Each of them is asked at its own address.
type views struct {
	feedbox         string
	env             []string // of the commands
	ops, page, prom string   // base URLs; prom is empty if Prometheus is not installed
}

// view is what the five places show at one time.
type view struct {
	health  []string // HEALTH of feedbox lag, by range
	behind  int64
	unknown int    // ranges
	cli     string // error of feedbox lag
	ready   int    // status of /readyz
	body    string // of /readyz
	metrics string
	page    string // text of the page's first section
	alerts  map[string]bool
}

var tags = regexp.MustCompile(`(?s)<(script|style)[^>]*>.*?</(script|style)>|<[^>]*>`)

func (v *views) look(ctx context.Context, t *testing.T) (seen view) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, v.feedbox, "lag", "-o", "json")
	cmd.Env = testkit.Environ(v.env...)
	var failed strings.Builder
	cmd.Stderr = &failed
	out, err := cmd.Output()
	if err != nil {
		seen.cli = failed.String()
	} else {
		var lag struct {
			Behind  int64
			Unknown int
			Ranges  []struct{ Health string }
		}
		if err := json.Unmarshal(out, &lag); err != nil {
			t.Fatalf("feedbox lag: %v: %s", err, out)
		}
		seen.behind, seen.unknown = lag.Behind, lag.Unknown
		for _, r := range lag.Ranges {
			seen.health = append(seen.health, r.Health)
		}
	}
	seen.ready, seen.body = fetch(ctx, v.ops+"/readyz")
	_, seen.metrics = fetch(ctx, v.ops+"/metrics")
	_, text := fetch(ctx, v.page+"/")
	seen.page = strings.Join(strings.Fields(html.UnescapeString(tags.ReplaceAllString(text, " "))), " ")
	if v.prom != "" {
		var reply struct {
			Data struct {
				Alerts []struct{ Labels map[string]string }
			}
		}
		_, text := fetch(ctx, v.prom+"/api/v1/alerts")
		_ = json.Unmarshal([]byte(text), &reply) // no alerts before Prometheus answers
		seen.alerts = map[string]bool{}
		for _, a := range reply.Data.Alerts {
			seen.alerts[a.Labels["alertname"]] = true
		}
	}
	return seen
}

// fetch returns status and body of a GET, or 0 and the error.
func fetch(ctx context.Context, url string) (int, string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err.Error()
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(body)
}

// gauge returns the sum of a metric's series with all the given labels, and their number.
func (s *view) gauge(name string, labels ...string) (sum float64, n int) {
	for line := range strings.Lines(s.metrics) {
		if !strings.HasPrefix(line, name+"{") {
			continue
		}
		has := true
		for _, l := range labels {
			has = has && strings.Contains(line, l)
		}
		var value float64
		if _, err := fmt.Sscanf(line[strings.LastIndexByte(line, ' ')+1:], "%g", &value); has && err == nil {
			sum, n = sum+value, n+1
		}
	}
	return sum, n
}

// startPrometheus evaluates the rules of the deployment over the metrics of one process, once a second
// and without their waiting times. It returns "" if Prometheus is not installed.
func startPrometheus(t *testing.T, ops string) string {
	t.Helper()
	path, err := exec.LookPath("prometheus")
	if err != nil {
		t.Log("SKIPPED: alerts are not looked at, because Prometheus is not installed: apt-get install prometheus")
		return ""
	}
	text, err := os.ReadFile("../../bicep/kubernetes/monitoring/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		Spec map[string]any `yaml:"spec"`
	}
	if err := yaml.Unmarshal(regexp.MustCompile(`(?m)^( +for:).*$`).ReplaceAll(text, []byte("$1 0s")), &manifest); err != nil {
		t.Fatal(err)
	}
	rules, err := yaml.Marshal(manifest.Spec)
	if err != nil {
		t.Fatal(err)
	}
	dir, listen := t.TempDir(), servers.Address(t)
	config := fmt.Sprintf("global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [rules.yaml]\nscrape_configs: [{job_name: relay, static_configs: [{targets: [%q]}]}]\n",
		strings.TrimPrefix(ops, "http://"))
	for name, content := range map[string]string{"rules.yaml": string(rules), "prometheus.yaml": config} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Start(t, "prometheus", path, nil, "--config.file="+filepath.Join(dir, "prometheus.yaml"), "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+listen)
	testkit.Eventually(t, patience, "Prometheus", func() bool {
		status, _ := fetch(t.Context(), "http://"+listen+"/-/ready")
		return status == http.StatusOK
	})
	return "http://" + listen
}

// until looks until every place shows what is wanted. wrong returns what is not as wanted; "" for nothing.
func (v *views) until(t *testing.T, step string, wrong func(*view) string) {
	t.Helper()
	var seen view
	var why string
	for deadline := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		seen = v.look(t.Context(), t)
		if why = wrong(&seen); why == "" {
			t.Logf("%s: shown everywhere", step)
			return
		}
		if time.Now().After(deadline) {
			break
		}
	}
	_, _ = fmt.Fprintln(t.Output(), seen.metrics)
	seen.metrics = ""
	t.Fatalf("%s: %s, after %s. Seen: %+v", step, why, patience, seen)
}
