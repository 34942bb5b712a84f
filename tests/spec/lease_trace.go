package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"feedbox/tests/spec/steps"
)

// call is a request to the lease store.
type call struct {
	steps.Step
	begin, end int           // indices of its steps; end is that of the last step if it has no answer
	wrote      *steps.Record // nil for requests that write nothing
	etag       string        // "" if the write was not applied
	applied    int           // the index before which it was applied
}

// recording is the steps of one run, and what follows from them.
//
// The store is not recorded, so a write whose answer was lost may or may not have been applied. It
// was if anyone read its content later. Every write names the ETag it replaces, so the writes of a
// record form a chain. A write is placed as late as its answer, and what others read, allow. The
// store is linearizable, and so is one record of it, so this order is one that the run can have had.
type recording struct {
	steps   []steps.Step
	calls   []*call
	by      map[string]map[string]*call // applied writes, by lease and ETag
	changes []steps.Step                // in the order of the feed
	expiry  int64                       // in microseconds
	learned map[string]int              // by host, lease and ETag: the first step that had it
	outside bool                        // of processes: an answer may not have reached its host
}

func readRecording(file string) (*recording, error) {
	all, err := readSteps[steps.Step](file)
	if err != nil {
		return nil, err
	}
	r := &recording{by: map[string]map[string]*call{}, learned: map[string]int{}, steps: all}
	r.pair()
	r.resolve()
	return r, nil
}

// readSteps reads a recording of any kind.
func readSteps[S any](file string) (all []S, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for in := json.NewDecoder(bufio.NewReader(f)); ; {
		var s S
		switch err := in.Decode(&s); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, s)
	}
}

// pair finds the calls, and the changes.
func (r *recording) pair() {
	open := map[int]*call{}
	for i := range r.steps {
		s := &r.steps[i]
		switch s.Do {
		case "commit":
			r.changes = append(r.changes, *s)
		case "call":
			c := &call{Step: *s, begin: i, end: len(r.steps) - 1, applied: -1}
			c.Failed = "unknown"
			if len(s.Records) > 0 {
				c.wrote = &s.Records[0]
				r.expiry = max(r.expiry, c.wrote.Expiry*1000)
			}
			open[s.Call] = c
			r.calls = append(r.calls, c)
		case "end":
			c := open[s.Call]
			c.end, c.Failed, c.ETag, c.Records = i, s.Failed, s.ETag, s.Records
			for _, seen := range s.Records {
				r.learn(c.Host, seen.Lease, seen.ETag, i)
			}
			if s.ETag != "" {
				r.learn(c.Host, c.Lease, s.ETag, i)
			}
		}
	}
	slices.SortStableFunc(r.changes, func(a, b steps.Step) int { return cmp.Compare(a.LSN, b.LSN) })
}

func learnedKey(host, lease, etag string) string { return host + " " + lease + " " + etag }

func (r *recording) learn(host, lease, etag string, i int) {
	for _, who := range []string{host, ""} { // "" is anyone
		if _, known := r.learned[learnedKey(who, lease, etag)]; !known {
			r.learned[learnedKey(who, lease, etag)] = i
		}
	}
}

// resolve finds out which writes were applied, and when.
func (r *recording) resolve() {
	unknown := map[uint64][]*call{} // writes without a certain outcome, by content
	for _, c := range r.calls {
		switch {
		case c.Op == "delete" && c.Failed == "":
			c.etag, c.applied = "deleted", c.end
		case c.Op == "delete" && r.missingAfter(c):
			c.etag, c.applied = "deleted", c.end
		case c.wrote == nil:
		case c.Failed == "":
			c.etag = c.ETag
		default:
			unknown[c.wrote.Sum] = append(unknown[c.wrote.Sum], c)
		}
		if c.wrote != nil && c.etag != "" {
			r.apply(c)
		}
	}
	replaced := map[string]bool{}
	for _, c := range r.calls {
		replaced[c.Lease+" "+c.Match] = replaced[c.Lease+" "+c.Match] || c.etag != ""
	}
	for i := range r.steps {
		for _, seen := range r.steps[i].Records {
			if r.steps[i].Do != "end" || r.by[seen.Lease][seen.ETag] != nil {
				continue
			}
			for n, c := range unknown[seen.Sum] {
				// Two attempts at the same time have the same content, but they replace different versions.
				if c.Lease == seen.Lease && c.begin < i && !replaced[c.Lease+" "+c.Match] {
					c.etag, replaced[c.Lease+" "+c.Match] = seen.ETag, true
					r.apply(c)
					unknown[seen.Sum] = slices.Delete(unknown[seen.Sum], n, n+1)
					break
				}
			}
		}
	}
	next := map[string]*call{} // by lease and the ETag it replaced
	for _, c := range r.calls {
		if c.etag != "" {
			c.applied = c.end
			if seen, ok := r.learned[learnedKey("", c.Lease, c.etag)]; ok {
				c.applied = min(c.applied, seen)
			}
			next[c.Lease+" "+c.Match] = c
		}
	}
	for _, c := range r.calls { // a refused write proves that another one was applied
		if other := next[c.Lease+" "+c.Match]; c.Failed == "refused" && c.etag == "" && c.wrote != nil && other != nil && other != c && c.end > other.begin {
			other.applied = min(other.applied, c.end)
		}
	}
}

func (r *recording) apply(c *call) {
	if r.by[c.Lease] == nil {
		r.by[c.Lease] = map[string]*call{}
	}
	r.by[c.Lease][c.etag] = c
}

// missingAfter reports whether a delete without a certain outcome was applied: the record was
// missing, or created again, before anything else was read.
func (r *recording) missingAfter(c *call) bool {
	if c.Failed != "unknown" {
		return false
	}
	for _, o := range r.calls {
		if o.Lease == c.Lease && o.begin > c.end && o != c && (o.Failed == "missing" || o.Op == "create" && o.Failed == "") {
			return true
		}
	}
	return false
}

// position is the number of changes up to an LSN.
func (r *recording) position(lsn int64) int {
	n, _ := slices.BinarySearchFunc(r.changes, lsn+1, func(s steps.Step, lsn int64) int { return cmp.Compare(s.LSN, lsn) })
	return n
}

// before returns the record that a write replaced.
func (r *recording) before(c *call) steps.Record {
	if p := r.by[c.Lease][c.Match]; p != nil && p.wrote != nil {
		return *p.wrote
	}
	return steps.Record{State: "unknown"}
}

// behavior is a recording as lines of LeaseTrace.tla. A line follows the step with its index.
type behavior struct {
	*recording
	lines  [][]string // by index of the step, in order
	slots  map[string]string
	hosts  map[string]bool
	splits map[string][]string // children, by lease
	leases map[string]bool
	asked  map[string]bool
	// clocked are the hosts with clocks; an operator has none.
	clocked map[string]bool
	first   map[string]int  // step of each host
	stopped map[string]bool // by host and lease: the worker has tried its last write, without an effect
}

func (b *behavior) add(i int, kind string, args ...any) {
	b.lines[i] = append(b.lines[i], line(kind, args...))
}

// line returns a line of a trace.
func line(kind string, args ...any) string {
	var line strings.Builder
	fmt.Fprintf(&line, "<<%q", kind)
	for _, a := range args {
		switch a := a.(type) {
		case string:
			fmt.Fprintf(&line, ", %q", a)
		case bool:
			fmt.Fprintf(&line, ", %s", strings.ToUpper(fmt.Sprint(a)))
		case tla:
			fmt.Fprintf(&line, ", %s", string(a))
		default:
			fmt.Fprintf(&line, ", %d", a)
		}
	}
	line.WriteString(">>")
	return line.String()
}

// tla is text of a module.
type tla string

func set(names []string) tla {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = fmt.Sprintf("%q", n)
	}
	return tla("{" + strings.Join(quoted, ", ") + "}")
}

// behave translates a recording.
func behave(r *recording) *behavior {
	b := &behavior{
		recording: r, lines: make([][]string, len(r.steps)), slots: map[string]string{}, hosts: map[string]bool{},
		splits: map[string][]string{}, leases: map[string]bool{steps.Info: true}, asked: map[string]bool{}, clocked: map[string]bool{}, first: map[string]int{}, stopped: map[string]bool{},
	}
	b.assignSlots()
	writes := make([][]*call, len(r.steps)) // by the step before which they were applied
	for _, c := range r.calls {
		if c.wrote != nil && c.Lease != "" {
			b.leases[c.Lease] = true
		}
		if c.etag != "" && c.Lease != "" {
			writes[c.applied] = append(writes[c.applied], c)
			if c.wrote != nil && c.wrote.State == "split" && len(c.wrote.Children) > 0 {
				b.splits[c.Lease] = c.wrote.Children
			}
		}
	}
	place := b.planTasks()
	begun, ended := map[int][]*call{}, map[int][]*call{}
	for _, c := range r.calls {
		begun[c.begin], ended[c.end] = append(begun[c.begin], c), append(ended[c.end], c)
	}
	current, listed := map[string]string{}, map[string]string{}
	number := map[int]int{}
	for n := range r.changes {
		number[r.changes[n].Change] = n + 1
	}
	for i := range r.steps {
		slices.SortFunc(writes[i], func(x, y *call) int { return cmp.Compare(x.begin, y.begin) })
		for _, c := range writes[i] {
			current[c.Lease] = c.etag
			b.applied(i, c)
			for _, line := range place[c] {
				b.add(i, line[0].(string), line[1:]...)
			}
		}
		s := &r.steps[i]
		switch s.Do {
		case "call":
			b.begins(i, begun[i][0])
		case "end":
			b.ends(i, ended[i][0], current, listed)
		case "check":
			b.add(i, "check", b.slots[s.Host], s.Lease)
		case "done", "gone":
			if n := number[s.Change]; n > 0 {
				b.add(i, s.Do, n)
			}
		}
		for _, line := range place[s] {
			b.add(i, line[0].(string), line[1:]...)
		}
	}
	return b
}

// assignSlots names the hosts. A host that has ended leaves its name to a later one, because fewer
// hosts make the states smaller.
func (b *behavior) assignSlots() {
	last := map[string]int64{}
	for i := range b.steps {
		last[b.steps[i].Host] = b.steps[i].At
	}
	free := map[string]int64{} // by slot: when its host will have ended
	for i := range b.steps {
		s := &b.steps[i]
		if _, there := s.Clocks[s.Host]; there {
			b.clocked[s.Host] = true
		}
		if s.Host == "" || b.slots[s.Host] != "" {
			continue
		}
		slot := ""
		for name := range free {
			if free[name]+3*b.expiry < s.At && (slot == "" || name < slot) {
				slot = name
			}
		}
		if slot == "" {
			slot = fmt.Sprintf("h%d", len(free)+1)
		} else {
			b.add(i, "crash", slot)
		}
		b.first[s.Host] = i
		free[slot], b.slots[s.Host], b.hosts[slot] = last[s.Host], slot, true
	}
}

// kind returns what a write of a live lease does.
func (b *behavior) kind(c *call) string {
	was := b.before(c)
	switch {
	case c.wrote == nil || c.Lease == "" || c.Op != "replace" || was.State != "" || was.Lease == steps.Info:
		return ""
	case !b.clocked[c.Host]:
		return "operator"
	case c.wrote.State == "split":
		return "retire"
	case c.wrote.State != "":
		return "unexplained"
	case c.wrote.Owner == "" && was.Owner != "":
		return "release"
	case c.wrote.Epoch > was.Epoch:
		return "acquire"
	}
	return "renew"
}

// begins adds the lines of a request that will be applied. Requests without an effect are no steps.
func (b *behavior) begins(i int, c *call) {
	kind := b.kind(c)
	if c.etag == "" && (kind == "release" || kind == "retire") {
		b.stopped[c.Host+" "+c.Lease] = true
	}
	if c.etag == "" || kind == "" || kind == "operator" {
		return
	}
	host, pos := b.slots[c.Host], b.position(c.wrote.LSN)
	switch kind {
	case "acquire":
		b.add(i, "ends", host, c.Lease, b.outside || b.stopped[c.Host+" "+c.Lease])
		delete(b.stopped, c.Host+" "+c.Lease)
		if pos != b.position(b.before(c).LSN) {
			b.add(i, "rewound", c.Lease)
		}
	default:
		b.add(i, "position", host, c.Lease, pos)
		if kind == "retire" {
			b.add(i, "unreadable", c.Lease)
		}
	}
	b.add(i, kind, host, c.Lease)
}

// applied adds the lines of the effect of a write.
func (b *behavior) applied(i int, c *call) {
	kind := b.kind(c)
	switch {
	case kind == "operator":
		b.add(i, "operator", c.Lease)
	case kind != "":
		b.add(i, "apply", b.slots[c.Host], c.Lease)
	case c.Op == "create" && c.Lease == steps.Info:
		b.add(i, "init")
	case c.Op == "create" && c.wrote.State == "":
		b.add(i, "fill", c.Lease)
	case c.Op == "delete":
		b.add(i, "sweep", c.Lease)
	}
	if c.wrote != nil && c.wrote.Rewind != b.asked[c.Lease] {
		b.asked[c.Lease] = c.wrote.Rewind
		b.add(i, "asks", c.Lease, c.wrote.Rewind)
	}
}

// ends adds the lines of an answer.
func (b *behavior) ends(i int, c *call, current, listed map[string]string) {
	host := b.slots[c.Host]
	switch kind := b.kind(c); {
	case c.Op == "list":
		var fresh []string
		for _, seen := range c.Records {
			if key := host + " " + seen.Lease; current[seen.Lease] == seen.ETag && listed[key] != seen.ETag {
				listed[key] = seen.ETag
				fresh = append(fresh, seen.Lease)
			}
		}
		if len(fresh) > 0 {
			b.add(i, "list", host, set(fresh))
		}
	case c.Op == "read" && len(c.Records) > 0:
		if seen := c.Records[0]; current[seen.Lease] == seen.ETag {
			b.add(i, "adopt", host, seen.Lease)
		}
	case c.etag == "" || kind == "" || kind == "operator" || kind == "release":
	case c.Failed == "":
		b.add(i, "answer", host, c.Lease)
	default:
		b.add(i, "drop", host, c.Lease)
	}
}

// timed are the lines that depend on the time.
var timed = map[string]bool{"acquire": true, "ends": true, "renew": true, "release": true, "retire": true, "answer": true, "list": true}

// trace returns the lines in order, with lines for the time between them. Deliveries without another
// line between them are one line. Of checks without a change of a lease between them, the last is
// enough, because trust only ends with time.
func (b *behavior) trace() []string {
	var all []string
	var delivered []string
	checks := map[string]int{} // the step of the last one, by line
	past := map[string][2]int64{}
	flush := func() {
		order := slices.SortedFunc(maps.Keys(checks), func(x, y string) int { return cmp.Compare(checks[x], checks[y]) })
		for _, line := range order {
			all = append(b.pass(all, past, checks[line]), line)
		}
		clear(checks)
		if len(delivered) > 0 {
			all = append(all, fmt.Sprintf(`<<"done", <<%s>>>>`, strings.Join(delivered, ", ")))
		}
		delivered = nil
	}
	for i, lines := range b.lines {
		for _, line := range lines {
			kind, rest, _ := strings.Cut(strings.TrimPrefix(line, `<<"`), `"`)
			switch kind {
			case "done":
				delivered = append(delivered, strings.Trim(rest, ", >"))
				continue
			case "gone":
				delivered = append(delivered, "-"+strings.Trim(rest, ", >"))
				continue
			case "check":
				checks[line] = i
				continue
			}
			flush()
			if timed[kind] {
				all = b.pass(all, past, i)
			}
			all = append(all, line)
		}
	}
	flush()
	return all
}

// pass adds a line for the time until a step.
func (b *behavior) pass(all []string, past map[string][2]int64, i int) []string {
	var moved []string
	for _, host := range slices.Sorted(maps.Keys(b.steps[i].Clocks)) {
		now, before := b.steps[i].Clocks[host], past[host]
		own, wall := now[0]-before[0], now[1]-before[1]
		if own == 0 && wall == 0 {
			continue
		}
		past[host] = now
		if b.lives(host, i) {
			moved = append(moved, fmt.Sprintf("%s |-> <<%d, %d>>", b.slots[host], min(own, most), max(-most, min(wall, most))))
		}
	}
	if len(moved) > 0 {
		all = append(all, fmt.Sprintf(`<<"time", [%s]>>`, strings.Join(moved, ", ")))
	}
	return all
}

// most keeps times within TLC's integers.
const most = 1_000_000_000

// lives reports whether a host still has its slot.
func (b *behavior) lives(host string, i int) bool {
	for other, slot := range b.slots {
		if other != host && slot == b.slots[host] && b.first[other] <= i && b.first[other] > b.first[host] {
			return false
		}
	}
	return b.slots[host] != "" && b.first[host] <= i
}
